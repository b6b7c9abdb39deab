//===- Packing.cpp - offsets for buffers that may share bytes -------------===//

#include "Packing.h"

#include "llvm/ADT/BitVector.h"

#include <functional>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// First fit in the given order above `base`.
static Packing packInOrder(const std::vector<BufferLife> &lives, ArrayRef<int64_t> order, int64_t base,
                           const std::vector<llvm::BitVector> &clashes) {
  Packing packing;
  packing.offsets.assign(lives.size(), -1);
  packing.arena = base;
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (int64_t id : order) {
    taken.clear();
    for (int64_t other : clashes[id].set_bits())
      if (packing.offsets[other] >= 0)
        taken.push_back({packing.offsets[other], packing.offsets[other] + lives[other].bytes});
    llvm::sort(taken);
    int64_t offset = base;
    for (auto [begin, end] : taken) {
      if (offset + lives[id].bytes <= begin)
        break;
      offset = std::max(offset, end);
    }
    packing.offsets[id] = offset;
    packing.arena = std::max(packing.arena, offset + lives[id].bytes);
  }
  return packing;
}

void PersistentPlaces::place(const std::vector<BufferLife> &lives) {
  for (const BufferLife &life : lives)
    if (life.persistent && offsets.try_emplace(BufferOp(life.buffer).getSymName(), end).second)
      end += life.bytes;
}

Packing dsopt::packBuffers(const std::vector<BufferLife> &lives, const PersistentPlaces &persistent) {
  SmallVector<int64_t> shared;
  for (auto [id, life] : llvm::enumerate(lives))
    if (!life.persistent)
      shared.push_back(id);
  std::vector<llvm::BitVector> clashes(lives.size(), llvm::BitVector(lives.size()));
  for (size_t i = 0; i < shared.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (findClash(lives[shared[i]], lives[shared[j]])) {
        clashes[shared[i]].set(shared[j]);
        clashes[shared[j]].set(shared[i]);
      }
  auto first = [&](int64_t id) { return lives[id].episodes.empty() ? 0 : lives[id].episodes.front().first; };
  auto degree = [&](int64_t id) { return (int64_t)clashes[id].count(); };
  // By size, by first use, by how many others are in the way; then as declared.
  std::function<std::pair<int64_t, int64_t>(int64_t)> keys[] = {
      [&](int64_t id) { return std::make_pair(-lives[id].bytes, id); },
      [&](int64_t id) { return std::make_pair(first(id), id); },
      [&](int64_t id) { return std::make_pair(-degree(id), id); }};
  Packing best;
  best.arena = -1;
  for (const auto &key : keys) {
    SmallVector<int64_t> order(shared);
    llvm::sort(order, [&](int64_t a, int64_t b) { return key(a) < key(b); });
    Packing packing = packInOrder(lives, order, persistent.end, clashes);
    if (best.arena < 0 || packing.arena < best.arena)
      best = std::move(packing);
  }
  for (auto [id, life] : llvm::enumerate(lives))
    if (life.persistent)
      best.offsets[id] = persistent.offsets.lookup(BufferOp(life.buffer).getSymName());
  best.arena = aligned(best.arena);
  return best;
}
