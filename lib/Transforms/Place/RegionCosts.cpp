//===- RegionCosts.cpp - what a cut saves, and what its sums take ---------===//

#include "RegionCosts.h"

#include "WindowMoves.h"
#include "dsopt/Interfaces/AssumedRates.h"
#include "dsopt/Interfaces/Interfaces.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;

static constexpr double kPicoseconds = 1e12;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

RegionCosts::RegionCosts(func::FuncOp forward, const SymbolTable &symbols, int64_t shards) : shards(shards) {
  for (Operation &op : forward.front()) {
    auto read = dyn_cast<graph::ReadOp>(op);
    if (read && isFloat(read) && !symbols.lookup<graph::ParameterOp>(read.getState()).getFrozen())
      trained.insert(read);
    bool follows = llvm::any_of(op.getOperands(), [&](Value operand) { return hasGradient(operand); });
    for (Value result : op.getResults())
      if ((trained.contains(&op) || follows) && isFloat(result))
        differentiated.insert(result);
    all += timeOf(&op);
  }
}

/// The gradient of each operand takes the flops of the operation. What is made is written once and read once,
/// which what only names or reshapes values saves.
int64_t RegionCosts::timeOf(Operation *op, const CutRegion *region) const {
  // A rank's part of a value's bytes.
  auto bytesOf = [&](Value value) {
    double bytes = graph::numBytes(value.getType());
    return region && region->cutOf(value) ? bytes / shards : bytes;
  };
  double memory = kPicoseconds / kAssumedMemoryBytesPerSecond;
  // To add to a gradient is to read two and write one.
  if (trained.contains(op))
    return std::llround(3 * bytesOf(op->getResult(0)) * memory);
  auto costed = dyn_cast<CostedOpInterface>(op);
  if (!costed || isa<graph::ReadOp, graph::ConstantOp, graph::ReshapeOp>(op))
    return 0;
  double flops = costed.getFlops() * kPicoseconds / kAssumedFlopsPerThread / (region ? shards : 1),
         written = 0;
  for (Value result : op->getResults())
    written += bytesOf(result);
  double time = std::max(flops, 2 * written * memory);
  for (Value operand : op->getOperands())
    if (hasGradient(operand))
      time += std::max(flops, 2 * bytesOf(operand) * memory);
  return std::llround(time);
}

/// Of a sum over all shards, a rank each: a rank sends its share of slices there and back, and adds those of
/// others, two read and one written.
int64_t RegionCosts::sumTime(Type type) const {
  double bytes = graph::numBytes(type) * double(shards - 1) / shards;
  return std::llround((2 * bytes / kAssumedBytesPerSecond + 3 * bytes / kAssumedMemoryBytesPerSecond) *
                      kPicoseconds);
}

CutGain RegionCosts::gainOf(const CutRegion &region) {
  CutGain gain;
  llvm::SmallDenseSet<unsigned> shared;
  for (Operation *op : region.operations()) {
    gain.saved += timeOf(op) - timeOf(op, &region);
    SmallVector<Operation *> behind = region.sums(op) ? windowsSumBehind(op) : SmallVector<Operation *>();
    if (region.sums(op) || region.reduces(op))
      for (Type type : (behind.empty() ? op : behind.back())->getResultTypes())
        gain.sums += sumTime(type);
    for (Value operand : op->getOperands()) {
      operand = region.takes(op)        ? headsOf(cast<graph::ReshapeOp>(op))->heads
                : region.cutOf(operand) ? operand
                                        : sharedSource(operand);
      if (region.cutOf(operand) || !hasGradient(operand))
        continue;
      auto [it, isNew] =
          sharedNumbers.try_emplace({operand, op->getAttr(graph::kBlockAttr)}, sharedCosts.size());
      if (isNew)
        sharedCosts.push_back(sumTime(operand.getType()));
      shared.insert(it->second);
    }
  }
  gain.shared.assign(shared.begin(), shared.end());
  llvm::sort(gain.shared);
  return gain;
}
