//===- ShareGathers.cpp - a gather serves a window of micro-batches -------===//

#include "Scheduling.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_SHAREGATHERS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What a gather makes whole is needed from the `first` to the `last` run.
struct Span {
  GatherOp gather;
  int64_t first, last;
};
} // namespace

static LogicalResult share(ScheduleOp schedule, int64_t window) {
  // By target, then by the segment that needs it first and the window.
  llvm::MapVector<Attribute, llvm::MapVector<std::pair<Attribute, int64_t>, Span>> spans;
  SmallVector<RunOp> runs;
  llvm::DenseMap<Operation *, int64_t> starts; ///< of gathers: the runs before them
  SmallVector<Operation *> unneeded;
  for (Operation &op : schedule.getBody().front()) {
    if (auto run = dyn_cast<RunOp>(op)) {
      runs.push_back(run);
    } else if (isa<GatherOp>(op)) {
      starts[&op] = runs.size();
    } else if (auto release = dyn_cast<ReleaseOp>(op)) {
      auto gather = cast<GatherOp>(release.getGather().getDefiningOp());
      int64_t first = starts.lookup(gather), last = (int64_t)runs.size() - 1, user = first;
      while (user <= last && !usesBuffer(runs[user], gather.getTarget().getBuffer()))
        ++user;
      if (user > last)
        return gather.emitOpError("makes ")
               << gather.getTarget().getBuffer() << " whole, but no run before its release is given it";
      auto [span, isNew] = spans[gather.getTarget().getBuffer()].try_emplace(
          {runs[user].getSegmentAttr(), (int64_t)runs[user].getMicroBatch() / window},
          Span{gather, first, last});
      if (!isNew) {
        unneeded.push_back(first < span->second.first ? span->second.gather : gather);
        if (first < span->second.first)
          span->second.gather = gather;
        span->second.first = std::min(span->second.first, first);
        span->second.last = std::max(span->second.last, last);
      }
      unneeded.push_back(release);
    }
  }
  for (auto &[target, windows] : spans) {
    SmallVector<Span> list;
    for (auto &[key, span] : windows)
      list.push_back(span);
    llvm::sort(list, [](const Span &a, const Span &b) {
      return std::tie(a.first, a.last) < std::tie(b.first, b.last);
    });
    // Those that overlap or follow without a run between are one.
    int64_t end = -2;
    for (Span &span : list) {
      if (span.first <= end + 1)
        unneeded.push_back(span.gather);
      end = std::max(end, span.last);
    }
  }
  for (Operation *op : llvm::reverse(unneeded))
    if (isa<ReleaseOp>(op))
      op->erase();
  for (Operation *op : unneeded)
    if (!isa<ReleaseOp>(op))
      op->erase();
  renumberCollectives(schedule);
  return success();
}

LogicalResult dsopt::shareGathers(ModuleOp module) {
  int64_t window = std::max<int64_t>(getOption(module, "gather_window", 1), 1);
  for (auto program : module.getOps<ProgramOp>())
    if (ScheduleOp schedule = getSchedule(program); schedule && failed(share(schedule, window)))
      return failure();
  keepOptions(module);
  return success();
}

namespace {
struct ShareGathers : dsopt::impl::ShareGathersBase<ShareGathers> {
  using ShareGathersBase::ShareGathersBase;
  void runOnOperation() override {
    takeOption(getOperation(), "gather_window", gatherWindow, /*unset=*/0, 1);
    if (failed(shareGathers(getOperation())))
      signalPassFailure();
  }
};
} // namespace
