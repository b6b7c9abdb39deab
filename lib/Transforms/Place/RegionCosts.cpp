//===- RegionCosts.cpp - what a cut saves, and what its sums take ---------===//

#include "RegionCosts.h"

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
    bool isSource = read && !symbols.lookup<graph::ParameterOp>(read.getState()).getFrozen();
    bool follows = llvm::any_of(op.getOperands(), [&](Value operand) { return hasGradient(operand); });
    for (Value result : op.getResults())
      if ((isSource || follows) && isFloat(result))
        differentiated.insert(result);
    all += timeOf(&op);
  }
}

/// Of forward and backward: a gradient for each operand takes about as long as the operation.
int64_t RegionCosts::timeOf(Operation *op) const {
  auto costed = dyn_cast<CostedOpInterface>(op);
  // What only names or reshapes values moves nothing.
  if (!costed || isa<graph::ReadOp, graph::ConstantOp, graph::ReshapeOp>(op))
    return 0;
  double written = 0;
  for (Type type : op->getResultTypes())
    written += graph::numBytes(type);
  // Each value is written once and read once.
  double seconds =
      std::max(costed.getFlops() / kAssumedFlopsPerThread, 2 * written / kAssumedMemoryBytesPerSecond);
  int64_t gradients =
      llvm::count_if(op->getOperands(), [&](Value operand) { return hasGradient(operand); });
  return std::llround(seconds * kPicoseconds) * (1 + gradients);
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
    int64_t time = timeOf(op);
    gain.saved += time - time / shards;
    if (region.sums(op))
      gain.sums += sumTime(op->getResult(0).getType());
    for (Value operand : op->getOperands()) {
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
