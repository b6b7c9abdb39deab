//===- PipelineOrder.cpp - the order of block phases at a position --------===//

#include "dsopt/Transforms/Schedule/PipelineOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace dsopt;

void dsopt::appendForward(const StageShape &shape, int64_t microBatch, SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = shape.firstBlock; block < shape.lastBlock; ++block)
    slots.push_back({block, Phase::F, microBatch});
}

void dsopt::appendBackward(const StageShape &shape, int64_t microBatch,
                           SmallVectorImpl<PipelineSlot> &slots) {
  for (int64_t block = shape.lastBlock; block-- > shape.firstBlock;) {
    slots.push_back({block, Phase::B, microBatch});
    slots.push_back({block, Phase::W, microBatch});
  }
}

/// All forwards, then all backwards (Huang et al. 2019), both ascending.
static SmallVector<PipelineSlot> gpipe(const StageShape &shape) {
  SmallVector<PipelineSlot> slots;
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendForward(shape, m, slots);
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendBackward(shape, m, slots);
  return slots;
}

/// One forward, one backward (Narayanan et al. 2019): a stage starts as many
/// forwards as there are stages behind it, then alternates, then drains.
static SmallVector<PipelineSlot> oneForwardOneBackward(const StageShape &shape) {
  SmallVector<PipelineSlot> slots;
  int64_t warmUp = std::min(shape.stages - shape.stage - 1, shape.microBatches);
  for (int64_t m = 0; m < warmUp; ++m)
    appendForward(shape, m, slots);
  for (int64_t m = warmUp; m < shape.microBatches; ++m) {
    appendForward(shape, m, slots);
    appendBackward(shape, m - warmUp, slots);
  }
  for (int64_t m = shape.microBatches - warmUp; m < shape.microBatches; ++m)
    appendBackward(shape, m, slots);
  return slots;
}

static std::map<std::string, PipelineOrder> &orders() {
  static std::map<std::string, PipelineOrder> known = {{"gpipe", gpipe}, {"1f1b", oneForwardOneBackward}};
  return known;
}

void dsopt::registerPipelineOrder(StringRef name, PipelineOrder order) {
  orders()[name.str()] = std::move(order);
}

PipelineOrder dsopt::getPipelineOrder(StringRef name) {
  auto it = orders().find(name.str());
  return it == orders().end() ? PipelineOrder() : it->second;
}

std::string dsopt::pipelineOrderNames() {
  return llvm::join(llvm::map_range(orders(), [](auto &entry) { return entry.first; }), ", ");
}

/// Neighbouring slots of one direction and micro-batch are one unit.
static SmallVector<std::pair<bool, int64_t>> toUnits(ArrayRef<PipelineSlot> slots) {
  SmallVector<std::pair<bool, int64_t>> units;
  for (const PipelineSlot &slot : slots) {
    std::pair<bool, int64_t> unit(slot.phase == Phase::F, slot.microBatch);
    if (units.empty() || units.back() != unit)
      units.push_back(unit);
  }
  return units;
}

PipelineShape dsopt::measurePipeline(ArrayRef<SmallVector<PipelineSlot>> stages) {
  PipelineShape shape;
  int64_t count = stages.size(), left = 0;
  SmallVector<SmallVector<std::pair<bool, int64_t>>> units;
  for (const auto &slots : stages) {
    units.push_back(toUnits(slots));
    left += units.back().size();
    int64_t alive = 0, most = 0;
    for (auto [forward, m] : units.back()) {
      alive += forward ? 1 : -1;
      most = std::max(most, alive);
    }
    shape.alive.push_back(most);
  }
  // When each (stage, direction, micro-batch) ends; a stage waits for its
  // neighbour below in forward and above in backward.
  std::map<std::tuple<int64_t, bool, int64_t>, int64_t> ends;
  SmallVector<size_t> next(count, 0);
  SmallVector<int64_t> time(count, 0);
  for (bool moved = true; moved && left;) {
    moved = false;
    for (int64_t s = 0; s < count; ++s)
      for (; next[s] < units[s].size(); ++next[s], --left, moved = true) {
        auto [forward, m] = units[s][next[s]];
        int64_t from = forward ? s - 1 : s + 1, start = time[s];
        if (from >= 0 && from < count) {
          auto it = ends.find({from, forward, m});
          if (it == ends.end())
            break;
          start = std::max(start, it->second);
        }
        ends[{s, forward, m}] = time[s] = start + 1;
      }
  }
  if (!left)
    shape.length = *std::max_element(time.begin(), time.end());
  return shape;
}
