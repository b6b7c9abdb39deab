//===- Packing.cpp - offsets for buffers that may share bytes -------------===//

#include "dsopt/Analysis/Exec/Packing.h"
#include "BitMatrix.h"

#include "llvm/ADT/BitVector.h"

#include <functional>
#include <queue>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// For each buffer of a memory the others that it may not share bytes with, as findClash says of each pair.
/// One pass over all episodes in order of their first entries: a buffer clashes with those that have an
/// episode open, and with those whose earlier ones are not complete when it starts. Of the latter the ones
/// touched last by each stream are enough, up to the first that is complete.
static BitMatrix findClashes(const ProgramLife &life, size_t memory) {
  const std::vector<BufferLife> &lives = life.lives;
  using Closing = std::pair<int64_t, const Span *>;
  std::priority_queue<Closing, std::vector<Closing>, std::greater<Closing>> closing;
  // By stream, the last sequences that complete episodes have there, ascending. Only a buffer's last one says
  // something: the one in `ends`.
  SmallVector<std::vector<std::pair<int64_t, int64_t>>> ended;
  std::vector<Clock> ends(lives.size());
  std::vector<int64_t> count(lives.size(), 0);
  llvm::BitVector open(lives.size());
  BitMatrix clashes(lives.size());
  for (const Span &span : life.spans) {
    if (lives[span.buffer].memory != memory)
      continue;
    for (; !closing.empty() && closing.top().first < span.episode->first; closing.pop()) {
      auto [id, episode] = *closing.top().second;
      if (--count[id] == 0)
        open.reset(id);
      ended.resize(std::max<size_t>(ended.size(), episode->end.size()));
      for (int s = 0; s < episode->end.size(); ++s)
        if (episode->end[s] > ends[id][s]) {
          std::pair<int64_t, int64_t> last(ends[id][s] = episode->end[s], id);
          // They come nearly in order.
          auto place = ended[s].end();
          while (place != ended[s].begin() && last < *std::prev(place))
            --place;
          ended[s].insert(place, last);
        }
    }
    clashes.join(span.buffer, open.getData());
    for (size_t s = 0; s < ended.size(); ++s)
      for (auto [sequence, other] : llvm::reverse(ended[s])) {
        if (sequence <= span.episode->start[s])
          break;
        clashes.set(span.buffer, other);
      }
    ++count[span.buffer];
    open.set(span.buffer);
    closing.push({span.episode->last, &span});
  }
  for (size_t id = 0; id < lives.size(); ++id)
    clashes.reset(id, id);
  clashes.makeSymmetric();
  return clashes;
}

/// Buffers placed in all attempts to make the smallest arena found smaller.
static constexpr int64_t kEffort = 20000;
/// Pairs of buffers that are compared in all attempts together: one attempt compares each with each.
static constexpr int64_t kPairs = 50000000;

/// First fit in the given order above `base`.
static Packing packInOrder(const std::vector<BufferLife> &lives, ArrayRef<int64_t> order, int64_t base,
                           const BitMatrix &clashes) {
  Packing packing;
  packing.offsets.assign(lives.size(), -1);
  packing.arena = base;
  struct Placed {
    int64_t begin, id, end;
  };
  std::vector<Placed> placed; ///< by first byte and buffer
  placed.reserve(order.size());
  for (int64_t id : order) {
    int64_t bytes = lives[id].bytes, offset = base;
    for (const Placed &other : placed) {
      if (!clashes.test(id, other.id))
        continue;
      if (offset + bytes <= other.begin)
        break;
      offset = std::max(offset, other.end);
    }
    packing.offsets[id] = offset;
    packing.arena = std::max(packing.arena, offset + bytes);
    auto behind = llvm::partition_point(
        placed, [&](const Placed &other) { return std::tie(other.begin, other.id) < std::tie(offset, id); });
    placed.insert(behind, {offset, id, offset + bytes});
  }
  return packing;
}

void PersistentPlaces::place(const std::vector<BufferLife> &lives) {
  for (const BufferLife &life : lives)
    if (life.persistent && life.memory == memory &&
        offsets.try_emplace(BufferOp(life.buffer).getSymName(), end).second)
      end += life.bytes;
}

Packing dsopt::packBuffers(const ProgramLife &program, const PersistentPlaces &persistent, int64_t enough) {
  const std::vector<BufferLife> &lives = program.lives;
  SmallVector<int64_t> shared;
  for (auto [id, life] : llvm::enumerate(lives))
    if (!life.persistent && life.memory == persistent.memory)
      shared.push_back(id);
  BitMatrix clashes = findClashes(program, persistent.memory);
  // By size, by first use, by how many others are in the way; not by where a buffer is declared, so that the
  // plan does not depend on which pass has declared it.
  struct Traits {
    int64_t size, first, degree; ///< the largest sizes and degrees are least
  };
  std::vector<Traits> traits;
  for (auto [id, life] : llvm::enumerate(lives))
    traits.push_back(
        {-life.bytes, life.episodes.empty() ? 0 : life.episodes.front().first, -(int64_t)clashes.count(id)});
  using Key = std::array<int64_t, 4>;
  Key (*const keys[])(const Traits &, int64_t) = {
      [](const Traits &t, int64_t id) { return Key{t.size, t.first, t.degree, id}; },
      [](const Traits &t, int64_t id) { return Key{t.size, t.degree, t.first, id}; },
      [](const Traits &t, int64_t id) { return Key{t.first, t.size, t.degree, id}; },
      [](const Traits &t, int64_t id) { return Key{t.degree, t.size, t.first, id}; },
      [](const Traits &t, int64_t id) { return Key{t.degree, t.first, t.size, id}; }};
  Packing best, latest;
  SmallVector<int64_t> order(shared), bestOrder;
  int64_t left = kPairs / std::max<int64_t>(shared.size() * shared.size(), 1);
  auto attempt = [&] {
    if (!bestOrder.empty() && (best.arena <= enough || left <= 0))
      return;
    --left;
    latest = packInOrder(lives, order, persistent.end, clashes);
    if (bestOrder.empty() || latest.arena < best.arena) {
      best = latest;
      bestOrder = order;
    }
  };
  for (auto key : keys) {
    llvm::sort(order, [&](int64_t a, int64_t b) { return key(traits[a], a) < key(traits[b], b); });
    attempt();
  }
  // What ends highest goes first.
  order = bestOrder;
  latest = best;
  for (int64_t round = 0, rounds = kEffort / std::max<int64_t>(order.size(), 1); round < rounds; ++round) {
    std::stable_partition(order.begin(), order.end(),
                          [&](int64_t id) { return latest.offsets[id] + lives[id].bytes == latest.arena; });
    attempt();
  }
  for (auto [id, life] : llvm::enumerate(lives))
    if (life.persistent && life.memory == persistent.memory)
      best.offsets[id] = persistent.offsets.lookup(BufferOp(life.buffer).getSymName());
  best.arena = aligned(best.arena);
  return best;
}

FailureOr<PositionPlan> dsopt::planPosition(ArrayRef<ProgramOp> programs, LifeAnalysis &analysis,
                                            int64_t enough) {
  PositionPlan plan;
  for (ProgramOp program : programs) {
    if (failed(verifySameMemories(programs.front(), program)))
      return failure();
    FailureOr<const ProgramLife *> life = analysis.of(program);
    if (failed(life))
      return failure();
    plan.lives.push_back(*life);
  }
  // A rank has one arena in each memory for all its programs.
  for (auto [index, memory] : llvm::enumerate(getMemories(programs.front()))) {
    PersistentPlaces persistent{index};
    for (const ProgramLife *life : plan.lives)
      persistent.place(life->lives);
    MemoryPlan &own = plan.memories.emplace_back();
    own.memory = memory;
    for (auto [program, life] : llvm::enumerate(plan.lives)) {
      own.packings.push_back(packBuffers(*life, persistent, std::max(own.arena, enough)));
      if (own.packings.back().arena > own.arena) {
        own.arena = own.packings.back().arena;
        own.largest = program;
      }
    }
  }
  return plan;
}

int64_t PositionPlan::deviceBytes() const {
  int64_t bytes = 0;
  for (const MemoryPlan &plan : memories)
    if (MemoryOp(plan.memory).getKind() == MemoryKind::Device)
      bytes += plan.arena;
  return bytes;
}

std::map<int64_t, SmallVector<ProgramOp>> dsopt::programsByPosition(ModuleOp module) {
  std::map<int64_t, SmallVector<ProgramOp>> positions;
  for (const SmallVector<ProgramOp> &programs : getProgramLists(module))
    for (ProgramOp program : programs)
      positions[program.getPosition()].push_back(program);
  return positions;
}
