//===- Objects.cpp - the library, its objects and what they say -----------===//

#include "Objects.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softdevice {

Objects &Objects::get() {
  // Never freed: threads and handlers at the end of a process may still call.
  static Objects *objects = new Objects();
  return *objects;
}

cudnnStatus_t callConvolutions(const std::function<void(Objects &)> &work) {
  Objects &objects = Objects::get();
  std::lock_guard<std::mutex> lock(objects.mutex);
  try {
    work(objects);
    return CUDNN_STATUS_SUCCESS;
  } catch (const ConvolutionError &error) {
    objects.fault = error.text;
    std::fprintf(stderr, "software device: cuDNN: %s\n", error.text.c_str());
    return error.status;
  }
}

uint64_t setting(const char *name, uint64_t byDefault) {
  const char *text = std::getenv("SOFT_CUDNN");
  std::string key = std::string(name) + "=";
  for (size_t at = 0; text && *text; text += at + (text[at] == ',')) {
    at = std::strcspn(text, ",");
    if (!std::strncmp(text, key.c_str(), key.size()))
      return std::strtoull(text + key.size(), nullptr, 10);
  }
  return byDefault;
}

template <typename Object> static cudnnStatus_t create(Object **made) {
  return callConvolutions([&](Objects &objects) {
    *made = new Object();
    objects.all.insert(*made);
  });
}
template <typename Object> static cudnnStatus_t destroy(Object *object) {
  return callConvolutions([&](Objects &objects) {
    delete known(objects, object);
    objects.all.erase(object);
  });
}

static std::vector<int64_t> listed(const int *values, int count, int least) {
  expect(values != nullptr, CUDNN_STATUS_BAD_PARAM, "a list is null");
  std::vector<int64_t> list(values, values + count);
  for (int64_t value : list)
    expect(value >= least, CUDNN_STATUS_BAD_PARAM,
           "an entry of " + std::to_string(value) + ", expected " + std::to_string(least) + " or more");
  return list;
}

static void checkType(int type) {
  expect(type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16, CUDNN_STATUS_NOT_SUPPORTED,
         "the software device does not convolve type " + std::to_string(type));
}

} // namespace softdevice

using namespace softdevice;

extern "C" {

size_t cudnnGetVersion() { return setting("version", 91300); }

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_STATUS_UNKNOWN";
  }
}

void cudnnGetLastErrorString(char *message, size_t bytes) {
  Objects &objects = Objects::get();
  std::lock_guard<std::mutex> lock(objects.mutex);
  std::snprintf(message, bytes, "%s", objects.fault.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
    return callConvolutions([](Objects &) {
      expect(false, CUDNN_STATUS_NOT_INITIALIZED, "no context is current in this thread");
    });
  return create(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  return callConvolutions([&](Objects &objects) { known(objects, handle)->stream = stream; });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *made) { return create(made); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) { return destroy(tensor); }
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int type, int rank, const int *shape,
                                         const int *strides) {
  return callConvolutions([&](Objects &objects) {
    checkType(type);
    expect(rank == 4 || rank == 5, CUDNN_STATUS_NOT_SUPPORTED,
           "a tensor of rank " + std::to_string(rank) + ", expected 4 or 5");
    *known(objects, tensor) = {type, listed(shape, rank, 1), listed(strides, rank, 1)};
  });
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *made) { return create(made); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) { return destroy(filter); }
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, int type, int format, int rank,
                                         const int *shape) {
  return callConvolutions([&](Objects &objects) {
    checkType(type);
    expect(rank == 4 || rank == 5, CUDNN_STATUS_NOT_SUPPORTED,
           "a filter of rank " + std::to_string(rank) + ", expected 4 or 5");
    expect(format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC, CUDNN_STATUS_BAD_PARAM,
           "a filter of format " + std::to_string(format));
    *known(objects, filter) = {type, format, listed(shape, rank, 1)};
  });
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *made) { return create(made); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t windows) {
  return destroy(windows);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t windows, int rank, const int *pads,
                                              const int *strides, const int *dilations, int mode,
                                              int computeType) {
  return callConvolutions([&](Objects &objects) {
    expect(mode == CUDNN_CROSS_CORRELATION && computeType == CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED,
           "the software device adds up cross-correlations in fp32 alone");
    softWindows *made = known(objects, windows);
    made->pads = listed(pads, rank, 0);
    made->strides = listed(strides, rank, 1);
    made->dilations = listed(dilations, rank, 1);
  });
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t windows, int groups) {
  return callConvolutions([&](Objects &objects) { known(objects, windows)->groups = groups; });
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t windows, int math) {
  return callConvolutions([&](Objects &objects) { known(objects, windows)->math = math; });
}

int softConvolutionsOpenObjects() {
  Objects &objects = Objects::get();
  std::lock_guard<std::mutex> lock(objects.mutex);
  return static_cast<int>(objects.all.size());
}
}
