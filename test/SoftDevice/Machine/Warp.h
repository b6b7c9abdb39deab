//===- Warp.h - 32 lanes and the block they belong to -----------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_WARP_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_WARP_H

#include "Kernel.h"
#include "Memory.h"
#include "Wide.h"
#include "Written.h"

#include <climits>
#include <cstring>
#include <random>

namespace softdevice {

/// What a launch did to one allocation: a bit for each chunk of a footprint.
struct Touched {
  Allocation *allocation = nullptr;
  std::vector<uint64_t> reads, writes;
  void mark(uint64_t offset, uint32_t bytes, bool isRead, bool isWrite) {
    for (uint64_t chunk = offset / Footprint::kChunk; chunk <= (offset + bytes - 1) / Footprint::kChunk;
         ++chunk) {
      reads[chunk / 64] |= uint64_t(isRead) << chunk % 64;
      writes[chunk / 64] |= uint64_t(isWrite) << chunk % 64;
    }
  }
};

/// A launch: what all blocks have in common.
struct Grid {
  const Kernel &kernel;
  Memory &memory;
  const char *parameters;
  uint32_t blocks[3], threads[3];
  int64_t dynamicShared;
  std::mt19937_64 &random;
  std::map<Allocation *, Touched> touched = {};
  std::vector<Touched *> cached = {}; ///< what an operation touched last, by its index
  uint64_t clock = 0;
  Times times = {};
  std::vector<std::pair<Stamp, uint32_t>> began = {}; ///< when blocks did, with their numbers from 0 on

  /// What was touched, for the order of launches and copies.
  Footprint footprint() const;
};

/// Shared memory of a block: bytes, whether they were written, and who touched them since the last barrier.
class Shared {
public:
  Shared(int64_t bytes, const std::vector<int64_t> &gaps);
  void clear();
  /// A new time in which accesses of different warps have no order.
  void pass(Stamp time) { times = {time, time, time}; }
  /// The bytes at `offset` for a warp; throws a Fault on races, on reads of what was not written and past the
  /// end.
  char *reach(uint64_t offset, uint32_t bytes, int warp, bool reads, bool writes);
  /// The same where nothing is wrong and it is no atomic, at once; null if something may be.
  SOFT_INLINE char *reachQuick(uint64_t offset, uint32_t bytes, int warp, bool writes) {
    if (offset + bytes > storage.size() || offset + bytes < offset)
      return nullptr;
    uint8_t *marks = &written[offset];
    if (writes ? hasAny(marks, bytes, kGap) : !hasAll(marks, bytes))
      return nullptr;
    if (!stamps.note(offset, bytes, times, times.now + warp, writes))
      return nullptr;
    if (writes)
      std::memset(marks, 1, bytes);
    return storage.data() + offset;
  }
  /// What an asynchronous copy is on its way to.
  void announce(uint64_t offset, uint32_t bytes, int warp);
  int64_t size() const { return static_cast<int64_t>(storage.size()); }

private:
  /// Of a time's stamps: warps that wrote by atomics, from the first one on, and several of them.
  static constexpr Stamp kAtomic = 32, kSeveralAtomic = 64;
  static constexpr uint8_t kGap = 2;
  const std::vector<int64_t> &gaps;
  std::vector<char> storage;
  std::vector<uint8_t> written; ///< 0 or 1 for each byte, or kGap
  Stamps stamps;
  Times times;
};

struct Block;

/// An asynchronous copy to shared memory that nobody waited for yet.
struct PendingCopy {
  uint32_t lane;
  uint64_t from, to;
  uint32_t bytes, taken; ///< the rest are zeros
  int64_t group;
};

struct Warp {
  Block &block;
  int number;
  std::vector<char> storage = {};
  std::vector<uint32_t> predicates = {};
  std::vector<char> local = {};
  uint32_t all = 0;     ///< lanes that the warp began with
  uint32_t alive = 0;   ///< those that did not exit
  uint32_t active = 0;  ///< those that run now, at `pc`
  uint32_t waiting = 0; ///< alive ones that run later
  uint32_t parked = 0;  ///< waiting ones at an operation that needs others, too
  int pc = 0, next = 0;
  int lowest = INT_MAX; ///< pc of what waits and is not parked
  int pcs[kLanes] = {};
  bool stops = false; ///< at a barrier, or at the end
  int barrier = -1;   ///< the one that it waits at
  std::vector<PendingCopy> copies = {};
  int64_t committed[kLanes] = {};

  template <class T> T *row(uint32_t place) { return reinterpret_cast<T *>(storage.data() + place); }
  uint32_t lanes(const Op &op) const {
    uint32_t guard = predicates[op.guard];
    return active & (op.negated ? ~guard : guard);
  }
  /// Writes a predicate for some lanes.
  void setPredicate(uint32_t place, uint32_t lanes, uint32_t value) {
    if (place)
      predicates[place] = (predicates[place] & ~lanes) | (value & lanes);
  }
  /// Runs to a barrier or to the end.
  void run();
  void jump(uint32_t taken, int target);
  void leave(uint32_t lanes);
  /// Whether all of `needed` are here, for an operation of theirs together; else those here wait for the
  /// others, and the operation does nothing now. Throws a Fault where they cannot come.
  bool gather(uint32_t needed, const Op &op);

private:
  void schedule();
};

struct Block {
  Grid &grid;
  uint32_t position[3] = {};
  Shared shared;
  std::vector<Warp> warps = {};
  explicit Block(Grid &grid);
  /// Runs the block at a position from its start to its end.
  void run(uint32_t x, uint32_t y, uint32_t z);

private:
  /// After its start, and after each barrier.
  void pass();
};

/// What can be said of where a fault happened, in front of what it was.
std::string describePlace(const Warp &warp, const Op &op, uint32_t lane);

/// Throws a Fault for a grid that a driver refuses.
void checkShape(const Grid &grid);

/// Runs all blocks in a random order. Throws a Fault that says kernel, block, thread and line.
void runGrid(Grid &grid);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_WARP_H
