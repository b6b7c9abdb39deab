//===- ThrottleReductions.cpp - bounds the reductions in flight -----------===//

#include "Accesses.h"
#include "Scheduling.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace dsopt {
#define GEN_PASS_DEF_THROTTLEREDUCTIONS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Buffers of gradients that are free when they are reduced or added to another.
static llvm::DenseSet<StringAttr> passingGradients(ScheduleOp schedule) {
  llvm::DenseSet<StringAttr> passing;
  for (Operation &op : schedule.getBody().front())
    if (auto reduce = dyn_cast<ReduceOp>(op))
      passing.insert(reduce.getWhole().getBuffer().getAttr());
    else if (auto add = dyn_cast<AddOp>(op))
      passing.insert(add.getSource().getBuffer().getAttr());
  for (auto reduce : schedule.getBody().front().getOps<ReduceOp>())
    passing.erase(reduce.getTarget().getBuffer().getAttr());
  return passing;
}

LogicalResult dsopt::throttleReductions(ModuleOp module) {
  size_t most = getOption(module, "reductions_in_flight", 2);
  AccessAnalysis analysis(module);
  for (auto program : module.getOps<ProgramOp>()) {
    ScheduleOp schedule = getSchedule(program);
    if (!schedule)
      continue;
    llvm::DenseSet<StringAttr> passing = passingGradients(schedule);
    SmallVector<ReduceOp> reductions;
    for (Operation &op : llvm::make_early_inc_range(schedule.getBody().front())) {
      if (auto reduce = dyn_cast<ReduceOp>(op))
        reductions.push_back(reduce);
      if (!isa<RunOp>(op) || reductions.size() < most)
        continue;
      FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
      if (failed(accesses))
        return failure();
      if (llvm::none_of(*accesses, [&](const Access &access) {
            return access.writes && passing.contains(access.buffer);
          }))
        continue;
      OpBuilder builder(&op);
      WaitOp::create(builder, op.getLoc(), reductions[reductions.size() - most].getEvent(), getStream(&op));
    }
  }
  return success();
}

namespace {
struct ThrottleReductions : dsopt::impl::ThrottleReductionsBase<ThrottleReductions> {
  using ThrottleReductionsBase::ThrottleReductionsBase;
  void runOnOperation() override {
    takeOption(getOperation(), "reductions_in_flight", inFlight, /*unset=*/0, 2);
    if (failed(throttleReductions(getOperation())))
      signalPassFailure();
  }
};
} // namespace
