//===- VerifyPlaces.cpp - what differs between ranks along tp and sp ------===//
//
// Follows from collectives, parameters and positions alone which values differ between the ranks along an
// axis: nothing that all of them should have alike is made of these without a sum, and nothing alike is added
// once for each rank. Gradients of whole parameters are alike along tp; along sp buckets add those of all
// ranks.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/SequenceOps.h"
#include "dsopt/Transforms/Place/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYPLACES
#include "dsopt/Transforms/Place/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
class PlaceVerifier {
public:
  PlaceVerifier(ModuleOp module, Axis axis) : symbols(module), axis(axis), name(kAxisNames[(size_t)axis]) {}
  LogicalResult verify(func::FuncOp function);

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitReturn(Operation *op);
  /// Whether an operation makes what differs of what does not.
  bool isSource(Operation *op);
  bool isShard(StringRef parameter) {
    auto op = symbols.lookup<graph::ParameterOp>(parameter);
    return axis == Axis::tp && op && op.getPartRuns();
  }
  bool isOver(dist::AxesAttr axes) const {
    return llvm::any_of(axes.getParts(), [&](const AxisPart &part) { return part.axis == axis; });
  }

  SymbolTable symbols;
  Axis axis;
  StringRef name;
  llvm::DenseSet<Value> differs;
};

struct VerifyPlaces : public dsopt::impl::VerifyPlacesBase<VerifyPlaces> {
  using VerifyPlacesBase::VerifyPlacesBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "tp", ranks, /*unset=*/0);
    for (auto [axis, degree] :
         {std::pair(Axis::tp, options::tp(module)), std::pair(Axis::sp, options::sp(module))})
      for (StringRef name : {graph::kMicroBatchFunction, graph::kEvaluateFunction})
        if (auto function = degree > 1 ? module.lookupSymbol<func::FuncOp>(name) : func::FuncOp();
            function && function.getBody().hasOneBlock() &&
            failed(PlaceVerifier(module, axis).verify(function)))
          return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

bool PlaceVerifier::isSource(Operation *op) {
  if (auto read = dyn_cast<graph::ReadOp>(op))
    return isShard(read.getState());
  if (auto slice = dyn_cast<graph::SliceOp>(op)) {
    Value context = slice.getInput();
    if (auto shared = context.getDefiningOp<dist::SharedOp>())
      context = shared.getValue();
    auto argument = dyn_cast<BlockArgument>(context);
    return argument && graph::isContext(argument) && graph::hasRankAlong(axis, slice);
  }
  auto dependent = dyn_cast<RankDependentOpInterface>(op);
  return dependent && dependent.differsBetweenRanks(/*time=*/axis == Axis::sp);
}

/// Contributions to the running statistics of shards alone are a rank's own.
LogicalResult PlaceVerifier::visitReturn(Operation *op) {
  llvm::SmallDenseMap<unsigned, StringRef> statistics;
  for (const graph::Statistic &statistic : graph::statisticsOf(cast<func::FuncOp>(op->getParentOp())))
    statistics[statistic.result] = statistic.parameter.getValue();
  for (OpOperand &operand : op->getOpOperands()) {
    StringRef statistic = statistics.lookup(operand.getOperandNumber());
    bool isOwn = !statistic.empty() && isShard(statistic);
    if (differs.contains(operand.get()) && !isOwn)
      return op->emitOpError("returns what differs between ranks along ")
             << name << ", expected what all of them have";
    if (isOwn && !differs.contains(operand.get()))
      return op->emitOpError("returns for @")
             << statistic << ", of which ranks along tp have shards, what is equal on all of them";
  }
  return success();
}

LogicalResult PlaceVerifier::visit(Operation *op) {
  bool any = llvm::any_of(op->getOperands(), [&](Value operand) { return differs.contains(operand); });
  if (auto shared = dyn_cast<dist::SharedOp>(op); shared && any && isOver(shared.getAxes()))
    return op->emitOpError("hands to all shards what differs between ranks along ") << name;
  if (auto collective = dyn_cast<dist::ValueCollectiveOpInterface>(op);
      collective && isOver(collective.getAxes())) {
    if (!any)
      return op->emitOpError(isa<dist::AllReduceOp>(op) ? "adds" : "exchanges")
             << " what is equal on all ranks along " << name << ", expected "
             << (isa<dist::AllReduceOp>(op) ? "pieces of a sum" : "what differs");
    if (!collective.isAlike())
      differs.insert(op->getResult(0));
    return success();
  }
  if (auto accumulate = dyn_cast<graph::AccumulateOp>(op)) {
    auto state = symbols.lookup<graph::StateOp>(accumulate.getState());
    // Buckets add what ranks along sp have, alike or not.
    if (axis == Axis::sp)
      return success();
    if (any && state && !isShard(state.getParameter()))
      return op->emitOpError("adds to the gradient of whole parameter @")
             << state.getParameter()
             << " what differs between ranks along tp, expected the sum of their pieces (dist.all_reduce)";
    return success();
  }
  if (op->hasTrait<OpTrait::IsTerminator>())
    return visitReturn(op);
  // Either way the same value: what the condition decides is whose gradient counts.
  if (auto where = dyn_cast<graph::WhereOp>(op))
    if (auto stopped = where.getRhs().getDefiningOp<graph::StopGradientOp>();
        stopped && stopped.getInput() == where.getLhs())
      any = differs.contains(where.getLhs());
  if (any || isSource(op))
    differs.insert(op->result_begin(), op->result_end());
  return success();
}

LogicalResult PlaceVerifier::verify(func::FuncOp function) {
  for (Operation &op : function.front())
    if (failed(visit(&op)))
      return failure();
  return success();
}
