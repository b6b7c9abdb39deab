//===- Planner.cpp - what a step would take, asked as a library -----------===//

#include "dsopt/Transforms/Schedule/Planner.h"

#include "Packing.h"
#include "Scheduling.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

FailureOr<Planner> Planner::create(ModuleOp module) {
  Planner planner(OwningOpRef<ModuleOp>(module.clone()));
  if (failed(blocksToSegments(*planner.module)))
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
  ScopedDiagnosticHandler silence(copy.getContext(), [](Diagnostic &) { return success(); });
  auto write = [&] {
    if (failed(orderPipeline(copy)) || failed(shareGathers(copy)) || failed(placeReductions(copy)))
      return failure();
    delayUpdates(copy);
    freezeUpdates(copy);
    if (failed(finishStep(copy)) || failed(mergeTiedGradients(copy)))
      return failure();
    return failure(failed(prefetchGathers(copy)) || failed(gatherByNode(copy)) ||
                   failed(offloadGathers(copy)) || failed(offloadUpdates(copy)) ||
                   failed(throttleReductions(copy)) || failed(offloadActivations(copy)) ||
                   failed(compressGradients(copy)) || failed(expandCollectives(copy)) ||
                   failed(insertWaits(copy)));
  };
  FailureOr<Plan> plan = failure();
  if (succeeded(write())) {
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
