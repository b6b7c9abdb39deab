//===- Memory.cpp - a device's memory and its mirror on the host ----------===//

#include "Kernels/CUDA/Memory.h"

#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <iterator>

namespace dsopt::runtime::cuda {

static constexpr int64_t kPage = 4096;

static std::string mebibytes(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

Memory::Memory(const Device &device, char *mirror, int64_t bytes) : mirror(mirror), bytes(bytes) {
  const Driver &driver = Driver::get();
  Result result = driver.cuMemAlloc_v2(&address, std::max<int64_t>(bytes, 1));
  if (result == kOutOfMemory)
    throw Error(StatusFailure, "the program needs " + mebibytes(bytes) + " of " + device.name() +
                                   "'s memory, which has " + mebibytes(device.freeBytes()) + " left of " +
                                   mebibytes(device.bytes()) + ": compile it with -device-memory=" +
                                   std::to_string(device.freeBytes() >> 20) + "M or less");
  driver.check(result, "cuMemAlloc_v2");
}

Memory::~Memory() {
  const Driver &driver = Driver::get();
  for (auto [first, end] : pinned)
    driver.cuMemHostUnregister(mirror + first * kPage);
  driver.cuMemFree_v2(address);
}

void Memory::pin(char *mirrored, int64_t count) {
  int64_t first = (mirrored - mirror) / kPage, end = (mirrored - mirror + count + kPage - 1) / kPage;
  // What is pinned is so once.
  for (int64_t at = first; at < end;) {
    auto next = pinned.upper_bound(at);
    if (next != pinned.begin() && std::prev(next)->second > at) {
      at = std::prev(next)->second;
      continue;
    }
    int64_t until = next == pinned.end() ? end : std::min(end, next->first);
    if (Driver::get().cuMemHostRegister_v2(mirror + at * kPage, (until - at) * kPage, 0) != kSuccess)
      return;
    pinned[at] = until;
    at = until;
  }
}

char *Memory::onDevice(const void *mirrored) const {
  if (!mirrored)
    return nullptr;
  if (!contains(mirrored))
    throw Error(StatusInput, "program table: a device's action uses what is not in the device's memory");
  return reinterpret_cast<char *>(address) + (static_cast<const char *>(mirrored) - mirror);
}

void Memory::upload(const void *mirrored, int64_t count, StreamHandle stream) const {
  if (count)
    DSOPT_CUDA(cuMemcpyHtoDAsync_v2, addressOf(onDevice(mirrored)), mirrored, count, stream);
}
void Memory::download(void *mirrored, int64_t count, StreamHandle stream) const {
  if (count)
    DSOPT_CUDA(cuMemcpyDtoHAsync_v2, mirrored, addressOf(onDevice(mirrored)), count, stream);
}

static constexpr const char *kAllow =
    "allow more of it (ulimit -l unlimited, in a container --ulimit memlock=-1)";

Pinned::Pinned(int64_t bytes) {
  const Driver &driver = Driver::get();
  Result result = driver.cuMemHostAlloc(&memory, std::max<int64_t>(bytes, 1), 0);
  if (result == kOutOfMemory)
    throw Error(StatusFailure, "cannot lock " + std::to_string(bytes) +
                                   " bytes of the host's memory for its device: " + kAllow);
  driver.check(result, "cuMemHostAlloc");
}
Pinned::~Pinned() { Driver::get().cuMemFreeHost(memory); }

PinnedRange::PinnedRange(void *begin, int64_t bytes) : begin(nullptr) {
  Result result = bytes > 0 ? Driver::get().cuMemHostRegister_v2(begin, bytes, 0) : kSuccess;
  if (result == kSuccess && bytes > 0)
    this->begin = begin;
  if (result == kOutOfMemory)
    obstacle = "cannot lock " + mebibytes(bytes) +
               " of the host's memory for its device, so that copies wait for the host: " + kAllow;
}
PinnedRange::~PinnedRange() {
  if (begin)
    Driver::get().cuMemHostUnregister(begin);
}

} // namespace dsopt::runtime::cuda
