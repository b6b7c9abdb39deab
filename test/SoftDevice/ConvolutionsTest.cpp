//===- ConvolutionsTest.cpp - cuDNN's calls on the software device --------===//

#include "Convolutions/Api.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {
constexpr size_t kScratch = 4096;

/// x of 1x1x4x4, w of 1x1x3x3 and y of 1x1x2x2, all ones.
class ConvolutionCalls : public testing::Test {
protected:
  void SetUp() override {
    softDeviceRestart(1);
    CUcontext context;
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fine(cudnnCreate(&handle));
    fine(cudnnSetStream(handle, stream));
    fine(cudnnCreateTensorDescriptor(&x));
    fine(cudnnCreateTensorDescriptor(&y));
    fine(cudnnCreateFilterDescriptor(&w));
    fine(cudnnCreateConvolutionDescriptor(&windows));
    describe(x, 4);
    describe(y, 2);
    int filter[] = {1, 1, 3, 3}, none[] = {0, 0}, one[] = {1, 1};
    fine(cudnnSetFilterNdDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, filter));
    fine(cudnnSetConvolutionNdDescriptor(windows, 2, none, one, one, CUDNN_CROSS_CORRELATION,
                                         CUDNN_DATA_FLOAT));
    fine(cudnnSetConvolutionMathType(windows, CUDNN_FMA_MATH));
    ok(cuMemAlloc_v2(&memory, 1 << 16));
    std::vector<float> ones(1 << 13, 1.f);
    ok(cuMemcpyHtoDAsync_v2(memory, ones.data(), ones.size() * 4, stream));
    ok(cuStreamSynchronize(stream));
  }
  void TearDown() override {
    cudnnDestroyConvolutionDescriptor(windows);
    cudnnDestroyFilterDescriptor(w);
    cudnnDestroyTensorDescriptor(y);
    cudnnDestroyTensorDescriptor(x);
    cudnnDestroy(handle);
    EXPECT_EQ(softConvolutionsOpenObjects(), 0);
  }

  void ok(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS) << softDeviceFault(); }
  void fine(cudnnStatus_t status) { ASSERT_EQ(status, CUDNN_STATUS_SUCCESS) << fault(); }
  static std::string fault() {
    char text[256];
    cudnnGetLastErrorString(text, sizeof(text));
    return text;
  }
  void describe(cudnnTensorDescriptor_t tensor, int size) {
    int shape[] = {1, 1, size, size}, strides[] = {size * size, size * size, size, 1};
    fine(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, shape, strides));
  }
  /// x, w, y and scratch lie 1 KiB apart.
  cudnnStatus_t forward(int algorithm, size_t scratch = kScratch, int64_t ofY = 2048) {
    float alpha = 1, beta = 0;
    auto at = [&](int64_t byte) { return reinterpret_cast<void *>(memory + byte); };
    return cudnnConvolutionForward(handle, &alpha, x, at(0), w, at(1024), windows, algorithm, at(4096),
                                   scratch, &beta, y, at(ofY));
  }
  void refuses(cudnnStatus_t found, cudnnStatus_t status, const std::string &text) {
    EXPECT_EQ(found, status);
    EXPECT_EQ(fault(), text);
  }

  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t windows = nullptr;
};
} // namespace

TEST_F(ConvolutionCalls, AddsUp) {
  fine(forward(1));
  float result[4];
  ok(cuMemcpyDtoHAsync_v2(result, memory + 2048, sizeof(result), stream));
  ok(cuStreamSynchronize(stream));
  for (float value : result)
    EXPECT_EQ(value, 9);
}

TEST_F(ConvolutionCalls, RefusesWhatDoesNotFit) {
  refuses(forward(2), CUDNN_STATUS_NOT_SUPPORTED, "the software device has no forward algorithm 2");
  refuses(forward(1, 8), CUDNN_STATUS_BAD_PARAM, "a workspace of 8 bytes, expected at least 72");
  refuses(forward(1, kScratch, 2052), CUDNN_STATUS_BAD_PARAM,
          "a place of the convolution is no multiple of 16");
  fine(cudnnSetConvolutionGroupCount(windows, 2));
  refuses(forward(1), CUDNN_STATUS_BAD_PARAM, "batches, channels or groups do not fit");
  fine(cudnnSetConvolutionGroupCount(windows, 1));
  describe(y, 3);
  refuses(forward(1), CUDNN_STATUS_BAD_PARAM, "y has 3 places in dimension 0, expected 2");
  int shape[] = {1, 2, 2, 2}, strides[] = {8, 1, 4, 2};
  fine(cudnnSetTensorNdDescriptor(y, CUDNN_DATA_FLOAT, 4, shape, strides));
  int filter[] = {2, 1, 3, 3};
  fine(cudnnSetFilterNdDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, filter));
  refuses(forward(1), CUDNN_STATUS_NOT_SUPPORTED, "x or y does not lie as w's format says");
}

TEST_F(ConvolutionCalls, SeesWhatItTouches) {
  // y is where x is read.
  fine(forward(1, kScratch, 16));
  EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NE(std::string(softDeviceFault()).find("a convolution writes bytes that it also reads elsewhere"),
            std::string::npos)
      << softDeviceFault();
}

TEST_F(ConvolutionCalls, LosesBitsWithoutTheMathTypeOfFp32) {
  fine(cudnnSetConvolutionMathType(windows, CUDNN_DEFAULT_MATH));
  std::vector<float> values(16, 1.0001f);
  ok(cuMemcpyHtoDAsync_v2(memory, values.data(), 64, stream));
  fine(forward(1));
  float result;
  ok(cuMemcpyDtoHAsync_v2(&result, memory + 2048, sizeof(result), stream));
  ok(cuStreamSynchronize(stream));
  EXPECT_EQ(result, 9);
}
