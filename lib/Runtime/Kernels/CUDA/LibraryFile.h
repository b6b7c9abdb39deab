//===- LibraryFile.h - a library that is opened at run time -----*- C++ -*-===//
//
// Finds the functions of a library that programs are not linked with, and says what is
// missing or too old. Never closed: what it starts lives as long as the process.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_LIBRARYFILE_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_LIBRARYFILE_H

#include <string>
#include <vector>

namespace dsopt::runtime::cuda {

class LibraryFile {
public:
  /// The first of the files that opens.
  explicit LibraryFile(const std::vector<std::string> &files);
  bool isOpen() const { return handle != nullptr; }
  /// Why none did.
  const std::string &reasons() const { return text; }

  template <typename Function> void find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(look(name));
  }
  /// An Error of status 2 unless it has all that was looked for and `isNew`; `what` is the library in words,
  /// `version` and `needed` what it is and the oldest that would do.
  void expect(bool isNew, const std::string &what, const std::string &version,
              const std::string &needed) const;

private:
  void *look(const char *name);

  void *handle = nullptr;
  std::string text;
  const char *missing = nullptr; ///< the first one
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_LIBRARYFILE_H
