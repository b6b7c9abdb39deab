//===- Shared.cpp - a block's memory, and who touches it when -------------===//

#include "Warp.h"

namespace softdevice {

Shared::Shared(int64_t bytes, const std::vector<int64_t> &gaps)
    : gaps(gaps), storage(bytes), written(bytes), stamps(bytes) {}

void Shared::clear() {
  std::memset(storage.data(), 0xA5, storage.size());
  std::fill(written.begin(), written.end(), 0);
  for (int64_t gap : gaps)
    std::fill_n(written.begin() + gap, kSharedGap, kGap);
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
  Stamp mine = times.now + warp;
  // Only atomics read and write at once; among each other they need no barrier.
  bool isAtomic = reads && writes;
  stamps.forEach(offset, bytes, [&](Stamp &wrote, Stamp &read) {
    bool isWritten = wrote >= times.now;
    bool wasAtomic = isWritten && wrote >= times.now + kAtomic;
    bool bySeveral = wasAtomic && wrote == times.now + kSeveralAtomic;
    Stamp owner = wasAtomic ? wrote - kAtomic : wrote;
    if (isWritten && (bySeveral || owner != mine) && !(isAtomic && wasAtomic))
      throw Fault("a race: " + std::string(writes ? "a write" : "a read") + " of " + range(offset, bytes) +
                  (bySeveral ? std::string(" that several warps write")
                             : " that warp " + std::to_string(owner - times.now) + " writes") +
                  " with no barrier between");
    if (writes && times.isApart(read, mine))
      throw Fault("a race: a write of " + range(offset, bytes) +
                  (read == times.severalWarps()
                       ? std::string(" that several warps read")
                       : " that warp " + std::to_string(read - times.now) + " reads") +
                  " with no barrier between");
    if (isAtomic) {
      // What the warp itself wrote as others do stays that.
      if (!isWritten || wasAtomic)
        wrote = wasAtomic && (bySeveral || owner != mine) ? times.now + kSeveralAtomic : mine + kAtomic;
    } else if (writes) {
      wrote = mine;
    } else {
      read = times.isApart(read, mine) ? times.severalWarps() : mine;
    }
    return true;
  });
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
  if (!reachQuick(offset, bytes, warp, /*writes=*/true))
    reach(offset, bytes, warp, /*reads=*/false, /*writes=*/true);
  std::memset(&written[offset], 0, bytes);
}

} // namespace softdevice
