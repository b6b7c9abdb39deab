//===- Owners.cpp - who touched which bytes of an allocation --------------===//

#include "Owners.h"

namespace softdevice {

/// Whether nothing orders what the owner did and what is done now.
bool Owners::isApart(const Owner &owner, const Accessor &who) {
  return owner.block != 0 && owner.block != kAtomics &&
         (owner.block != who.block || (owner.epoch == who.epoch && owner.warp != who.warp));
}

std::string Owners::note(uint64_t offset, uint32_t bytes, const Accessor &who, bool reads, bool writes) {
  // Only atomics read and write at once.
  bool isAtomic = reads && writes;
  auto describe = [&](const Owner &owner, const char *does) {
    if (owner.block == kSeveral)
      return "several blocks " + std::string(does, 4);
    return (owner.block != who.block ? "block " + std::to_string(owner.block - 1)
                                     : "warp " + std::to_string(owner.warp)) +
           " " + does;
  };
  for (uint64_t number = offset; number < offset + bytes; ++number) {
    uint64_t page = number / kPage;
    if (page >= pages.size())
      pages.resize(page + 1);
    if (!pages[page])
      pages[page] = std::make_unique<Page>();
    Byte &byte = (*pages[page])[number % kPage];
    if (isApart(byte.writer, who))
      return describe(byte.writer, "writes");
    if (writes && isApart(byte.reader, who))
      return describe(byte.reader, "reads");
    Owner mine{who.block, who.epoch, who.warp};
    if (isAtomic)
      byte.writer.block = kAtomics;
    else if (writes)
      byte.writer = mine;
    else if (isApart(byte.reader, who))
      byte.reader = {byte.reader.block == who.block ? who.block : kSeveral, who.epoch, ~0u};
    else
      byte.reader = mine;
  }
  return "";
}

} // namespace softdevice
