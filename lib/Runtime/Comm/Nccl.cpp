//===- Nccl.cpp - NCCL, opened at run time ---------------------------------===//

#include "Comm/Nccl.h"

#include "Kernels/CUDA/LibraryFile.h"
#include "dsopt/Runtime/Process.h"

namespace dsopt::runtime::nccl {

static constexpr int kOldest = 21800;
static constexpr char kLibrary[] = "libnccl.so.2";

static std::string versionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

static Library open() {
  cuda::LibraryFile file({kLibrary});
  if (!file.isOpen())
    throw Error(StatusFailure, std::string("no ") + kLibrary + ": " + file.reasons() + "; expected NCCL " +
                                   versionText(kOldest) + " or newer");
  Library library;
#define DSOPT_FIND(name, returns, parameters) file.find(library.name, #name);
  DSOPT_NCCL_LIBRARY(DSOPT_FIND)
#undef DSOPT_FIND
  int version = 0;
  if (library.ncclGetVersion)
    library.ncclGetVersion(&version);
  file.expect(version >= kOldest, kLibrary, versionText(version), versionText(kOldest));
  return library;
}

const Library &Library::get() {
  static const Library library = open();
  return library;
}

void Library::check(Result result, const char *call, Handle communicator) const {
  if (result == kSuccess || result == kInProgress)
    return;
  const char *last = ncclGetLastError(communicator);
  throw Failure(std::string(call) + ": " + ncclGetErrorString(result) +
                (last && *last ? std::string(": ") + last : ""));
}

#define DSOPT_NCCL(name, ...) Library::get().check(Library::get().name(__VA_ARGS__), #name, handle)

void Communicator::join(const UniqueId &id) {
  Config config;
  SignalsHeld held; // by the threads that the library starts
  DSOPT_NCCL(ncclCommInitRankConfig, &handle, size(), id, place, &config);
}

bool Communicator::isSettled() const {
  if (!isOpen())
    return true;
  Result state = kSuccess;
  DSOPT_NCCL(ncclCommGetAsyncError, handle, &state);
  Library::get().check(state, "NCCL", handle);
  return state == kSuccess;
}

void Communicator::abort() {
  if (handle)
    Library::get().ncclCommAbort(handle);
  handle = nullptr;
}

void Communicator::leave() { DSOPT_NCCL(ncclCommFinalize, handle); }
void Communicator::close() {
  DSOPT_NCCL(ncclCommDestroy, handle);
  handle = nullptr;
}

void Communicator::gather(const void *slice, void *target, int64_t bytes, StreamHandle stream) {
  DSOPT_NCCL(ncclAllGather, slice, target, static_cast<size_t>(bytes), kUint8, handle, stream);
}

void Communicator::reduce(const void *whole, void *slice, int64_t elements, Element type,
                          StreamHandle stream) {
  DataType added = type == Element::BF16 ? kBfloat16 : type == Element::F16 ? kFloat16 : kFloat32;
  DSOPT_NCCL(ncclReduceScatter, whole, slice, static_cast<size_t>(elements), added, kSum, handle, stream);
}

void Communicator::exchange(const std::vector<Transfer> &transfers, StreamHandle stream) {
  DSOPT_NCCL(ncclGroupStart);
  for (const Transfer &one : transfers)
    if (one.source)
      DSOPT_NCCL(ncclSend, one.source, static_cast<size_t>(one.bytes), kUint8, one.peer, handle, stream);
    else
      DSOPT_NCCL(ncclRecv, one.target, static_cast<size_t>(one.bytes), kUint8, one.peer, handle, stream);
  DSOPT_NCCL(ncclGroupEnd);
}

} // namespace dsopt::runtime::nccl
