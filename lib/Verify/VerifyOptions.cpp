//===- VerifyOptions.cpp - options against what was built from them -------===//

#include "Verify.h"
#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;

/// A bucket is cut as the options say.
static LogicalResult verifyBucket(ModuleOp module, dist::BucketOp bucket) {
  int64_t stage = bucket.getZero(), zero = getOption(module, "zero", stage);
  auto differs = [&](StringRef option, const Twine &said) {
    return bucket.emitOpError("is not what dsopt.options says: ") << option << " is " << said << ", but it ";
  };
  // What a threshold leaves whole is as under stage 2.
  bool persists = zero == 3 && stage == 2 && options::param_persistence_threshold(module) > 0;
  // And what a frozen variance needs on every rank as under stage 0, or of its parameters under stage 1.
  bool isWhole = stage == (gathersParameters(module) ? 1 : 0) && options::freeze_step(module).value_or(0) > 0;
  if (bucket.getRanks() > 1 && !bucket.getFrozen() && stage != zero && !persists && !isWhole)
    return differs("zero", Twine(zero)) << "is cut by stage " << stage;
  if (!bucket.getGradientType().isF32() && options::gradient_type(module) == "fp32")
    return differs("gradient_type", "fp32") << "has gradients of " << bucket.getGradientType();
  return success();
}

LogicalResult dsopt::verifyOptions(ModuleOp module, ArrayRef<exec::ProgramOp> programs) {
  for (auto bucket : module.getOps<dist::BucketOp>())
    if (failed(verifyBucket(module, bucket)))
      return failure();
  Grid grid = dist::getGrid(module);
  int64_t positions = programs.size(), pp = getOption(module, "pp", grid.size(Axis::pp));
  if (positions != grid.size(Axis::pp) || positions != pp)
    return module.emitError("has programs of ")
           << positions << " positions, but the grid has " << grid.size(Axis::pp)
           << " along pp, and dsopt.options says that pp is " << pp;
  if (int64_t dp = options::dp(module).value_or(grid.dataParallel()); dp != grid.dataParallel())
    return module.emitError("has a grid of ")
           << grid.dataParallel() << " data-parallel ranks, but dsopt.options says that dp is " << dp;
  if (int64_t sp = getOption(module, "sp", grid.size(Axis::sp)); sp != grid.size(Axis::sp))
    return module.emitError("has a grid of ")
           << grid.size(Axis::sp) << " sequence-parallel ranks, but dsopt.options says that sp is " << sp;
  if (int64_t tp = getOption(module, "tp", grid.size(Axis::tp)); tp != grid.size(Axis::tp))
    return module.emitError("has a grid of ")
           << grid.size(Axis::tp) << " tensor-parallel ranks, but dsopt.options says that tp is " << tp;
  for (exec::ProgramOp program : programs) {
    int64_t runs = exec::getMicroBatches(program), said = options::micro_batches(module).value_or(runs);
    if (runs && runs != said)
      return program.emitOpError("runs ")
             << runs << " micro-batches, but dsopt.options says that micro_batches is " << said;
  }
  return success();
}
