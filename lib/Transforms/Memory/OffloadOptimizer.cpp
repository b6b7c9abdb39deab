//===- OffloadOptimizer.cpp - what the optimizer keeps, on host or disk ---===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADOPTIMIZER
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// Trained buckets with state, or with parameters that are elsewhere, by the pipeline stage that updates
/// them, in the order of their blocks.
static llvm::MapVector<int64_t, SmallVector<dist::BucketOp>> bucketsByStage(ModuleOp module) {
  llvm::DenseMap<int64_t, int64_t> stages; ///< by block
  for (auto function : module.getOps<func::FuncOp>())
    if (auto block = function->getAttrOfType<IntegerAttr>(graph::kBlockAttr))
      if (auto stage = function->getAttrOfType<IntegerAttr>(dist::kStageAttr))
        stages[block.getInt()] = stage.getInt();
  llvm::MapVector<int64_t, SmallVector<dist::BucketOp>> buckets;
  for (auto bucket : module.getOps<dist::BucketOp>())
    if (!bucket.getFrozen() && !bucket.getBlocks().empty() &&
        (bucket.getMaster() || bucket.getStates() || bucket.getTier() != dist::Tier::Device))
      buckets[stages.lookup(bucket.getBlocks().front())].push_back(bucket);
  for (auto &[stage, list] : buckets)
    llvm::stable_sort(list, [](dist::BucketOp a, dist::BucketOp b) {
      return a.getBlocks().front() < b.getBlocks().front();
    });
  return buckets;
}

namespace {
struct OffloadOptimizer : dsopt::impl::OffloadOptimizerBase<OffloadOptimizer> {
  using OffloadOptimizerBase::OffloadOptimizerBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "offload_optimizer", StringRef(to));
    StringRef where = options::offload_optimizer(module);
    if (where == "none")
      return;
    giveOption(module, "offload_ratio", StringRef(ratio));
    StringRef text = options::offload_ratio(module);
    double share = 0;
    if (text.getAsDouble(share) || !(share >= 0 && share <= 1)) {
      module.emitError("the share of updates that stays on the device is ")
          << text << ", expected a number from 0 to 1";
      return signalPassFailure();
    }
    auto stages = bucketsByStage(module);
    if (stages.empty())
      module.emitWarning("nothing is offloaded: the optimizer keeps no state beside the parameters");
    bool isAway = false;
    for (auto &[stage, buckets] : stages) {
      double all = 0, stays = 0;
      for (dist::BucketOp bucket : buckets)
        all += bucket.getElements();
      for (dist::BucketOp bucket : buckets) {
        // Parameters are updated where they are.
        bool mayStay = bucket.getTier() == dist::Tier::Device;
        isAway |= !mayStay;
        // The first blocks' gradients come last, when no backward is left to hide their copies behind.
        if (mayStay && stays + bucket.getElements() <= share * all)
          stays += bucket.getElements();
        else
          bucket.setStateTier(where == "nvme" ? dist::Tier::Disk : dist::Tier::Host);
      }
    }
    if (isAway && share > 0)
      module.emitWarning("offload_ratio = ")
          << text
          << " is not for parameters that are kept on the host or on disk: "
             "they are updated on the host";
  }
};
} // namespace
