//===- Cudnn.h - cuDNN, opened at run time ----------------------*- C++ -*-===//
//
// `Cudnn` is the library, the others own what it makes. Every call that fails is an Error
// of status 2 that names the call and what the library says.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNN_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNN_H

#include "Kernels/CUDA/CudnnApi.h"

#include <string>

namespace dsopt::runtime::cuda {

/// The oldest one that programs run with, as cudnnGetVersion counts: 9.0.0.
inline constexpr size_t kOldestCudnn = 90000;

struct Cudnn {
#define DSOPT_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  DSOPT_CUDNN(DSOPT_MEMBER)
#undef DSOPT_MEMBER
  std::string version; ///< "9.1.0"

  /// The library, opened when first asked for.
  static const Cudnn &get();
  /// An Error of status 2 says what is missing.
  static Cudnn open(const std::string &file);
  /// What the library says of a status, and of what it was last asked for.
  std::string describe(DnnStatus status) const;
  /// Fails unless the status is success.
  void check(DnnStatus status, const char *call) const {
    if (status != kDnnSuccess)
      fail(status, call);
  }

private:
  [[noreturn]] void fail(DnnStatus status, const char *call) const;
};

/// Calls a function of the library: DSOPT_CUDNN_CALL(cudnnCreate, &handle).
#define DSOPT_CUDNN_CALL(name, ...)                                                                          \
  ::dsopt::runtime::cuda::Cudnn::get().check(::dsopt::runtime::cuda::Cudnn::get().name(__VA_ARGS__), #name)

/// One of the library's objects.
template <typename Handle, DnnStatus (*Cudnn::*Create)(Handle *), DnnStatus (*Cudnn::*Destroy)(Handle)>
class DnnObject {
public:
  DnnObject() {
    const Cudnn &library = Cudnn::get();
    library.check((library.*Create)(&handle), "an object of cuDNN");
  }
  DnnObject(DnnObject &&other) : handle(other.handle) { other.handle = nullptr; }
  DnnObject(const DnnObject &) = delete;
  DnnObject &operator=(const DnnObject &) = delete;
  ~DnnObject() {
    if (handle)
      (Cudnn::get().*Destroy)(handle);
  }
  operator Handle() const { return handle; }

private:
  Handle handle = nullptr;
};

/// What the calling thread's device is used by.
using DnnLibraryHandle = DnnObject<DnnHandle, &Cudnn::cudnnCreate, &Cudnn::cudnnDestroy>;
using DnnTensorShape =
    DnnObject<DnnTensor, &Cudnn::cudnnCreateTensorDescriptor, &Cudnn::cudnnDestroyTensorDescriptor>;
using DnnFilterShape =
    DnnObject<DnnFilter, &Cudnn::cudnnCreateFilterDescriptor, &Cudnn::cudnnDestroyFilterDescriptor>;
using DnnConvolutionShape = DnnObject<DnnConvolution, &Cudnn::cudnnCreateConvolutionDescriptor,
                                      &Cudnn::cudnnDestroyConvolutionDescriptor>;

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNN_H
