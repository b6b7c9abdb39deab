//===- CudnnApiTest.cpp - our interface of cuDNN and the library's ---------===//
//
// Compiled where the library's headers are: numbers have to be the same, and functions to
// take and return what is passed alike.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CUDA/CudnnApi.h"
#include "ApiComparison.h"
#include "dsopt/Runtime/Convolution.h"

#include <cudnn.h>
#include <gtest/gtest.h>

namespace cuda = dsopt::runtime::cuda;

namespace dsopt::runtime::cuda {
#define DSOPT_COMPARE(result, name, parameters)                                                              \
  static_assert(IsCalledAlike<result(*) parameters, decltype(&::name)>::value, #name);
DSOPT_CUDNN(DSOPT_COMPARE)
#undef DSOPT_COMPARE
} // namespace dsopt::runtime::cuda

#define DSOPT_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs), #ours);
DSOPT_SAME(cuda::kDnnSuccess, CUDNN_STATUS_SUCCESS)
DSOPT_SAME(cuda::kDnnF32, CUDNN_DATA_FLOAT)
DSOPT_SAME(cuda::kDnnBf16, CUDNN_DATA_BFLOAT16)
DSOPT_SAME(cuda::kDnnChannelsSecond, CUDNN_TENSOR_NCHW)
DSOPT_SAME(cuda::kDnnChannelsLast, CUDNN_TENSOR_NHWC)
DSOPT_SAME(cuda::kDnnCrossCorrelation, CUDNN_CROSS_CORRELATION)
DSOPT_SAME(cuda::kDnnTensorMath, CUDNN_TENSOR_OP_MATH)
DSOPT_SAME(cuda::kDnnFmaMath, CUDNN_FMA_MATH)
DSOPT_SAME(DSOPT_CONVOLUTION_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM)
DSOPT_SAME(DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
DSOPT_SAME(DSOPT_CONVOLUTION_DATA_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
DSOPT_SAME(DSOPT_CONVOLUTION_WEIGHT_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)

TEST(CudnnApi, IsTheLibrarys) {}
