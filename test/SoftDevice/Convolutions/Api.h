//===- Api.h - the part of cuDNN's interface that there is ------*- C++ -*-===//
//
// Names, numbers and sizes are the library's, version 9; nothing of its own headers is
// needed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_API_H
#define DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_API_H

#include "Driver/Api.h"

extern "C" {

typedef int cudnnStatus_t;
typedef struct softDnnContext *cudnnHandle_t;
typedef struct softTensor *cudnnTensorDescriptor_t;
typedef struct softFilter *cudnnFilterDescriptor_t;
typedef struct softWindows *cudnnConvolutionDescriptor_t;

enum : cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
};
enum : int { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_BFLOAT16 = 9 };
enum : int { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };
enum : int { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum : int { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_FMA_MATH = 3 };

size_t cudnnGetVersion();
const char *cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char *message, size_t bytes);
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream);

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *made);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int type, int rank, const int *shape,
                                         const int *strides);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *made);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter);
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, int type, int format, int rank,
                                         const int *shape);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *made);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t windows);
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t windows, int rank, const int *pads,
                                              const int *strides, const int *dilations, int mode,
                                              int computeType);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t windows, int groups);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t windows, int math);

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t windows,
                                                      cudnnTensorDescriptor_t y, int algorithm,
                                                      size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t y,
                                                           cudnnConvolutionDescriptor_t windows,
                                                           cudnnTensorDescriptor_t x, int algorithm,
                                                           size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t y,
                                                             cudnnConvolutionDescriptor_t windows,
                                                             cudnnFilterDescriptor_t w, int algorithm,
                                                             size_t *bytes);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t ofX,
                                      const void *x, cudnnFilterDescriptor_t ofW, const void *w,
                                      cudnnConvolutionDescriptor_t windows, int algorithm, void *workspace,
                                      size_t workspaceBytes, const void *beta, cudnnTensorDescriptor_t ofY,
                                      void *y);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           cudnnFilterDescriptor_t ofW, const void *w,
                                           cudnnTensorDescriptor_t ofY, const void *y,
                                           cudnnConvolutionDescriptor_t windows, int algorithm,
                                           void *workspace, size_t workspaceBytes, const void *beta,
                                           cudnnTensorDescriptor_t ofX, void *x);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             cudnnTensorDescriptor_t ofX, const void *x,
                                             cudnnTensorDescriptor_t ofY, const void *y,
                                             cudnnConvolutionDescriptor_t windows, int algorithm,
                                             void *workspace, size_t workspaceBytes, const void *beta,
                                             cudnnFilterDescriptor_t ofW, void *w);

/// Of the software device alone: how many objects of all kinds are open.
int softConvolutionsOpenObjects();
}

#endif // DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_API_H
