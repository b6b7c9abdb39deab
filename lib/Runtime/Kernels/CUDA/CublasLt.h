//===- CublasLt.h - cuBLASLt, opened at run time ----------------*- C++ -*-===//
//
// `CublasLt` is the library, the others own what it makes. Every call that fails is an
// Error of status 2 that names the call and what the library says.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLT_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLT_H

#include "Kernels/CUDA/CublasLtApi.h"

#include <string>
#include <vector>

namespace dsopt::runtime::cuda {

/// The oldest one that programs run with, as cublasLtGetVersion counts: 12.0.0.
inline constexpr size_t kOldestCublasLt = 120000;

struct CublasLt {
#define DSOPT_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  DSOPT_CUBLASLT(DSOPT_MEMBER)
#undef DSOPT_MEMBER
  std::string version; ///< "13.1.0"

  /// The library, opened when first asked for: of the newest version that the driver runs.
  static const CublasLt &get();
  /// The first that is there of some files. An Error of status 2 says what is missing.
  static CublasLt open(const std::vector<std::string> &files);
  /// What the library says of a status: "CUBLAS_STATUS_NOT_SUPPORTED (the requested ...)".
  std::string describe(LtStatus status) const;
  /// Fails unless the status is success.
  void check(LtStatus status, const char *call) const {
    if (status != kLtSuccess)
      fail(status, call);
  }

private:
  [[noreturn]] void fail(LtStatus status, const char *call) const;
};

/// Calls a function of the library: DSOPT_CUBLASLT_CALL(cublasLtCreate, &handle).
#define DSOPT_CUBLASLT_CALL(name, ...)                                                                       \
  ::dsopt::runtime::cuda::CublasLt::get().check(::dsopt::runtime::cuda::CublasLt::get().name(__VA_ARGS__),   \
                                                #name)

/// One of the library's objects.
template <typename Handle, LtStatus (*CublasLt::*Destroy)(Handle)> class LtObject {
public:
  LtObject() = default;
  LtObject(LtObject &&other) : handle(other.handle) { other.handle = nullptr; }
  LtObject(const LtObject &) = delete;
  LtObject &operator=(const LtObject &) = delete;
  ~LtObject() {
    if (handle)
      (CublasLt::get().*Destroy)(handle);
  }
  operator Handle() const { return handle; }

protected:
  Handle handle = nullptr;
};

/// What the calling thread's device is used by.
class LtLibraryHandle : public LtObject<LtHandle, &CublasLt::cublasLtDestroy> {
public:
  LtLibraryHandle() { DSOPT_CUBLASLT_CALL(cublasLtCreate, &handle); }
};

/// What is done with two matrices. alpha and beta are the host's, of the type that sums have.
class Operation : public LtObject<LtOperation, &CublasLt::cublasLtMatmulDescDestroy> {
public:
  Operation(LtCompute compute, LtType scale, bool transposeA, bool transposeB);
  template <typename Value> void set(LtOperationAttribute attribute, Value value) const {
    DSOPT_CUBLASLT_CALL(cublasLtMatmulDescSetAttribute, handle, attribute, &value, sizeof(value));
  }
};

/// How a batch of matrices lies whose columns are contiguous and begin `leading` elements apart.
class Layout : public LtObject<LtLayout, &CublasLt::cublasLtMatrixLayoutDestroy> {
public:
  Layout(LtType type, int64_t rows, int64_t columns, int64_t leading, int64_t count, int64_t stride);
};

/// Which algorithms are wanted.
class Preference : public LtObject<LtPreference, &CublasLt::cublasLtMatmulPreferenceDestroy> {
public:
  Preference() { DSOPT_CUBLASLT_CALL(cublasLtMatmulPreferenceCreate, &handle); }
  template <typename Value> void set(LtPreferenceAttribute attribute, Value value) {
    DSOPT_CUBLASLT_CALL(cublasLtMatmulPreferenceSetAttribute, handle, attribute, &value, sizeof(value));
  }
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLT_H
