//===- PackTemporaries.cpp - offsets for values with lifetimes ------------===//
//
// First fit in several orders, the best of which is kept. Choices depend on
// sizes and lifetimes alone, so equal segments get equal offsets.
//
//===----------------------------------------------------------------------===//

#include "PackTemporaries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace llvm;

namespace {
constexpr int64_t kAlignment = 64;
/// Smaller ones stay: a page is the least that a plan can lose.
constexpr int64_t kLeastHosted = 4096;

/// Places the temporaries one after the other at the lowest offset that is free
/// during their life; returns the end of the highest.
int64_t firstFit(ArrayRef<dsopt::exec::Temporary> temporaries, ArrayRef<size_t> order,
                 MutableArrayRef<int64_t> offsets) {
  int64_t end = 0;
  SmallVector<size_t> placed;
  for (size_t index : order) {
    const auto &value = temporaries[index];
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed)
      if (temporaries[other].first <= value.last && value.first <= temporaries[other].last)
        taken.emplace_back(offsets[other], offsets[other] + alignTo(temporaries[other].bytes, kAlignment));
    llvm::sort(taken);
    int64_t offset = 0, bytes = alignTo(value.bytes, kAlignment);
    for (auto [from, to] : taken) {
      if (offset + bytes <= from)
        break;
      offset = std::max(offset, to);
    }
    offsets[index] = offset;
    end = std::max(end, offset + bytes);
    placed.push_back(index);
  }
  return end;
}
/// Puts temporaries, the largest first, where there is room for them; those that are left.
SmallVector<size_t> fillHosts(MutableArrayRef<dsopt::exec::Temporary> temporaries,
                              ArrayRef<dsopt::exec::Host> hosts) {
  SmallVector<size_t> order(temporaries.size()), bySize(hosts.size()), left;
  std::iota(order.begin(), order.end(), 0);
  std::iota(bySize.begin(), bySize.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return temporaries[a].bytes > temporaries[b].bytes; });
  llvm::stable_sort(bySize, [&](size_t a, size_t b) { return hosts[a].bytes < hosts[b].bytes; });
  SmallVector<SmallVector<size_t>> guests(hosts.size());
  for (size_t index : order) {
    auto &value = temporaries[index];
    const size_t *host = llvm::find_if(bySize, [&](size_t at) {
      return value.type && value.bytes >= kLeastHosted && value.type == hosts[at].type &&
             value.bytes <= hosts[at].bytes && value.last < hosts[at].from &&
             llvm::none_of(
                 guests[at],
                 [&](size_t other) {
                   return temporaries[other].first <= value.last && value.first <= temporaries[other].last;
                 });
    });
    value.host = host == bySize.end() ? -1 : static_cast<int64_t>(*host);
    (value.host < 0 ? left : guests[*host]).push_back(index);
  }
  llvm::sort(left);
  return left;
}
} // namespace

int64_t dsopt::exec::packTemporaries(MutableArrayRef<Temporary> temporaries, ArrayRef<Host> hosts) {
  SmallVector<size_t> bySize = fillHosts(temporaries, hosts);
  SmallVector<size_t> byStart = bySize, byArea = bySize;
  auto sortBy = [&](SmallVectorImpl<size_t> &order, auto key) {
    llvm::sort(order, [&](size_t a, size_t b) {
      return std::pair(key(temporaries[a]), a) < std::pair(key(temporaries[b]), b);
    });
  };
  sortBy(bySize, [](const Temporary &value) { return -value.bytes; });
  sortBy(byStart, [](const Temporary &value) { return value.first; });
  sortBy(byArea,
         [](const Temporary &value) { return -double(value.bytes) * double(value.last - value.first + 1); });

  int64_t best = -1;
  SmallVector<int64_t> offsets(temporaries.size());
  for (ArrayRef<size_t> order :
       {ArrayRef<size_t>(bySize), ArrayRef<size_t>(byStart), ArrayRef<size_t>(byArea)}) {
    int64_t end = firstFit(temporaries, order, offsets);
    if (best >= 0 && end >= best)
      continue;
    best = end;
    for (auto [value, offset] : llvm::zip_equal(temporaries, offsets))
      value.offset = offset;
  }
  return best;
}
