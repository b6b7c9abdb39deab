//===- RecomputeCurve.cpp - bytes against time ----------------------------===//

#include "dsopt/Pipeline/Plan.h"

#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Memory/RecomputeScale.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dsopt;

LogicalResult dsopt::printRecomputeCurve(ModuleOp module, llvm::raw_ostream &out) {
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  FailureOr<RecomputeScale> scale = RecomputeScale::create(module);
  if (failed(scale))
    return failure();
  double rate = kAssumedFlopsPerThread * target.getThreads() / 1e3; ///< a millisecond
  double most = 0;
  int64_t least = INT64_MAX;
  out << "recomputed   -device-memory   predicted ms a step\n";
  for (int64_t step = 0; step <= RecomputeScale::kSteps; ++step) {
    RecomputeScale::Places places;
    for (size_t stage = 0; stage < scale->stages(); ++stage)
      places.push_back(scale->at(stage, step));
    FailureOr<Planner::Plan> plan = scale->plan(module, places, 0);
    if (failed(plan))
      return module.emitError("no plan was found for this layout; -plan without recompute says why");
    if (step == 0)
      most = plan->cost.length;
    // What runs again needs bytes while it does: places that take no less than those before are no choice.
    if (plan->bytes >= least)
      continue;
    least = plan->bytes;
    out << llvm::formatv("{0,8} % {1,17} {2,12:F1}  {3}\n", step * 100 / RecomputeScale::kSteps, plan->bytes,
                         plan->cost.length / rate,
                         step == 0 ? std::string()
                                   : llvm::formatv("+{0:F1} %", (plan->cost.length / most - 1) * 100).str());
  }
  out << "\nrecomputed      of what can be: -recompute=none is 0 %, auto takes the first that fits\n"
         "-device-memory  bytes of the largest rank: a budget at which that is chosen\n";
  return success();
}
