//===- UnevenStages.cpp - a pass outside the tree: another pipeline cut ---===//
//
// Gives the first pipeline stage a number of blocks of one's choice and deals
// the others out evenly. Runs after split-stages.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Blocks.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {
struct UnevenStages : PassWrapper<UnevenStages, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnevenStages)
  UnevenStages() = default;
  UnevenStages(const UnevenStages &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "uneven-stages"; }
  StringRef getDescription() const final {
    return "give the first stage `first` blocks, deal out the others evenly";
  }

  void runOnOperation() final {
    auto blocks = dsopt::graph::collectBlocks(getOperation());
    if (failed(blocks))
      return signalPassFailure();
    int64_t stages = dsopt::dist::getGrid(getOperation()).size(dsopt::Axis::pp),
            others = blocks->size() - first;
    if (stages < 2 || first < 1 || others < stages - 1) {
      getOperation().emitError("cannot give ")
          << first << " of " << blocks->size() << " blocks to the first of " << stages << " stages";
      return signalPassFailure();
    }
    Builder builder(&getContext());
    for (auto [number, block] : llvm::enumerate(*blocks)) {
      int64_t stage = (int64_t)number < first ? 0 : 1 + (number - first) * (stages - 1) / others;
      for (func::FuncOp function : block.functions())
        function->setAttr(dsopt::dist::kStageAttr, builder.getI64IntegerAttr(stage));
    }
  }

  Option<int64_t> first{*this, "first", llvm::cl::desc("blocks of the first stage"), llvm::cl::init(1)};
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "uneven-stages", "1", [] { PassRegistration<UnevenStages>(); }};
}
