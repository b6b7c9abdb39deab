//===- Cudnn.cpp - cuDNN, opened at run time -------------------------------===//

#include "Kernels/CUDA/Cudnn.h"

#include "Kernels/CUDA/LibraryFile.h"
#include "dsopt/Runtime/Error.h"

namespace dsopt::runtime::cuda {

/// 9.13.1 from 91301; 8 counted by thousands.
static std::string versionText(size_t version) {
  size_t major = version >= 90000 ? 10000 : 1000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." +
         std::to_string(version % 100);
}

Cudnn Cudnn::open(const std::string &file) {
  LibraryFile library({file});
  if (!library.isOpen())
    throw Error(StatusFailure, "no cuDNN: " + library.reasons() +
                                   "; the program's convolutions need version " + versionText(kOldestCudnn) +
                                   " or newer, in LD_LIBRARY_PATH");
  Cudnn found;
#define DSOPT_FIND(result, name, parameters) library.find(found.name, #name);
  DSOPT_CUDNN(DSOPT_FIND)
#undef DSOPT_FIND
  size_t version = found.cudnnGetVersion ? found.cudnnGetVersion() : 0;
  found.version = versionText(version);
  library.expect(version >= kOldestCudnn, "cuDNN", found.version, versionText(kOldestCudnn));
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
