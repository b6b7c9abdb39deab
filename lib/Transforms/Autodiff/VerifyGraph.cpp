//===- VerifyGraph.cpp - what holds at the end of autodiff ----------------===//

#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYGRAPH
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {

/// Where an operation lies.
struct Place {
  int64_t block;
  Phase phase;
};

struct VerifyGraph : public dsopt::impl::VerifyGraphBase<VerifyGraph> {
  using VerifyGraphBase::VerifyGraphBase;

  void runOnOperation() override {
    auto evaluate = getOperation().lookupSymbol<func::FuncOp>(graph::kEvaluateFunction);
    if (evaluate && failed(verifyPlaces(evaluate)))
      return signalPassFailure();
    if (evaluate && !getOption(getOperation(), "train", 1))
      return markAllAnalysesPreserved();
    auto microBatch = getOperation().lookupSymbol<func::FuncOp>(graph::kMicroBatchFunction);
    auto update = getOperation().lookupSymbol<func::FuncOp>(graph::kUpdateFunction);
    if (!microBatch || !update) {
      getOperation().emitError("expected functions @micro_batch and @update after autodiff");
      return signalPassFailure();
    }
    if (failed(verifyPlaces(microBatch)) || failed(verifyStates(microBatch, update)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  FailureOr<Place> place(Operation &op, int64_t blocks, bool evaluates) {
    auto block = op.getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    std::optional<Phase> phase = graph::getPhase(&op);
    if (!block || block.getInt() < 0 || block.getInt() >= blocks)
      return op.emitError("has block ")
             << (block ? Attribute(block) : Attribute(StringAttr::get(&getContext(), "none")))
             << ", expected one of " << blocks << " blocks";
    if (!phase || (*phase == Phase::E) != evaluates)
      return op.emitError("has phase ")
             << (phase ? stringifyPhase(*phase) : "none") << ", expected " << (evaluates ? "E" : "F, B or W");
    return Place{block.getInt(), *phase};
  }

  /// Forward values flow to later blocks and to backward (a gradient that the loss
  /// computes in F too), gradients to earlier blocks out of B alone.
  bool mayFlow(Place from, Place to) {
    if (from.phase == Phase::E)
      return from.block <= to.block;
    if (from.phase == Phase::F)
      return from.block <= to.block || to.phase != Phase::F;
    if (to.phase == Phase::F)
      return false;
    if (from.block == to.block)
      return from.phase == Phase::B || to.phase == Phase::W;
    return from.phase == Phase::B && from.block > to.block;
  }

  LogicalResult verifyPlaces(func::FuncOp function) {
    auto count = getOperation()->getAttrOfType<IntegerAttr>(graph::kBlocksAttr);
    if (!count)
      return getOperation().emitError("has no ") << graph::kBlocksAttr;
    DenseMap<Operation *, Place> places;
    bool evaluates = function.getName() == graph::kEvaluateFunction;
    for (Operation &op : function.front().without_terminator()) {
      FailureOr<Place> to = place(op, count.getInt(), evaluates);
      if (failed(to))
        return failure();
      places[&op] = *to;
      for (Value operand : op.getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (!source)
          continue;
        Place from = places.lookup(source);
        if (!mayFlow(from, *to)) {
          InFlightDiagnostic diag = op.emitError("in block ")
                                    << to->block << " phase " << stringifyPhase(to->phase)
                                    << " reads a value of block " << from.block << " phase "
                                    << stringifyPhase(from.phase) << ", which comes later";
          diag.attachNote(source->getLoc()) << "it is made here";
          return diag;
        }
      }
    }
    return success();
  }

  LogicalResult verifyStates(func::FuncOp microBatch, func::FuncOp update) {
    DenseMap<StringAttr, graph::AccumulateOp> accumulates;
    for (auto op : microBatch.getOps<graph::AccumulateOp>())
      if (!accumulates.try_emplace(op.getStateAttr().getAttr(), op).second)
        return op.emitError("is a second accumulation into @") << op.getState() << " in one micro-batch";
    DenseSet<StringAttr> graded;
    for (auto state : getOperation().getOps<graph::StateOp>()) {
      if (state.getRole() != graph::Role::Gradient)
        continue;
      graph::AccumulateOp op = accumulates.lookup(state.getSymNameAttr());
      if (!op)
        return state.emitError("is a gradient into which nothing is accumulated");
      if (op->getAttr(graph::kBlockAttr) != state.getBlockAttr())
        return state.emitError("is a gradient of one block that another accumulates");
      graded.insert(state.getParameterAttr().getAttr());
    }
    DenseMap<StringAttr, int> writes;
    for (auto op : update.getOps<graph::WriteOp>())
      ++writes[op.getStateAttr().getAttr()];
    llvm::DenseSet<StringAttr> wholes = graph::findWholes(getOperation());
    for (auto parameter : getOperation().getOps<graph::ParameterOp>()) {
      if (wholes.contains(parameter.getSymNameAttr()))
        continue;
      int expected = parameter.getFrozen() ? 0 : 1;
      int got = writes.lookup(parameter.getSymNameAttr());
      if (got != expected)
        return parameter.emitError("has ") << got << " updates, expected " << expected;
      if (graded.contains(parameter.getSymNameAttr()) != !parameter.getFrozen())
        return parameter.emitError(parameter.getFrozen() ? "is frozen, but has a gradient"
                                                         : "is trainable, but has no gradient");
    }
    return success();
  }
};

} // namespace
