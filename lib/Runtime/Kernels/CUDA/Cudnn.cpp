//===- Cudnn.cpp - cuDNN, opened at run time -------------------------------===//

#include "Kernels/CUDA/Cudnn.h"

#include "dsopt/Runtime/Error.h"

#include <dlfcn.h>

namespace dsopt::runtime::cuda {

/// 9.13.1 from 91301; 8 counted by thousands.
static std::string versionText(size_t version) {
  size_t major = version >= 90000 ? 10000 : 1000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

Cudnn Cudnn::open(const std::string &file) {
  // Never closed: what it loads to a device lives as long as the process.
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(StatusFailure, "no cuDNN: " + std::string(dlerror()) +
                                   "; the program's convolutions need version " + versionText(kOldestCudnn) +
                                   " or newer, in LD_LIBRARY_PATH");
  Cudnn found;
  const char *missing = nullptr;
#define DSOPT_FIND(result, name, parameters)                                                                 \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name));                                \
  if (!found.name && !missing)                                                                               \
    missing = #name;
  DSOPT_CUDNN(DSOPT_FIND)
#undef DSOPT_FIND
  size_t version = found.cudnnGetVersion ? found.cudnnGetVersion() : 0;
  found.version = versionText(version);
  if (missing || version < kOldestCudnn)
    throw Error(StatusFailure, "cuDNN is version " + found.version +
                                   (missing ? std::string(" and has no ") + missing : "") + ", expected " +
                                   versionText(kOldestCudnn) + " or newer");
  return found;
}

const Cudnn &Cudnn::get() {
  static const Cudnn library = open("libcudnn.so.9");
  return library;
}

std::string Cudnn::describe(DnnStatus status) const {
  const char *name = cudnnGetErrorString(status);
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  detail[sizeof(detail) - 1] = '\0';
  return std::string(name ? name : "error " + std::to_string(status)) +
         (detail[0] ? " (" + std::string(detail) + ")" : "");
}

void Cudnn::fail(DnnStatus status, const char *call) const {
  throw Error(StatusFailure, std::string(call) + ": " + describe(status));
}

} // namespace dsopt::runtime::cuda
