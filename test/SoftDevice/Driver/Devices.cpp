//===- Devices.cpp - devices and contexts ---------------------------------===//

#include "State.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

using namespace softdevice;

extern "C" {

CUresult cuInit(unsigned flags) {
  return call(
      [&](State &state) {
        require(flags == 0, CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
        require(state.devices > 0, CUDA_ERROR_NO_DEVICE, "");
        require(state.init == CUDA_SUCCESS, state.init, "");
        state.isInitialized = true;
      },
      false);
}

CUresult cuDriverGetVersion(int *version) {
  return call([&](State &state) { *version = state.version; }, false);
}

namespace {
struct NamedError {
  CUresult error;
  const char *name, *text;
};
} // namespace

static constexpr NamedError kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const NamedError *findError(CUresult error) {
  for (const NamedError &row : kErrors)
    if (row.error == error)
      return &row;
  return nullptr;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  const NamedError *row = findError(error);
  *text = row ? row->name : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  const NamedError *row = findError(error);
  *text = row ? row->text : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int, uint64_t, int *found) {
  for (const char *ending : {"_v2", ""})
    if ((*function = dlsym(RTLD_DEFAULT, (std::string(symbol) + ending).c_str())))
      break;
  if (found)
    *found = *function ? 0 : 1;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuDeviceGetCount(int *count) {
  return call([&](State &state) { *count = state.devices; }, false);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return call(
      [&](State &state) {
        require(ordinal >= 0 && ordinal < state.devices, CUDA_ERROR_INVALID_DEVICE,
                "device " + std::to_string(ordinal) + " of " + std::to_string(state.devices));
        *device = ordinal;
      },
      false);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  return call([&](State &state) { std::snprintf(name, length, "software device (sm_%d)", state.arch); },
              false);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  return call(
      [&](State &) {
        std::memset(uuid->bytes, 0, sizeof(uuid->bytes));
        uuid->bytes[0] = static_cast<char>(device + 1);
      },
      false);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  return call(
      [&](State &state) {
        switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
          *value = 1024;
          return;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
          *value = 48 << 10;
          return;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
          *value = 227 << 10;
          return;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
          *value = 32;
          return;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
          *value = 1000000;
          return;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
          *value = 4;
          return;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
          *value = device + 1;
          return;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
          *value = 1;
          return;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
          *value = state.arch / 10;
          return;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
          *value = state.arch % 10;
          return;
        default:
          throw CallError{CUDA_ERROR_INVALID_VALUE,
                          "the software device does not have attribute " + std::to_string(attribute)};
        }
      },
      false);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  return call([&](State &state) { *bytes = state.memoryBytes; }, false);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return call(
      [&](State &state) {
        require(state.isInitialized, CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
        require(device >= 0 && device < state.devices, CUDA_ERROR_INVALID_DEVICE, "");
        *context = &state.contexts[device];
        ++state.contextUsers;
      },
      false);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return call(
      [](State &state) {
        if (state.saysIssues)
          std::fprintf(stderr, "software device: %lld calls put something into streams\n",
                       static_cast<long long>(state.issues));
        require(state.contextUsers > 0, CUDA_ERROR_INVALID_CONTEXT, "nobody has the context");
        if (--state.contextUsers == 0)
          state.checkHandles();
      },
      false);
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call([&](State &) { currentContext() = context; }, false);
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return call([&](State &) { *context = currentContext(); }, false);
}

CUresult cuCtxSynchronize() {
  return call([](State &state) {
    state.refuseCapture(/*byOthers=*/true);
    state.timeline->waitForAll();
  });
}

int64_t softDeviceIssues() { return State::get().issues; }

int64_t softDevicePending() { return static_cast<int64_t>(State::get().timeline->pending()); }

const char *softDeviceFault() { return State::get().fault.c_str(); }

void softDeviceRestart(uint64_t seed) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  state.restart(seed);
}
}
