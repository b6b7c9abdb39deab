//===- Planner.cpp - what a step would take, asked as a library -----------===//

#include "dsopt/Planner/Planner.h"

#include "dsopt/Analysis/Exec/Packing.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static ArrayRef<ProgramStep> segmentSteps, programSteps;

void dsopt::setProgramSteps(ArrayRef<ProgramStep> segments, ArrayRef<ProgramStep> programs) {
  segmentSteps = segments;
  programSteps = programs;
}

FailureOr<Planner> Planner::create(ModuleOp module) {
  assert(!segmentSteps.empty() && "registerAllPasses says what steps there are");
  Planner planner(OwningOpRef<ModuleOp>(module.clone()));
  for (ProgramStep step : segmentSteps)
    if (failed(step.run(*planner.module)))
      return failure();
  return planner;
}

FailureOr<Planner::Plan> Planner::plan(const Layout &layout) {
  ModuleOp copy = *module;
  Builder builder(copy.getContext());
  setOption(copy, "micro_batches", builder.getI64IntegerAttr(layout.microBatches));
  setOption(copy, "gather_window", builder.getI64IntegerAttr(layout.gatherWindow));
  DictionaryAttr before = copy->getAttrOfType<DictionaryAttr>(kOptionsAttr);
  if (layout.prefetch >= 0)
    setOption(copy, "prefetch", builder.getI64IntegerAttr(layout.prefetch));
  if (layout.prefetchMemory > 0)
    setOption(copy, "prefetch_memory", builder.getI64IntegerAttr(layout.prefetchMemory));
  if (layout.reuseDistance >= 0)
    setOption(copy, "max_reuse_distance", builder.getI64IntegerAttr(layout.reuseDistance));
  // What a step only remarks it says again when it runs as a pass.
  ScopedDiagnosticHandler errorsAlone(copy.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  FailureOr<Plan> plan = failure();
  if (llvm::all_of(programSteps, [&](ProgramStep step) { return succeeded(step.run(copy)); })) {
    plan = Plan();
    LifeAnalysis analysis(copy);
    for (auto &[position, programs] : programsByPosition(copy)) {
      FailureOr<PositionPlan> placed = planPosition(programs, analysis, std::max(plan->bytes, layout.enough));
      if (failed(placed)) {
        plan = failure();
        break;
      }
      plan->positionBytes.push_back(placed->deviceBytes());
      plan->bytes = std::max(plan->bytes, plan->positionBytes.back());
    }
    if (succeeded(plan))
      plan->cost = estimateStep(copy);
  }
  for (ProgramOp program : llvm::make_early_inc_range(copy.getOps<ProgramOp>()))
    program.erase();
  copy->setAttr(kOptionsAttr, before);
  return plan;
}
