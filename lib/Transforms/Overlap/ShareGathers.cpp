//===- ShareGathers.cpp - a gather serves a window of micro-batches -------===//

#include "Gathered.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Overlap/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_SHAREGATHERS
#include "dsopt/Transforms/Overlap/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What a gather makes whole is needed from the `first` to the `last` run.
struct Span {
  GatherOp gather;
  ReleaseOp release;
  int64_t first, last;
  bool joins = false; ///< is one with the span before
};

/// Decides which gathers of one program stay to serve the next.
class Sharer {
public:
  Sharer(ProgramOp program, int64_t window, int64_t distance, int64_t most)
      : window(window), distance(distance), most(most), schedule(getSchedule(program)), elements(program) {}
  LogicalResult share();

private:
  LogicalResult readSpans();
  /// Joins spans of a target that `window` micro-batches, or near uses, are to share.
  void joinWanted(FlatSymbolRefAttr target, std::vector<Span> &spans);
  /// Keeps of what is wanted what no run has too many elements with: the shortest ways first.
  LogicalResult limit();

  int64_t window, distance, most;
  ScheduleOp schedule;
  GatheredElements elements;
  SmallVector<RunOp> runs;
  SmallVector<int64_t> used; ///< elements of gathered buckets that runs before are given, by run
  llvm::MapVector<Attribute, std::vector<Span>> spans; ///< by target, in order
};
} // namespace

LogicalResult Sharer::readSpans() {
  llvm::DenseMap<Operation *, int64_t> starts; ///< of gathers: the runs before them
  for (Operation &op : schedule.getBody().front()) {
    if (auto run = dyn_cast<RunOp>(op)) {
      runs.push_back(run);
    } else if (isa<GatherOp>(op)) {
      starts[&op] = runs.size();
    } else if (auto release = dyn_cast<ReleaseOp>(op)) {
      auto gather = cast<GatherOp>(release.getGather().getDefiningOp());
      spans[gather.getTarget().getBuffer()].push_back(
          {gather, release, starts.lookup(gather), (int64_t)runs.size() - 1});
    }
  }
  for (auto &[target, list] : spans)
    llvm::stable_sort(list, [](const Span &a, const Span &b) {
      return std::tie(a.first, a.last) < std::tie(b.first, b.last);
    });
  used.push_back(0);
  for (RunOp run : runs) {
    llvm::SmallDenseSet<Attribute> given;
    int64_t sum = used.back();
    for (auto ref : run.getBuffers().getAsRange<RefAttr>())
      if (spans.count(ref.getBuffer()) && given.insert(ref.getBuffer()).second)
        sum += elements.of(ref.getBuffer());
    used.push_back(sum);
  }
  for (auto &[target, list] : spans)
    for (Span &span : list)
      if (llvm::none_of(llvm::seq(span.first, span.last + 1),
                        [&, target = cast<FlatSymbolRefAttr>(target)](int64_t run) {
                          return usesBuffer(runs[run], target);
                        }))
        return span.gather.emitOpError("makes ")
               << target << " whole, but no run before its release is given it";
  return success();
}

void Sharer::joinWanted(FlatSymbolRefAttr target, std::vector<Span> &list) {
  // From the first to the last run of a window, by the segment that needs it first.
  llvm::MapVector<std::pair<Attribute, int64_t>, std::pair<int64_t, int64_t>> windows;
  for (const Span &span : list) {
    int64_t user = span.first;
    while (!usesBuffer(runs[user], target))
      ++user;
    auto [known, isNew] =
        windows.insert({{runs[user].getSegmentAttr(), (int64_t)runs[user].getMicroBatch() / window},
                        {span.first, span.last}});
    auto &[first, last] = known->second;
    first = std::min(first, span.first);
    last = std::max(last, span.last);
  }
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (auto &[key, range] : windows)
    ranges.push_back(range);
  llvm::sort(ranges);
  // Spans of windows that overlap or follow without a run between are one.
  const auto *range = ranges.begin();
  int64_t end = list.front().last, windowEnd = range->second;
  for (Span &span : MutableArrayRef(list).drop_front()) {
    for (; range != ranges.end() && range->first <= windowEnd + 1; ++range)
      windowEnd = std::max(windowEnd, range->second);
    span.joins =
        span.first <= windowEnd + 1 || (distance >= 0 && used[span.first] - used[end + 1] < distance);
    windowEnd = std::max(windowEnd, span.last);
    end = std::max(end, span.last);
  }
}

LogicalResult Sharer::limit() {
  /// Runs between two spans.
  struct Gap {
    FlatSymbolRefAttr target;
    Span *next;
    int64_t first, last;
  };
  SmallVector<int64_t> live(runs.size(), 0);
  std::vector<Gap> gaps;
  for (auto &[buffer, list] : spans) {
    auto target = cast<FlatSymbolRefAttr>(buffer);
    int64_t end = -1;
    for (Span &span : list) {
      for (int64_t run = std::max(span.first, end + 1); run <= span.last; ++run)
        live[run] += elements.of(target);
      // What follows at once takes no run more.
      if (span.joins && span.first > end + 1)
        gaps.push_back({target, &span, end + 1, span.first - 1});
      end = std::max(end, span.last);
    }
  }
  for (auto [run, sum] : llvm::zip(runs, live))
    if (sum > most)
      return run.emitError("the run of ")
             << run.getSegmentAttr() << " on micro-batch " << run.getMicroBatch() << " needs " << sum
             << " gathered elements of parameters at once, more than -max-live-parameters=" << most
             << " allows";
  llvm::stable_sort(gaps, [](const Gap &a, const Gap &b) { return a.last - a.first < b.last - b.first; });
  GatherRemarks remarks("gather-not-kept");
  for (Gap &gap : gaps) {
    int64_t more = elements.of(gap.target);
    auto between = llvm::seq(gap.first, gap.last + 1);
    gap.next->joins = llvm::all_of(between, [&](int64_t run) { return live[run] + more <= most; });
    if (gap.next->joins)
      for (int64_t run : between)
        live[run] += more;
    else
      remarks.add(gap.next->gather, "-max-live-parameters=" + Twine(most));
  }
  remarks.emit("is gathered again");
  return success();
}

LogicalResult Sharer::share() {
  if (failed(readSpans()))
    return failure();
  for (auto &[target, list] : spans)
    joinWanted(cast<FlatSymbolRefAttr>(target), list);
  if (most >= 0 && failed(limit()))
    return failure();
  for (auto &[target, list] : spans)
    for (Span &span : list)
      span.release.erase();
  for (auto &[target, list] : spans)
    for (Span &span : list)
      if (span.joins)
        span.gather.erase();
  renumberCollectives(schedule);
  return success();
}

LogicalResult dsopt::shareGathers(ModuleOp module) {
  int64_t window = std::max<int64_t>(options::gather_window(module).value_or(1), 1);
  int64_t distance = options::max_reuse_distance(module).value_or(-1);
  int64_t most = options::max_live_parameters(module).value_or(-1);
  for (auto program : module.getOps<ProgramOp>())
    if (getSchedule(program) && failed(Sharer(program, window, distance, most).share()))
      return failure();
  keepOptions(module);
  return success();
}

namespace {
struct ShareGathers : dsopt::impl::ShareGathersBase<ShareGathers> {
  using ShareGathersBase::ShareGathersBase;
  void runOnOperation() override {
    giveOption(getOperation(), "gather_window", gatherWindow, /*unset=*/0);
    giveOption(getOperation(), "max_reuse_distance", maxReuseDistance, /*unset=*/-1);
    giveOption(getOperation(), "max_live_parameters", maxLiveParameters, /*unset=*/-1);
    if (failed(shareGathers(getOperation())))
      signalPassFailure();
  }
};
} // namespace
