//===- Owners.h - who touched which bytes of an allocation ------*- C++ -*-===//
//
// In one launch. Blocks have no order, and warps of a block none between two of its
// barriers: what one writes no other may touch, but by atomics.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H

#include "Stamps.h"

#include <vector>

namespace softdevice {

/// Who an access is in conflict with, and what that does: none where `does` is null.
struct Conflict {
  Stamp with = 0;
  const char *does = nullptr;
};

class Owners {
public:
  /// Notes an access, up to the first byte with a conflict.
  Conflict note(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool reads, bool writes);
  /// As `Stamps::note`, of an access that does not both read and write.
  bool noteQuick(uint64_t offset, uint32_t bytes, const Times &times, Stamp mine, bool writes) {
    uint64_t page = offset / kPage, place = offset % kPage;
    return place + bytes <= kPage && page < pages.size() && pages[page] &&
           pages[page].note(place, bytes, times, mine, writes);
  }
  /// Before stamps begin anew.
  void clear() { pages.clear(); }

private:
  static constexpr uint64_t kPage = 4096;
  std::vector<Stamps> pages;
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H
