//===- Calls.cpp - NCCL's calls on the software device --------------------===//
//
// SOFT_NCCL="version=22809" says which version it is.
//
//===----------------------------------------------------------------------===//

#include "Communicator.h"
#include "Driver/LibraryWork.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

using namespace softdevice;

namespace {
constexpr size_t kConfigBytes = sizeof(ncclConfig_t);
constexpr unsigned kConfigMagic = 0xcafebeef;

/// What a thread has begun to say between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<Communicator>, std::shared_ptr<Operation>>> operations;
};
thread_local Group group;
size_t communicators = 0; ///< open

/// Under the driver's lock, with what goes wrong as the result.
ncclResult_t guarded(const std::function<ncclResult_t()> &work) {
  ncclResult_t result = ncclSuccess;
  CUresult driver = call([&](State &) {
    try {
      result = work();
    } catch (const NcclError &error) {
      lastNcclError() = error.text;
      std::fprintf(stderr, "software nccl: %s\n", error.text.c_str());
      result = error.result;
    }
  });
  return driver == CUDA_SUCCESS ? result : ncclUnhandledCudaError;
}

void need(bool holds, const std::string &text) {
  if (!holds)
    throw NcclError{ncclInvalidArgument, text};
}

Communicator &of(ncclComm_t comm) {
  need(comm != nullptr, "no communicator");
  return *comm->communicator;
}

/// Operations of a group on one communicator are one.
ncclResult_t endGroup() {
  if (--group.depth > 0)
    return ncclSuccess;
  auto operations = std::move(group.operations);
  group.operations.clear();
  ncclResult_t result = ncclSuccess;
  for (auto &[communicator, operation] : operations)
    if (ncclResult_t one = communicator->issue(operation); one != ncclSuccess)
      result = one;
  return result;
}

/// Adds to the group's operation of the communicator, outside of groups one of its own.
ncclResult_t add(ncclComm_t comm, CUstream stream, const std::string &what, const std::vector<Part> &sends,
                 const std::vector<Part> &receives, std::optional<Sum> sum = {}) {
  return guarded([&] {
    Communicator &communicator = of(comm);
    need(!communicator.isFinalized, what + " on a communicator that is finalized");
    for (const auto *parts : {&sends, &receives})
      for (const Part &part : *parts)
        need(part.peer >= 0 && part.peer < communicator.size,
             what + ": peer " + std::to_string(part.peer) + " of " + std::to_string(communicator.size));
    ++group.depth;
    std::shared_ptr<Operation> operation;
    for (auto &[other, one] : group.operations)
      if (other == comm->communicator && one->stream == stream)
        operation = one;
    if (!operation) {
      operation = std::make_shared<Operation>();
      operation->stream = stream;
      group.operations.emplace_back(comm->communicator, operation);
    }
    operation->what += (operation->what.empty() ? "" : ", ") + what;
    operation->sends.insert(operation->sends.end(), sends.begin(), sends.end());
    if (sum) {
      sum->firstPart = operation->receives.size();
      operation->sums.push_back(*sum);
    }
    operation->receives.insert(operation->receives.end(), receives.begin(), receives.end());
    return endGroup();
  });
}

uint64_t asAddress(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }
} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  const char *text = std::getenv("SOFT_NCCL");
  *version = text && std::strncmp(text, "version=", 8) == 0 ? std::atoi(text + 8) : 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::memset(id->internal, 0, sizeof(id->internal));
  std::string uuid;
  std::getline(std::ifstream("/proc/sys/kernel/random/uuid"), uuid);
  std::memcpy(id->internal, uuid.data(), std::min<size_t>(uuid.size(), 32));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  return guarded([&]() -> ncclResult_t {
    need(config && config->size >= kConfigBytes && config->magic == kConfigMagic,
         "this is no configuration of a communicator");
    need(rank >= 0 && rank < size, "rank " + std::to_string(rank) + " of " + std::to_string(size));
    CUuuid device;
    cuDeviceGetUuid_v2(&device, currentContext()->device);
    watchHandles("communicators", [] { return communicators; });
    ++communicators;
    *comm = new ncclComm{std::make_shared<Communicator>(id, rank, size, device)};
    (*comm)->communicator->isBlocking = config->blocking != 0;
    need(config->blocking == 0, "the software device has communicators that do not block only");
    return group.depth ? ncclSuccess : ncclInProgress;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  return guarded([&] {
    *result = of(comm).state();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  // Also after a fault of the device.
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  comm->communicator->abort();
  --communicators;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&] {
    of(comm).isFinalized = true;
    return of(comm).state();
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&] {
    need(of(comm).isFinalized, "a communicator is destroyed that was not finalized");
    --communicators;
    delete comm;
    return ncclSuccess;
  });
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           CUstream stream) {
  std::vector<Part> sends, receives;
  ncclResult_t checked = guarded([&] {
    size_t bytes = count * bytesOf(type);
    for (int peer = 0; peer < of(comm).size; ++peer) {
      uint64_t place = asAddress(to) + peer * bytes;
      if (peer == of(comm).rank && place == asAddress(from))
        continue;
      sends.push_back({peer, Header::Gather, asAddress(from), count, type});
      receives.push_back({peer, Header::Gather, place, count, type});
    }
    return ncclSuccess;
  });
  return checked ? checked : add(comm, stream, "ncclAllGather of " + std::to_string(count), sends, receives);
}

/// Along a ring: each slice begins behind its owner, who adds last.
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, CUstream stream) {
  std::vector<Part> sends, receives;
  int size = 0;
  ncclResult_t checked = guarded([&] {
    need(type == 6 || type == 7 || type == 9,
         "the software device adds float16, float32 and bfloat16 only, not type " + std::to_string(type));
    need(reduction == 0, "the software device has sums only, not reduction " + std::to_string(reduction));
    size = of(comm).size;
    size_t bytes = count * bytesOf(type);
    for (int peer = 0; peer < size; ++peer)
      sends.push_back({peer, Header::Sum, asAddress(from) + peer * bytes, count, type});
    for (int step = 1; step <= size; ++step)
      receives.push_back({(of(comm).rank + step) % size, Header::Sum, 0, count, type});
    return ncclSuccess;
  });
  if (checked)
    return checked;
  Sum sum{asAddress(to), count, type, 0, static_cast<size_t>(size)};
  return add(comm, stream, "ncclReduceScatter of " + std::to_string(count), sends, receives, sum);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return add(comm, stream, "ncclSend of " + std::to_string(count) + " to rank " + std::to_string(peer),
             {{peer, Header::Value, asAddress(from), count, type}}, {});
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return add(comm, stream, "ncclRecv of " + std::to_string(count) + " from rank " + std::to_string(peer), {},
             {{peer, Header::Value, asAddress(to), count, type}});
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return guarded([] {
    if (group.depth == 0)
      throw NcclError{ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart"};
    return endGroup();
  });
}

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                      "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                      "internal error - please report this issue to the NCCL developers",
                                      "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                      "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result < 8 ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastNcclError().c_str(); }
}
