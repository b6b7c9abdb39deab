//===- DriverApi.h - the part of the CUDA driver's interface in use -*- C++ -*-===//
//
// Types, numbers and functions as the driver has them from version 12 on. Nothing is
// linked and no header of the toolkit is needed: Driver.h opens the library. The test
// DriverApiTest compares these with the toolkit's where that is installed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVERAPI_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVERAPI_H

#include <cstddef>

namespace dsopt::runtime::cuda {

using Result = int;                 ///< CUresult
using DeviceNumber = int;           ///< CUdevice
using Address = unsigned long long; ///< CUdeviceptr
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using StreamHandle = struct StreamObject *;
using EventHandle = struct EventObject *;
using Graph = struct GraphObject *;
using GraphExec = struct GraphExecObject *;

enum : Result {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotFound = 500,
  kNotReady = 600,
};

/// CUuuid.
struct Uuid {
  char bytes[16];
};

/// CUdevice_attribute.
enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};

/// CUfunction_attribute.
enum FunctionAttribute : int {
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kRegisters = 4,
  kMaxDynamicSharedSizeBytes = 8,
};

enum : unsigned {
  kStreamNonBlocking = 1,
  kEventDefault = 0,
  kEventDisableTiming = 2,
  kHostPortable = 1, ///< CU_MEMHOSTALLOC_PORTABLE
};
enum : int { kCaptureThreadLocal = 1 };

/// F(name in the library, parameters).
#define DSOPT_CUDA_DRIVER(F)                                                                                 \
  F(cuInit, (unsigned flags))                                                                                \
  F(cuDriverGetVersion, (int *version))                                                                      \
  F(cuGetErrorName, (Result error, const char **text))                                                       \
  F(cuGetErrorString, (Result error, const char **text))                                                     \
  F(cuDeviceGetCount, (int *count))                                                                          \
  F(cuDeviceGet, (DeviceNumber * device, int ordinal))                                                       \
  F(cuDeviceGetName, (char *name, int length, DeviceNumber device))                                          \
  F(cuDeviceGetAttribute, (int *value, int attribute, DeviceNumber device))                                  \
  F(cuDeviceGetUuid_v2, (Uuid * uuid, DeviceNumber device))                                                  \
  F(cuDeviceTotalMem_v2, (size_t *bytes, DeviceNumber device))                                               \
  F(cuDevicePrimaryCtxRetain, (Context * context, DeviceNumber device))                                      \
  F(cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                                                     \
  F(cuCtxSetCurrent, (Context context))                                                                      \
  F(cuModuleLoadData, (Module * module, const void *image))                                                  \
  F(cuModuleUnload, (Module module))                                                                         \
  F(cuModuleGetFunction, (Function * function, Module module, const char *name))                             \
  F(cuFuncGetAttribute, (int *value, int attribute, Function function))                                      \
  F(cuFuncSetAttribute, (Function function, int attribute, int value))                                       \
  F(cuLaunchKernel,                                                                                          \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,    \
     unsigned blockZ, unsigned sharedBytes, StreamHandle stream, void **parameters, void **extra))           \
  F(cuMemGetInfo_v2, (size_t *left, size_t *total))                                                          \
  F(cuMemAlloc_v2, (Address * address, size_t bytes))                                                        \
  F(cuMemFree_v2, (Address address))                                                                         \
  F(cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                          \
  F(cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))                                     \
  F(cuMemHostUnregister, (void *address))                                                                    \
  F(cuMemFreeHost, (void *address))                                                                          \
  F(cuMemcpyHtoDAsync_v2, (Address to, const void *from, size_t bytes, StreamHandle stream))                 \
  F(cuMemcpyDtoHAsync_v2, (void *to, Address from, size_t bytes, StreamHandle stream))                       \
  F(cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, StreamHandle stream))                     \
  F(cuMemsetD8Async, (Address to, unsigned char value, size_t count, StreamHandle stream))                   \
  F(cuStreamCreate, (StreamHandle * stream, unsigned flags))                                                 \
  F(cuStreamDestroy_v2, (StreamHandle stream))                                                               \
  F(cuStreamSynchronize, (StreamHandle stream))                                                              \
  F(cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))                             \
  F(cuEventCreate, (EventHandle * event, unsigned flags))                                                    \
  F(cuEventDestroy_v2, (EventHandle event))                                                                  \
  F(cuEventRecord, (EventHandle event, StreamHandle stream))                                                 \
  F(cuEventQuery, (EventHandle event))                                                                       \
  F(cuEventSynchronize, (EventHandle event))                                                                 \
  F(cuEventElapsedTime, (float *milliseconds, EventHandle begin, EventHandle end))                           \
  F(cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                                                \
  F(cuStreamEndCapture, (StreamHandle stream, Graph * graph))                                                \
  F(cuGraphInstantiateWithFlags, (GraphExec * made, Graph graph, unsigned long long flags))                  \
  F(cuGraphLaunch, (GraphExec graph, StreamHandle stream))                                                   \
  F(cuGraphExecDestroy, (GraphExec graph))                                                                   \
  F(cuGraphDestroy, (Graph graph))

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_DRIVERAPI_H
