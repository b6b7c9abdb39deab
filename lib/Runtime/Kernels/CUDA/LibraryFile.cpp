//===- LibraryFile.cpp - a library that is opened at run time --------------===//

#include "Kernels/CUDA/LibraryFile.h"

#include "dsopt/Runtime/Error.h"

#include <dlfcn.h>

namespace dsopt::runtime::cuda {

LibraryFile::LibraryFile(const std::vector<std::string> &files) {
  for (const std::string &file : files) {
    if ((handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)))
      return;
    text += (text.empty() ? "" : "; ") + std::string(dlerror());
  }
}

void *LibraryFile::look(const char *name) {
  void *found = dlsym(handle, name);
  if (!found && !missing)
    missing = name;
  return found;
}

void LibraryFile::expect(bool isNew, const std::string &what, const std::string &version,
                         const std::string &needed) const {
  if (missing || !isNew)
    throw Error(StatusFailure, what + " is version " + version +
                                   (missing ? std::string(" and has no ") + missing : "") + ", expected " +
                                   needed + " or newer");
}

} // namespace dsopt::runtime::cuda
