//===- Owners.h - who touched which bytes of an allocation ------*- C++ -*-===//
//
// In one launch. Blocks have no order, and warps of a block none between two of its
// barriers: what one writes no other may touch, but by atomics.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace softdevice {

/// Who accesses something, and when.
struct Accessor {
  uint32_t block; ///< from 1 on
  uint32_t epoch; ///< barriers of the block before
  uint32_t warp;
};

class Owners {
public:
  /// Notes an access; what it is in conflict with, empty if with nothing: "block 3 writes".
  std::string note(uint64_t offset, uint32_t bytes, const Accessor &who, bool reads, bool writes);

private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint32_t kAtomics = ~0u, kSeveral = ~0u - 1;
  struct Owner {
    uint32_t block = 0, epoch = 0, warp = 0;
  };
  struct Byte {
    Owner writer, reader;
  };
  using Page = std::array<Byte, kPage>;
  static bool isApart(const Owner &owner, const Accessor &who);
  std::vector<std::unique_ptr<Page>> pages;
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_OWNERS_H
