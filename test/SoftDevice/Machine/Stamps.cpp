//===- Stamps.cpp - who touched bytes last, and when ----------------------===//

#include "Stamps.h"
#include "Wide.h"

#include <algorithm>

namespace softdevice {

Stamps::Stamps(uint64_t bytes) : count((bytes + 3) / 4), stamps(new Stamp[2 * count]()) {}

void Stamps::split() {
  std::unique_ptr<Stamp[]> made(new Stamp[8 * count]);
  for (uint64_t unit = 0; unit < 2 * count; ++unit)
    std::fill_n(&made[4 * unit], 4, stamps[unit]);
  stamps = std::move(made);
  count *= 4;
  shift = 0;
}

SOFT_INLINE bool noteWrite(Stamp *writers, const Stamp *readers, uint32_t count, Times times, Stamp mine) {
  uint32_t apart = 0;
  for (uint32_t i = 0; i < count; ++i)
    apart |= static_cast<uint32_t>(times.isApart(writers[i], mine)) | times.isApart(readers[i], mine);
  if (apart)
    return false;
  for (uint32_t i = 0; i < count; ++i)
    writers[i] = mine;
  return true;
}

SOFT_INLINE bool noteRead(const Stamp *writers, Stamp *readers, uint32_t count, Times times, Stamp mine) {
  uint32_t apart = 0;
  for (uint32_t i = 0; i < count; ++i)
    apart |= times.isApart(writers[i], mine);
  if (apart)
    return false;
  Stamp blocks = times.severalBlocks(), warps = times.severalWarps();
  for (uint32_t i = 0; i < count; ++i) {
    Stamp was = readers[i];
    readers[i] = !times.isApart(was, mine) ? mine : was < times.block ? blocks : warps;
  }
  return true;
}

SOFT_CLONES static bool noteMany(Stamp *writers, Stamp *readers, uint32_t count, Times times, Stamp mine,
                                 bool writes) {
  return writes ? noteWrite(writers, readers, count, times, mine)
                : noteRead(writers, readers, count, times, mine);
}

bool Stamps::noteNew(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool writes) {
  fit(offset, bytes);
  Stamp *writer = &stamps[offset >> shift], *reader = writer + count;
  uint32_t units = bytes >> shift;
  if (units > 8)
    return noteMany(writer, reader, units, times, mine, writes);
  // So few that vectors do not pay, but four at once.
  if (units == 4)
    return writes ? noteWrite(writer, reader, 4, times, mine) : noteRead(writer, reader, 4, times, mine);
#pragma clang loop vectorize(disable) unroll(disable)
  for (uint32_t i = 0; i < units; ++i)
    if (times.isApart(writer[i], mine) || (writes && times.isApart(reader[i], mine)))
      return false;
  Stamp blocks = times.severalBlocks(), warps = times.severalWarps();
#pragma clang loop vectorize(disable) unroll(disable)
  for (uint32_t i = 0; i < units; ++i) {
    if (writes)
      writer[i] = mine;
    else
      reader[i] = !times.isApart(reader[i], mine) ? mine : reader[i] < times.block ? blocks : warps;
  }
  return true;
}

} // namespace softdevice
