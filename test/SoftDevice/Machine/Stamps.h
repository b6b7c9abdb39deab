//===- Stamps.h - who touched bytes last, and when --------------*- C++ -*-===//
//
// What a block does between two of its barriers has a time, later than all before on its
// device: blocks run one after the other. A stamp is a time and a warp, so that what is
// older than a launch or a block is seen by comparing, and nothing is ever cleared. Units
// are words until somebody touches a part of one.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_STAMPS_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_STAMPS_H

#include <cstdint>
#include <cstring>
#include <memory>

namespace softdevice {

using Stamp = uint32_t;
/// Stamps of one time: of its warps, and some that are no warp's.
inline constexpr Stamp kStampsOfTime = 128, kLastOfTime = kStampsOfTime - 1;

/// The first stamps of the times that an access is compared with.
struct Times {
  Stamp launch = 0, block = 0, now = 0;
  /// Who wrote by atomics in this launch; several blocks of it; several warps of the block since its barrier.
  Stamp atomics() const { return launch + kLastOfTime - 1; }
  Stamp severalBlocks() const { return launch + kLastOfTime; }
  Stamp severalWarps() const { return now + kLastOfTime; }
  /// Whether nothing orders what has the stamp and what `mine` does now.
  bool isApart(Stamp stamp, Stamp mine) const {
    bool isOtherBlock = (stamp - launch < block - launch) & (stamp != atomics());
    return isOtherBlock | ((stamp >= now) & (stamp != mine));
  }
};

class Stamps {
public:
  Stamps() = default; ///< of nothing
  explicit Stamps(uint64_t bytes);
  explicit operator bool() const { return count != 0; }
  /// Notes an access that nothing stands against; where something may, notes nothing and returns false.
  bool note(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool writes) {
    return isNoted(offset, bytes, times, mine, writes) || noteNew(offset, bytes, times, mine, writes);
  }
  /// Calls `apply(writer, reader)` for each unit of some bytes until it returns false.
  template <class F> bool forEach(uint64_t offset, uint32_t bytes, F apply) {
    fit(offset, bytes);
    for (uint64_t unit = offset >> shift; unit < (offset + bytes) >> shift; ++unit)
      if (!apply(stamps[unit], stamps[count + unit]))
        return false;
    return true;
  }

private:
  typedef Stamp Four __attribute__((vector_size(16)));
  /// Whether the same was noted before, or with several readers: who had written between, or before without
  /// an order, would have been in conflict with that.
  bool isNoted(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool writes) const {
    if (shift && ((offset | bytes) & 3))
      return false;
    const Stamp *noted = stamps.get() + (writes ? 0 : count) + (offset >> shift);
    Stamp warps = writes ? mine : times.severalWarps(), blocks = writes ? mine : times.severalBlocks();
    uint32_t units = bytes >> shift, i = 0;
    Four others = {};
    for (; i + 4 <= units; i += 4) {
      Four here;
      std::memcpy(&here, noted + i, sizeof(here));
      others |= static_cast<Four>((here != mine) & (here != warps) & (here != blocks));
    }
    uint64_t halves[2];
    std::memcpy(halves, &others, sizeof(halves));
    bool isOther = halves[0] | halves[1];
    for (; i < units; ++i)
      isOther |= (noted[i] != mine) & (noted[i] != warps) & (noted[i] != blocks);
    return !isOther;
  }
  bool noteNew(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool writes);
  void fit(uint64_t offset, uint32_t bytes) {
    if (shift && ((offset | bytes) & 3))
      split();
  }
  void split();
  uint64_t count = 0;
  int shift = 2;                   ///< of a unit's bytes
  std::unique_ptr<Stamp[]> stamps; ///< of writers, then of readers
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_STAMPS_H
