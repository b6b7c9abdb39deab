//===- InsertWaits.cpp - order between streams, from accesses alone -------===//

#include "dsopt/Analysis/Exec/Timeline.h"
#include "dsopt/Transforms/Arena/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_INSERTWAITS
#include "dsopt/Transforms/Arena/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Goes through a schedule once and writes in front of each action the waits that it needs.
class WaitInserter {
public:
  explicit WaitInserter(AccessAnalysis &analysis)
      : analysis(analysis), timeline(analysis.streams), hazards(analysis.streams.size()),
        needed(analysis.streams.size()) {}

  LogicalResult run(ScheduleOp schedule) {
    for (Operation &op : llvm::make_early_inc_range(schedule.getBody().front()))
      if (auto wait = dyn_cast<WaitOp>(op))
        keep(wait);
      else if (failed(order(&op)))
        return failure();
    return success();
  }

private:
  /// Whether an entry is surely complete when the next action of a stream starts.
  bool isOver(const Timeline::Entry &entry, int stream) {
    return timeline.now(stream)[entry.stream] >= entry.sequence;
  }
  /// A wait that somebody asked for stays where it says something new.
  void keep(WaitOp wait) {
    Operation *action = wait.getEvent().getDefiningOp();
    if (isOver(timeline.entries()[timeline.indexOf(action)], analysis.streams.of(wait)))
      wait.erase();
    else
      timeline.append(wait);
  }
  LogicalResult order(Operation *action);

  AccessAnalysis &analysis;
  Timeline timeline;
  HazardTracker hazards;
  /// The last conflicting action of each stream, -1 for none.
  SmallVector<int64_t> needed;
};
} // namespace

LogicalResult WaitInserter::order(Operation *action) {
  FailureOr<ArrayRef<Access>> accesses = analysis.of(action);
  if (failed(accesses))
    return failure();
  int stream = analysis.streams.of(action);
  llvm::fill(needed, -1);
  for (const Access &access : *accesses)
    hazards.conflicts(access, [&](int64_t entry, bool) {
      int64_t &last = needed[timeline.entries()[entry].stream];
      last = std::max(last, entry);
    });
  OpBuilder before(action);
  for (int s = 0, count = needed.size(); s < count; ++s) {
    if (needed[s] < 0)
      continue;
    // What another's completion implies needs no wait of its own.
    const Timeline::Entry &entry = timeline.entries()[needed[s]];
    bool implied = isOver(entry, stream);
    for (int other = 0; other < count && !implied; ++other)
      implied =
          other != s && needed[other] >= 0 && timeline.entries()[needed[other]].start[s] >= entry.sequence;
    if (!implied)
      timeline.append(WaitOp::create(before, action->getLoc(), entry.op->getResult(0), getStream(action)));
  }
  int64_t index = timeline.entries().size();
  timeline.append(action);
  for (const Access &access : *accesses)
    hazards.record(access, index, stream);
  return success();
}

LogicalResult dsopt::insertWaits(ModuleOp module) {
  AccessAnalysis analysis(module);
  for (auto program : module.getOps<ProgramOp>())
    if (ScheduleOp schedule = getSchedule(program); schedule && failed(WaitInserter(analysis).run(schedule)))
      return failure();
  return success();
}

namespace {
struct InsertWaits : dsopt::impl::InsertWaitsBase<InsertWaits> {
  void runOnOperation() override {
    if (failed(insertWaits(getOperation())))
      signalPassFailure();
  }
};
} // namespace
