//===- RecomputeBlocks.cpp - a pass outside the tree: keep less -----------===//
//
// Runs forward of a block again in its backward: all that is kept are the values
// that enter the block. B has the copies and hands on to W what weight gradients
// need of them. The last block's backward follows its forward at once. Runs before
// form-blocks.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace dsopt;
using namespace mlir;

namespace {
/// Copies of one block's forward operations.
struct Copies {
  Operation *before; ///< the block's backward
  IRMapping values;
};

struct RecomputeBlocks : PassWrapper<RecomputeBlocks, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecomputeBlocks)

  StringRef getArgument() const final { return "recompute-blocks"; }
  StringRef getDescription() const final { return "run the forward of blocks again in their backward"; }

  static Attribute blockOf(Operation *op) { return op ? op->getAttr(graph::kBlockAttr) : Attribute(); }

  /// The value as backward of the block gets it.
  Value copy(Copies &copies, Attribute block, Value value) {
    Operation *op = value.getDefiningOp();
    if (blockOf(op) != block || graph::getPhase(op) != Phase::F || !isPure(op))
      return value;
    if (Value known = copies.values.lookupOrNull(value))
      return known;
    for (Value operand : op->getOperands())
      copies.values.map(operand, copy(copies, block, operand));
    Operation *again = OpBuilder(copies.before).clone(*op, copies.values);
    again->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(&getContext(), Phase::B));
    return copies.values.lookup(value);
  }

  void runOnOperation() final {
    auto function = getOperation().lookupSymbol<func::FuncOp>("micro_batch");
    Attribute last;
    for (Operation &op : function.getOps())
      if (graph::getPhase(&op) == Phase::F)
        last = blockOf(&op);
    DenseMap<Attribute, Copies> blocks;
    for (Operation &op : llvm::make_early_inc_range(function.getOps())) {
      Attribute block = blockOf(&op);
      if (!block || block == last || graph::getPhase(&op) == Phase::F)
        continue;
      Copies &copies = blocks.try_emplace(block, Copies{&op, {}}).first->second;
      for (OpOperand &operand : op.getOpOperands())
        operand.set(copy(copies, block, operand.get()));
    }
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "recompute-blocks", "1", [] { PassRegistration<RecomputeBlocks>(); }};
}
