//===- Owners.cpp - who touched which bytes of an allocation --------------===//

#include "Owners.h"

#include <algorithm>

namespace softdevice {

Conflict Owners::note(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool reads,
                      bool writes) {
  // Only atomics read and write at once.
  bool isAtomic = reads && writes;
  Conflict found;
  auto visit = [&](Stamp &writer, Stamp &reader) {
    if (times.isApart(writer, mine))
      found = {writer, "writes"};
    else if (writes && times.isApart(reader, mine))
      found = {reader, "reads"};
    else if (writes)
      writer = isAtomic ? times.atomics() : mine;
    else if (times.isApart(reader, mine))
      reader = reader < times.block ? times.severalBlocks() : times.severalWarps();
    else
      reader = mine;
    return !found.does;
  };
  for (uint64_t end = offset + bytes; offset < end && !found.does;) {
    uint64_t page = offset / kPage, next = std::min(end, (page + 1) * kPage);
    if (page >= pages.size())
      pages.resize(page + 1);
    if (!pages[page])
      pages[page] = Stamps(kPage);
    uint32_t here = static_cast<uint32_t>(next - offset);
    if (isAtomic || !pages[page].note(offset % kPage, here, times, mine, writes))
      pages[page].forEach(offset % kPage, here, visit);
    offset = next;
  }
  return found;
}

} // namespace softdevice
