//===- Shared.cpp - a block's memory, and who touches it when -------------===//

#include "Warp.h"

namespace softdevice {

Shared::Shared(int64_t bytes, const std::vector<int64_t> &gaps)
    : gaps(gaps), storage(bytes), written(bytes), lastWrite(bytes), lastRead(bytes) {}

void Shared::clear() {
  std::memset(storage.data(), 0xA5, storage.size());
  std::fill(written.begin(), written.end(), 0);
  for (int64_t gap : gaps)
    std::fill_n(written.begin() + gap, kSharedGap, kGap);
  std::fill(lastWrite.begin(), lastWrite.end(), 0);
  std::fill(lastRead.begin(), lastRead.end(), 0);
  epoch = 1;
}

static std::string range(uint64_t offset, uint32_t bytes) {
  return std::to_string(bytes) + " bytes at " + std::to_string(offset) + " of shared memory";
}

char *Shared::reach(uint64_t offset, uint32_t bytes, int warp, bool reads, bool writes) {
  if (offset + bytes > storage.size() || offset + bytes < offset)
    throw Fault(std::string(writes ? "a write" : "a read") + " of " + range(offset, bytes) + ", which has " +
                std::to_string(storage.size()));
  for (uint32_t i = 0; i < bytes; ++i)
    if (written[offset + i] == kGap)
      throw Fault(std::string(writes ? "a write" : "a read") + " of " + range(offset, bytes) +
                  " past the end of a variable");
  uint32_t mine = warp + 1, stamp = epoch << 8 | mine;
  auto now = [&](uint32_t last) { return last >> 8 == epoch; };
  // Only atomics read and write at once; among each other they need no barrier.
  bool isAtomic = reads && writes;
  for (uint64_t byte = offset; byte < offset + bytes; ++byte) {
    uint32_t &wrote = lastWrite[byte], &read = lastRead[byte];
    bool isWritten = now(wrote), wasAtomic = isWritten && (wrote & kAtomic);
    if (uint32_t owner = wrote & ~kAtomic & 255; isWritten && owner != mine && !(isAtomic && wasAtomic))
      throw Fault("a race: " + std::string(writes ? "a write" : "a read") + " of " + range(offset, bytes) +
                  (owner == kSeveralWrite ? std::string(" that several warps write")
                                          : " that warp " + std::to_string(owner - 1) + " writes") +
                  " with no barrier between");
    if (writes && now(read) && (read & 255) != mine)
      throw Fault("a race: a write of " + range(offset, bytes) +
                  ((read & 255) == kSeveral ? std::string(" that several warps read")
                                            : " that warp " + std::to_string((read & 255) - 1) + " reads") +
                  " with no barrier between");
    if (isAtomic) {
      // What the warp itself wrote as others do stays that.
      if (!isWritten || wasAtomic)
        wrote = wasAtomic && (wrote & 127) != mine ? epoch << 8 | kAtomic | kSeveralWrite : stamp | kAtomic;
      continue;
    }
    if (reads)
      read = now(read) && (read & 255) != mine ? epoch << 8 | kSeveral : stamp;
    if (writes)
      wrote = stamp;
  }
  if (reads)
    for (uint32_t i = 0; i < bytes; ++i)
      if (!written[offset + i])
        throw Fault("a read of " + range(offset, bytes) +
                    " that nobody wrote, or whose copy was not waited for");
  if (writes)
    std::memset(&written[offset], 1, bytes);
  return storage.data() + offset;
}

void Shared::announce(uint64_t offset, uint32_t bytes, int warp) {
  reach(offset, bytes, warp, /*reads=*/false, /*writes=*/true);
  std::memset(&written[offset], 0, bytes);
}

} // namespace softdevice
