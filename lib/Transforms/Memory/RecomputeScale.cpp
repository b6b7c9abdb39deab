//===- RecomputeScale.cpp - how much of a model runs again ----------------===//

#include "dsopt/Transforms/Memory/RecomputeScale.h"

#include "BlockRecomputer.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;

/// The functions of runs that train, those of smaller sizes of a dimension among them.
static SmallVector<func::FuncOp> trainingFunctions(ModuleOp module) {
  return llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return !function.isExternal() && !function.getBody().getOps<graph::RunOp>().empty();
  }));
}

FailureOr<RecomputeScale> RecomputeScale::create(ModuleOp module) {
  RecomputeScale scale;
  BlockRecomputer recomputer(module);
  SymbolTable symbols(module);
  SmallVector<BlockRuns> all;
  for (func::FuncOp function : trainingFunctions(module))
    if (!function->hasAttr(exec::kVariantAttr))
      for (const BlockRuns &block : collectRuns(function, symbols)) {
        if (scale.blocksOf.size() <= (size_t)block.stage)
          scale.blocksOf.resize(block.stage + 1);
        ++scale.blocksOf[block.stage];
        all.push_back(block);
      }
  // Levels that choose the same are one.
  scale.rates.push_back(INFINITY);
  std::vector<BlockRecomputer::Choice> before(all.size());
  for (int exponent = 4; exponent >= -32; --exponent) {
    std::vector<BlockRecomputer::Choice> choices;
    for (const BlockRuns &block : all) {
      FailureOr<BlockRecomputer::Choice> choice = recomputer.choose(block, std::ldexp(1.0, exponent));
      if (failed(choice))
        return failure();
      choices.push_back(std::move(*choice));
    }
    bool isNew = false;
    for (auto [choice, earlier] : llvm::zip(choices, before))
      isNew |= choice.cost > earlier.cost;
    if (!isNew)
      continue;
    scale.rates.push_back(std::ldexp(1.0, exponent));
    before = std::move(choices);
  }
  return scale;
}

LogicalResult RecomputeScale::apply(ModuleOp module, const Places &places) const {
  BlockRecomputer recomputer(module);
  SymbolTable symbols(module);
  for (func::FuncOp function : trainingFunctions(module)) {
    SmallVector<BlockRuns> blocks = collectRuns(function, symbols);
    std::vector<int64_t> left = blocksOf; ///< of each stage, this one included
    // The last first: what it keeps is there for those before it.
    for (BlockRuns &block : llvm::reverse(blocks)) {
      int64_t count = blocksOf[block.stage], rank = --left[block.stage];
      int64_t level = places[block.stage] / count + (rank < places[block.stage] % count);
      if (level == 0)
        continue;
      FailureOr<BlockRecomputer::Choice> choice = recomputer.choose(block, rates[level]);
      if (failed(choice) || failed(recomputer.apply(block, *choice)))
        return failure();
    }
  }
  return success();
}

RecomputeSearch RecomputeScale::search() const {
  std::vector<int64_t> lasts;
  for (size_t stage = 0; stage < stages(); ++stage)
    lasts.push_back(last(stage));
  return {lasts, [this](ModuleOp module, const Places &places) { return apply(module, places); }};
}
