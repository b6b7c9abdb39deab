//===- StepCost.cpp - how long a step takes, by its runs' flops -----------===//

#include "dsopt/Transforms/Schedule/StepCost.h"
#include "dsopt/Transforms/Schedule/Simulation.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

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
  StepCost cost;
  cost.length = simulation.end();
  for (size_t position = 0; position < programs.size(); ++position)
    cost.flops += simulation.busy(position);
  if (cost.length > 0)
    cost.bubble = 1 - cost.flops / (cost.length * programs.size());
  return cost;
}
