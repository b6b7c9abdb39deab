//===- CublasLt.cpp - cuBLASLt, opened at run time -------------------------===//

#include "Kernels/CUDA/CublasLt.h"

#include "Kernels/CUDA/Driver.h"
#include "Kernels/CUDA/LibraryFile.h"
#include "dsopt/Runtime/Error.h"

namespace dsopt::runtime::cuda {

/// 13.1.0 from 130100.
static std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

CublasLt CublasLt::open(const std::vector<std::string> &files) {
  LibraryFile library(files);
  if (!library.isOpen())
    throw Error(StatusFailure, "no cuBLASLt: " + library.reasons() + "; the program needs version " +
                                   versionText(kOldestCublasLt) +
                                   " or newer, which comes with the CUDA toolkit, in LD_LIBRARY_PATH");
  CublasLt found;
#define DSOPT_FIND(result, name, parameters) library.find(found.name, #name);
  DSOPT_CUBLASLT(DSOPT_FIND)
#undef DSOPT_FIND
  size_t version = found.cublasLtGetVersion ? found.cublasLtGetVersion() : 0;
  found.version = versionText(version);
  library.expect(version >= kOldestCublasLt, "cuBLASLt", found.version, versionText(kOldestCublasLt));
  return found;
}

const CublasLt &CublasLt::get() {
  static const CublasLt library = [] {
    int driver = 0;
    DSOPT_CUDA(cuDriverGetVersion, &driver);
    // A driver runs libraries of its own major version and of those before.
    std::vector<std::string> files;
    for (int major = driver / 1000 < 13 ? driver / 1000 : 13; major >= 12; --major)
      files.push_back("libcublasLt.so." + std::to_string(major));
    return open(files);
  }();
  return library;
}

std::string CublasLt::describe(LtStatus status) const {
  const char *name = cublasLtGetStatusName(status), *text = cublasLtGetStatusString(status);
  return std::string(name ? name : "error " + std::to_string(status)) +
         (text ? " (" + std::string(text) + ")" : "");
}

void CublasLt::fail(LtStatus status, const char *call) const {
  throw Failure(std::string(call) + ": " + describe(status));
}

Operation::Operation(LtCompute compute, LtType scale, bool transposeA, bool transposeB) {
  DSOPT_CUBLASLT_CALL(cublasLtMatmulDescCreate, &handle, compute, scale);
  set<int32_t>(kLtTransposeA, transposeA ? kLtTransposed : kLtNormal);
  set<int32_t>(kLtTransposeB, transposeB ? kLtTransposed : kLtNormal);
}

Layout::Layout(LtType type, int64_t rows, int64_t columns, int64_t leading, int64_t count, int64_t stride) {
  DSOPT_CUBLASLT_CALL(cublasLtMatrixLayoutCreate, &handle, type, static_cast<uint64_t>(rows),
                      static_cast<uint64_t>(columns), leading);
  if (count == 1)
    return;
  int32_t matrices = static_cast<int32_t>(count);
  DSOPT_CUBLASLT_CALL(cublasLtMatrixLayoutSetAttribute, handle, kLtBatchCount, &matrices, sizeof(matrices));
  DSOPT_CUBLASLT_CALL(cublasLtMatrixLayoutSetAttribute, handle, kLtBatchStride, &stride, sizeof(stride));
}

} // namespace dsopt::runtime::cuda
