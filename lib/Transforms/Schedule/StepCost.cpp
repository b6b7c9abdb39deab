//===- StepCost.cpp - how long a step takes, by its runs' flops -----------===//

#include "dsopt/Transforms/Schedule/StepCost.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Schedule/Simulation.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// What a rank sends or copies in an action.
static double movedBytes(Operation *op, Members &members) {
  auto others = [&] {
    auto groups = members.groups(op);
    return failed(groups) ? 0.0 : groups->front().size() - 1.0;
  };
  if (auto gather = dyn_cast<GatherOp>(op))
    return others() * gather.getBytes();
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return others() * bytesOf(reduce.getElements(), reduce.getType());
  if (auto copy = dyn_cast<CopyOp>(op))
    return copy.getBytes();
  if (auto send = dyn_cast<SendOp>(op))
    return send.getBytes();
  if (auto recv = dyn_cast<RecvOp>(op))
    return recv.getBytes();
  return 0;
}

StepCost dsopt::estimateStep(ModuleOp module) {
  // Segments are functions of MLIR or, once lowered, of LLVM.
  llvm::DenseMap<StringAttr, double> costs;
  for (Operation &segment : module.getOps())
    if (auto flops = segment.getAttrOfType<IntegerAttr>(kFlopsAttr))
      costs[SymbolTable::getSymbolName(&segment)] = flops.getInt();
  SmallVector<ProgramOp> programs = getStepPrograms(module);
  Simulation simulation(programs, [&](Operation *op) {
    auto run = dyn_cast<RunOp>(op);
    return run ? costs.lookup(run.getSegmentAttr().getAttr()) : 0.0;
  });
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  double flopsPerByte = kAssumedFlopsPerThread * (target ? target.getThreads() : 1) / kAssumedBytesPerSecond;
  Members members(module);
  Simulation moving(programs, [&](Operation *op) {
    if (auto run = dyn_cast<RunOp>(op))
      return costs.lookup(run.getSegmentAttr().getAttr());
    return movedBytes(op, members) * flopsPerByte;
  });
  StepCost cost;
  cost.moving = moving.end();
  cost.length = simulation.end();
  for (size_t position = 0; position < programs.size(); ++position)
    cost.flops += simulation.busy(position);
  if (cost.length > 0)
    cost.bubble = 1 - cost.flops / (cost.length * programs.size());
  return cost;
}
