//===- CudnnApi.h - the part of cuDNN's interface in use --------*- C++ -*-===//
//
// Types, numbers and functions as cuDNN 9 has them. Nothing is linked and no header of the
// library is needed: Cudnn.h opens it. The functions take an algorithm by its number;
// heuristics and searches of the library are not used.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNNAPI_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNNAPI_H

#include "Kernels/CUDA/DriverApi.h"

namespace dsopt::runtime::cuda {

using DnnStatus = int; ///< cudnnStatus_t
using DnnHandle = struct DnnContext *;
using DnnTensor = struct DnnTensorObject *;           ///< cudnnTensorDescriptor_t
using DnnFilter = struct DnnFilterObject *;           ///< cudnnFilterDescriptor_t
using DnnConvolution = struct DnnConvolutionObject *; ///< cudnnConvolutionDescriptor_t

inline constexpr DnnStatus kDnnSuccess = 0;

/// cudnnDataType_t.
enum DnnType : int { kDnnF32 = 0, kDnnBf16 = 9 };
/// cudnnTensorFormat_t.
enum DnnFormat : int { kDnnChannelsSecond = 0, kDnnChannelsLast = 1 };
/// cudnnConvolutionMode_t.
enum DnnMode : int { kDnnCrossCorrelation = 1 };
/// cudnnMathType_t: with tensor units but no conversion of what they take, and multiplications and additions
/// alone (the default takes fp32 as TF32).
enum DnnMath : int { kDnnTensorMath = 1, kDnnFmaMath = 3 };

/// F(result, name in the library, parameters).
#define DSOPT_CUDNN(F)                                                                                       \
  F(size_t, cudnnGetVersion, ())                                                                             \
  F(const char *, cudnnGetErrorString, (DnnStatus status))                                                   \
  F(void, cudnnGetLastErrorString, (char *message, size_t bytes))                                            \
  F(DnnStatus, cudnnCreate, (DnnHandle * handle))                                                            \
  F(DnnStatus, cudnnDestroy, (DnnHandle handle))                                                             \
  F(DnnStatus, cudnnSetStream, (DnnHandle handle, StreamHandle stream))                                      \
  F(DnnStatus, cudnnCreateTensorDescriptor, (DnnTensor * tensor))                                            \
  F(DnnStatus, cudnnDestroyTensorDescriptor, (DnnTensor tensor))                                             \
  F(DnnStatus, cudnnSetTensorNdDescriptor,                                                                   \
    (DnnTensor tensor, int type, int rank, const int *shape, const int *strides))                            \
  F(DnnStatus, cudnnCreateFilterDescriptor, (DnnFilter * filter))                                            \
  F(DnnStatus, cudnnDestroyFilterDescriptor, (DnnFilter filter))                                             \
  F(DnnStatus, cudnnSetFilterNdDescriptor,                                                                   \
    (DnnFilter filter, int type, int format, int rank, const int *shape))                                    \
  F(DnnStatus, cudnnCreateConvolutionDescriptor, (DnnConvolution * convolution))                             \
  F(DnnStatus, cudnnDestroyConvolutionDescriptor, (DnnConvolution convolution))                              \
  F(DnnStatus, cudnnSetConvolutionNdDescriptor,                                                              \
    (DnnConvolution convolution, int rank, const int *pads, const int *strides, const int *dilations,        \
     int mode, int computeType))                                                                             \
  F(DnnStatus, cudnnSetConvolutionGroupCount, (DnnConvolution convolution, int groups))                      \
  F(DnnStatus, cudnnSetConvolutionMathType, (DnnConvolution convolution, int math))                          \
  F(DnnStatus, cudnnGetConvolutionForwardWorkspaceSize,                                                      \
    (DnnHandle handle, DnnTensor x, DnnFilter w, DnnConvolution convolution, DnnTensor y, int algorithm,     \
     size_t *bytes))                                                                                         \
  F(DnnStatus, cudnnGetConvolutionBackwardDataWorkspaceSize,                                                 \
    (DnnHandle handle, DnnFilter w, DnnTensor y, DnnConvolution convolution, DnnTensor x, int algorithm,     \
     size_t *bytes))                                                                                         \
  F(DnnStatus, cudnnGetConvolutionBackwardFilterWorkspaceSize,                                               \
    (DnnHandle handle, DnnTensor x, DnnTensor y, DnnConvolution convolution, DnnFilter w, int algorithm,     \
     size_t *bytes))                                                                                         \
  F(DnnStatus, cudnnConvolutionForward,                                                                      \
    (DnnHandle handle, const void *alpha, DnnTensor ofX, const void *x, DnnFilter ofW, const void *w,        \
     DnnConvolution convolution, int algorithm, void *workspace, size_t workspaceBytes, const void *beta,    \
     DnnTensor ofY, void *y))                                                                                \
  F(DnnStatus, cudnnConvolutionBackwardData,                                                                 \
    (DnnHandle handle, const void *alpha, DnnFilter ofW, const void *w, DnnTensor ofY, const void *y,        \
     DnnConvolution convolution, int algorithm, void *workspace, size_t workspaceBytes, const void *beta,    \
     DnnTensor ofX, void *x))                                                                                \
  F(DnnStatus, cudnnConvolutionBackwardFilter,                                                               \
    (DnnHandle handle, const void *alpha, DnnTensor ofX, const void *x, DnnTensor ofY, const void *y,        \
     DnnConvolution convolution, int algorithm, void *workspace, size_t workspaceBytes, const void *beta,    \
     DnnFilter ofW, void *w))

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUDNNAPI_H
