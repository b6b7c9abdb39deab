//===- Calls.cpp - a convolution in a stream ------------------------------===//

#include "Driver/LibraryWork.h"
#include "Objects.h"

using namespace softdevice;

/// A value as the convolution takes it: where it lies, and its elements.
struct Place {
  const void *place;
  int64_t elements;
};

static Region regionOf(const Place &place, int64_t elementBytes, bool isRead, bool isWritten) {
  uint64_t bytes = static_cast<uint64_t>(place.elements * elementBytes);
  return {reinterpret_cast<CUdeviceptr>(place.place), bytes, 1, bytes, 1, bytes, isRead, isWritten};
}

static void submit(Objects &objects, cudnnHandle_t handle, const Convolution &c, const void *alpha, Place a,
                   Place b, void *workspace, size_t workspaceBytes, const void *beta, Place result) {
  CUstream stream = known(objects, handle)->stream;
  expect(alpha && beta && a.place && b.place && result.place, CUDNN_STATUS_BAD_PARAM,
         "a place of the convolution is null");
  for (const void *place : {a.place, b.place, result.place, const_cast<const void *>(workspace)})
    expect(reinterpret_cast<uint64_t>(place) % 16 == 0, CUDNN_STATUS_BAD_PARAM,
           "a place of the convolution is no multiple of 16");
  expect(workspaceBytes >= c.scratch && (workspace || !c.scratch), CUDNN_STATUS_BAD_PARAM,
         "a workspace of " + std::to_string(workspaceBytes) + " bytes, expected at least " +
             std::to_string(c.scratch));
  float factor = *static_cast<const float *>(alpha), before = *static_cast<const float *>(beta);
  int64_t bytes = c.type == CUDNN_DATA_FLOAT ? 4 : 2;
  std::vector<Region> regions = {regionOf(a, bytes, true, false), regionOf(b, bytes, true, false),
                                 regionOf(result, bytes, before != 0, true)};
  if (c.scratch)
    regions.push_back(regionOf({workspace, static_cast<int64_t>(c.scratch)}, 1, false, true));
  auto work = [=](const std::vector<char *> &places) {
    convolve(c, factor, places[0], places[1], before, places[2]);
  };
  expect(submitLibraryWork(stream, "a convolution", regions, work) == CUDA_SUCCESS,
         CUDNN_STATUS_EXECUTION_FAILED, softDeviceFault());
}

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t windows,
                                                      cudnnTensorDescriptor_t y, int algorithm,
                                                      size_t *bytes) {
  return callConvolutions([&](Objects &objects) {
    *bytes = convolutionOf(objects, Kind::Forward, x, w, windows, y, algorithm).scratch;
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t y,
                                                           cudnnConvolutionDescriptor_t windows,
                                                           cudnnTensorDescriptor_t x, int algorithm,
                                                           size_t *bytes) {
  return callConvolutions([&](Objects &objects) {
    *bytes = convolutionOf(objects, Kind::Data, x, w, windows, y, algorithm).scratch;
  });
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t y,
                                                             cudnnConvolutionDescriptor_t windows,
                                                             cudnnFilterDescriptor_t w, int algorithm,
                                                             size_t *bytes) {
  return callConvolutions([&](Objects &objects) {
    *bytes = convolutionOf(objects, Kind::Weight, x, w, windows, y, algorithm).scratch;
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t ofX,
                                      const void *x, cudnnFilterDescriptor_t ofW, const void *w,
                                      cudnnConvolutionDescriptor_t windows, int algorithm, void *workspace,
                                      size_t workspaceBytes, const void *beta, cudnnTensorDescriptor_t ofY,
                                      void *y) {
  return callConvolutions([&](Objects &objects) {
    Convolution c = convolutionOf(objects, Kind::Forward, ofX, ofW, windows, ofY, algorithm);
    submit(objects, handle, c, alpha, {x, c.extentX}, {w, c.extentW}, workspace, workspaceBytes, beta,
           {y, c.extentY});
  });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           cudnnFilterDescriptor_t ofW, const void *w,
                                           cudnnTensorDescriptor_t ofY, const void *y,
                                           cudnnConvolutionDescriptor_t windows, int algorithm,
                                           void *workspace, size_t workspaceBytes, const void *beta,
                                           cudnnTensorDescriptor_t ofX, void *x) {
  return callConvolutions([&](Objects &objects) {
    Convolution c = convolutionOf(objects, Kind::Data, ofX, ofW, windows, ofY, algorithm);
    submit(objects, handle, c, alpha, {y, c.extentY}, {w, c.extentW}, workspace, workspaceBytes, beta,
           {x, c.extentX});
  });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             cudnnTensorDescriptor_t ofX, const void *x,
                                             cudnnTensorDescriptor_t ofY, const void *y,
                                             cudnnConvolutionDescriptor_t windows, int algorithm,
                                             void *workspace, size_t workspaceBytes, const void *beta,
                                             cudnnFilterDescriptor_t ofW, void *w) {
  return callConvolutions([&](Objects &objects) {
    Convolution c = convolutionOf(objects, Kind::Weight, ofX, ofW, windows, ofY, algorithm);
    submit(objects, handle, c, alpha, {x, c.extentX}, {y, c.extentY}, workspace, workspaceBytes, beta,
           {w, c.extentW});
  });
}
}
