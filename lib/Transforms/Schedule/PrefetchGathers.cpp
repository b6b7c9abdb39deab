//===- PrefetchGathers.cpp - gathers start before their run ---------------===//

#include "Scheduling.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_PREFETCHGATHERS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static void move(ScheduleOp schedule, int64_t distance) {
  Block &body = schedule.getBody().front();
  SmallVector<RunOp> runs;
  SmallVector<std::pair<GatherOp, size_t>> gathers; ///< with the number of runs before it
  for (Operation &op : body) {
    if (auto run = dyn_cast<RunOp>(op))
      runs.push_back(run);
    else if (auto gather = dyn_cast<GatherOp>(op);
             gather && gather.getSlice().getBuffer() != gather.getTarget().getBuffer())
      gathers.push_back({gather, runs.size()});
  }
  // Behind the runs, or at the front: where the next gather that is moved there goes.
  llvm::DenseMap<int64_t, Operation *> ends;
  Operation *front = &*llvm::find_if(body, [](Operation &op) { return !isa<GatherOp>(op); });
  for (auto [gather, before] : gathers) {
    // Only whole parameters are for a run.
    size_t user = before;
    while (user < runs.size() && !usesBuffer(runs[user], gather.getTarget().getBuffer()))
      ++user;
    if (user == runs.size())
      continue;
    // Not in front of a run that needs what the buffer holds before.
    int64_t place = (int64_t)user - 1 - distance;
    for (int64_t run = (int64_t)before - 1; run >= 0 && run > place; --run)
      if (usesBuffer(runs[run], gather.getTarget().getBuffer()))
        place = run;
    place = std::min(place, (int64_t)before - 1);
    if (place < 0) {
      gather->moveBefore(front);
      continue;
    }
    Operation *&end = ends.try_emplace(place, runs[place]).first->second;
    gather->moveAfter(end);
    end = gather;
    // Not earlier: what runs before have used is free by then.
    OpBuilder builder(gather);
    WaitOp::create(builder, gather.getLoc(), runs[place].getEvent(), gather.getStream());
  }
  renumberCollectives(schedule);
}

void dsopt::prefetchGathers(ModuleOp module) {
  int64_t runs = getOption(module, "prefetch", 1);
  for (auto program : module.getOps<ProgramOp>())
    if (ScheduleOp schedule = getSchedule(program); schedule && !schedule.getBody().front().empty())
      move(schedule, runs);
}

namespace {
struct PrefetchGathers : dsopt::impl::PrefetchGathersBase<PrefetchGathers> {
  using PrefetchGathersBase::PrefetchGathersBase;
  void runOnOperation() override {
    takeOption(getOperation(), "prefetch", distance, /*unset=*/-1, 1);
    prefetchGathers(getOperation());
  }
};
} // namespace
