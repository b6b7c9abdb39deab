//===- NcclApi.h - the part of NCCL's interface in use ----------*- C++ -*-===//
//
// Types, numbers and functions as the library has them from version 2.18 on, the first
// whose communicators of every kind need not block. Nothing is linked and no header of it
// is needed: Nccl.h opens the library.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_NCCLAPI_H
#define DSOPT_LIB_RUNTIME_COMM_NCCLAPI_H

#include "Kernels/CUDA/DriverApi.h"

#include <climits>
#include <cstddef>

namespace dsopt::runtime::nccl {

using Result = int; ///< ncclResult_t
using Handle = struct CommunicatorHandle *;
using StreamHandle = cuda::StreamHandle;

enum : Result { kSuccess = 0, kInProgress = 7 };
/// ncclDataType_t: what is not added goes as bytes.
enum DataType : int { kUint8 = 1, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9 };
/// ncclRedOp_t
enum Reduction : int { kSum = 0 };

struct UniqueId {
  char bytes[128];
};

/// ncclConfig_t as version 2.18 has it: later ones take its size from the first member.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cgaClusterSize = INT_MIN, minCtas = INT_MIN, maxCtas = INT_MIN; ///< INT_MIN: as the library likes
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// F(name in the library, what it returns, parameters).
#define DSOPT_NCCL_LIBRARY(F)                                                                                \
  F(ncclGetVersion, Result, (int *version))                                                                  \
  F(ncclGetUniqueId, Result, (UniqueId * id))                                                                \
  F(ncclCommInitRankConfig, Result, (Handle * made, int size, UniqueId id, int rank, Config *config))        \
  F(ncclCommGetAsyncError, Result, (Handle communicator, Result * result))                                   \
  F(ncclCommFinalize, Result, (Handle communicator))                                                         \
  F(ncclCommDestroy, Result, (Handle communicator))                                                          \
  F(ncclCommAbort, Result, (Handle communicator))                                                            \
  F(ncclAllGather, Result,                                                                                   \
    (const void *from, void *to, size_t count, DataType type, Handle communicator, StreamHandle stream))     \
  F(ncclReduceScatter, Result,                                                                               \
    (const void *from, void *to, size_t count, DataType type, Reduction reduction, Handle communicator,      \
     StreamHandle stream))                                                                                   \
  F(ncclSend, Result,                                                                                        \
    (const void *from, size_t count, DataType type, int peer, Handle communicator, StreamHandle stream))     \
  F(ncclRecv, Result,                                                                                        \
    (void *to, size_t count, DataType type, int peer, Handle communicator, StreamHandle stream))             \
  F(ncclGroupStart, Result, ())                                                                              \
  F(ncclGroupEnd, Result, ())                                                                                \
  F(ncclGetErrorString, const char *, (Result result))                                                       \
  F(ncclGetLastError, const char *, (Handle communicator))

} // namespace dsopt::runtime::nccl

#endif // DSOPT_LIB_RUNTIME_COMM_NCCLAPI_H
