//===- Convolutions.h - convolutions on a device ----------------*- C++ -*-===//
//
// The convolutions of ABI.h by cuDNN. Each takes the algorithm that the program names, so
// its bits are those of its sizes, type and architecture; fp32 is multiplied as fp32. What
// the library refuses, or would take more scratch for than is planned, is an Error of
// status 2 that names convolution and algorithm. Of one device; of one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CONVOLUTIONS_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CONVOLUTIONS_H

#include "Kernels/CUDA/Cudnn.h"
#include "Kernels/CUDA/Driver.h"
#include "dsopt/Runtime/Convolution.h"

#include <array>
#include <map>

namespace dsopt::runtime::cuda {

/// "the gradient of the weight of the convolution 4x3x16x16 with 8x3x3x3 to 4x8x16x16 (f32, ...)".
std::string convolutionText(const dsopt_convolution &convolution);

class Convolutions {
public:
  /// An Error of status 2 where cuDNN is not there.
  explicit Convolutions(Device &device) : device(device) {}

  /// As dsopt_rt_convolution, behind what the stream has. The workspace has the bytes that
  /// dsopt_convolution_workspace says.
  void convolve(StreamHandle stream, const dsopt_convolution &convolution, const void *a, const void *b,
                void *result, void *workspace, bool accumulate);

  /// What convolves, for logs: "cuDNN 9.1.0".
  std::string library() const { return "cuDNN " + Cudnn::get().version; }

private:
  struct Prepared {
    DnnTensorShape x, y;
    DnnFilterShape w;
    DnnConvolutionShape windows;
    size_t workspaceBytes = 0;
  };
  const Prepared &prepare(const dsopt_convolution &convolution);
  [[noreturn]] void refuse(const dsopt_convolution &convolution, DnnStatus status) const;

  Device &device;
  DnnLibraryHandle handle;
  /// By all that the descriptor says.
  std::map<std::array<int64_t, sizeof(dsopt_convolution) / sizeof(int64_t)>, Prepared> prepared;
};

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CONVOLUTIONS_H
