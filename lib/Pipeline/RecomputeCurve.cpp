//===- RecomputeCurve.cpp - bytes against time ----------------------------===//

#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/Plan.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Memory/RecomputeScale.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;

/// What a run with that budget would take at these places: how long gathered parameters stay and how far
/// ahead gathers start is chosen under it, where options do not say so.
static FailureOr<Planner::Plan> planUnder(int64_t budget, ModuleOp module, const RecomputeScale &scale,
                                          const RecomputeScale::Places &places) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (failed(scale.apply(*copy, places)))
    return failure();
  setOption(*copy, "device_memory", Builder(module.getContext()).getI64IntegerAttr(budget));
  if (failed(runPipeline(*copy, pipelineText({"choose-gather-window", "choose-prefetch"}))))
    return failure();
  FailureOr<Planner> planner = Planner::create(*copy);
  if (failed(planner))
    return failure();
  return planner->plan(
      {options::micro_batches(*copy).value_or(1), options::gather_window(*copy).value_or(1)});
}

namespace {
struct Point {
  int64_t step;
  RecomputeScale::Places places;
  int64_t bytes;
};
} // namespace

/// Places that take fewer bytes than those before, and so are a choice: what runs again needs bytes while it
/// does.
static FailureOr<std::vector<Point>> findPoints(ModuleOp module, const RecomputeScale &scale) {
  std::vector<Point> points;
  for (int64_t step = 0; step <= RecomputeSearch::kSteps; ++step) {
    RecomputeScale::Places places;
    for (size_t stage = 0; stage < scale.stages(); ++stage)
      places.push_back(scale.search().at(stage, step));
    FailureOr<Planner::Plan> plan = scale.search().plan(module, places, 0);
    if (failed(plan))
      return failure();
    if (points.empty() || plan->bytes < points.back().bytes)
      points.push_back({step, places, plan->bytes});
  }
  // Below that, gathers may start later.
  FailureOr<Planner::Plan> least = planUnder(/*budget=*/1, module, scale, points.back().places);
  if (failed(least))
    return failure();
  points.back().bytes = std::min(points.back().bytes, least->bytes);
  return points;
}

LogicalResult dsopt::printRecomputeCurve(ModuleOp module, llvm::raw_ostream &out) {
  FailureOr<RecomputeScale> scale = RecomputeScale::create(module);
  if (failed(scale))
    return failure();
  FailureOr<std::vector<Point>> points = findPoints(module, *scale);
  if (failed(points))
    return failure();
  double most = 0;
  out << "recomputed   -device-memory   predicted ms a step\n";
  for (const Point &point : *points) {
    FailureOr<Planner::Plan> plan = planUnder(point.bytes, module, *scale, point.places);
    if (failed(plan))
      return failure();
    if (point.step == 0)
      most = plan->cost.moving;
    std::string more =
        point.step == 0 ? "" : llvm::formatv("+{0:F1} %", (plan->cost.moving / most - 1) * 100).str();
    out << llvm::formatv("{0,8} % {1,17} {2,12:F1}  {3}\n", point.step * 100 / RecomputeSearch::kSteps,
                         point.bytes, plan->cost.moving * 1e3, more);
  }
  out << "\nrecomputed      of what can be: -recompute=none is 0 %, auto takes the first that fits\n"
         "-device-memory  bytes of the largest rank: a budget at which that is chosen\n"
         "predicted       with what is exposed of what is sent and copied, under that budget\n";
  return success();
}
