//===- OffloadParameters.cpp - parameters, on host or disk ----------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/Passes.h"

#include "llvm/ADT/SmallSet.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADPARAMETERS
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct OffloadParameters : dsopt::impl::OffloadParametersBase<OffloadParameters> {
  using OffloadParametersBase::OffloadParametersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "offload_params", StringRef(to));
    StringRef where = options::offload_params(module);
    if (where == "none")
      return;
    auto needs = [&](StringRef what) {
      module.emitError("-offload-params=") << where << " needs " << what;
      signalPassFailure();
    };
    if (options::zero(module) != 3)
      return needs("-zero=3: blocks then read what is fetched for them");
    if (getOption(module, "train", 1) != 0 && options::offload_optimizer(module) == "none")
      return needs("-offload-optimizer=cpu or nvme: updates run where both are");
    llvm::DenseMap<int64_t, int64_t> stages; ///< by block
    for (auto function : module.getOps<func::FuncOp>())
      if (auto block = function->getAttrOfType<IntegerAttr>(graph::kBlockAttr))
        if (auto stage = function->getAttrOfType<IntegerAttr>(dist::kStageAttr))
          stages[block.getInt()] = stage.getInt();
    for (auto bucket : module.getOps<dist::BucketOp>()) {
      llvm::SmallSet<int64_t, 2> users;
      for (int64_t block : bucket.getBlocks())
        users.insert(stages.lookup(block));
      // What several stages share is sent from device to device.
      if (bucket.getZero() == 3 && users.size() == 1)
        bucket.setTier(where == "nvme" ? dist::Tier::Disk : dist::Tier::Host);
    }
  }
};
} // namespace
