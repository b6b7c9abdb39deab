//===- ReportOverlap.cpp - what computation has to wait for at once -------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Analysis/Exec/Timeline.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Transforms/Overlap/Passes.h"
#include "mlir/IR/Remarks.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_REPORTOVERLAP
#include "dsopt/Transforms/Overlap/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Actions of a kind that are waited for at once by actions of one kind.
struct Uncovered {
  Operation *first = nullptr, *waiting = nullptr;
  int64_t actions = 0;
};

/// Looks through one program.
class Reporter {
public:
  Reporter(ProgramOp program, AccessAnalysis &analysis) : program(program), analysis(analysis) {}
  LogicalResult report();

private:
  LogicalResult emit();
  /// Remembers an action of another stream that the compute stream waits for, or nothing does.
  void note(Operation *action, Operation *waiting);
  /// The buffer that both touch.
  FailureOr<StringAttr> shared(Operation *action, Operation *waiting);
  bool computes(Operation *op) const {
    return analysis.streams[analysis.streams.of(op)].getKind() == StreamKind::Compute;
  }

  ProgramOp program;
  AccessAnalysis &analysis;
  std::map<std::pair<StringRef, StringRef>, Uncovered> found; ///< by what waits for what
  llvm::SmallPtrSet<Operation *, 8> noted;
};
} // namespace

static StringRef nameOf(Operation *op) {
  // The next run needs the sums of tensor shards: nothing covers them.
  auto gather = dyn_cast<GatherOp>(op);
  return isa<ReduceOp>(op)                            ? "a reduction"
         : isa<CopyOp>(op)                            ? "a copy"
         : gather && !isOfValues(gather.getTraffic()) ? "a gather"
                                                      : StringRef();
}

void Reporter::note(Operation *action, Operation *waiting) {
  noted.insert(action);
  Uncovered &entry = found[{nameOf(action), waiting ? waiting->getName().stripDialect() : ""}];
  if (entry.actions++ == 0) {
    entry.first = action;
    entry.waiting = waiting;
  }
}

FailureOr<StringAttr> Reporter::shared(Operation *action, Operation *waiting) {
  FailureOr<ArrayRef<Access>> before = analysis.of(action);
  if (failed(before))
    return failure();
  SmallVector<Access> list(*before);
  FailureOr<ArrayRef<Access>> after = analysis.of(waiting);
  if (failed(after))
    return failure();
  for (const Access &one : list)
    for (const Access &other : *after)
      if (one.place == other.place && (one.writes || other.writes))
        return one.buffer;
  return StringAttr();
}

LogicalResult Reporter::report() {
  Timeline timeline(analysis.streams);
  SmallVector<int64_t> runs = {0}; ///< those among the first actions of the compute stream
  SmallVector<Operation *> waits;  ///< of the compute stream, since its last action
  int compute = -1;
  for (Operation &op : getSchedule(program).getBody().front()) {
    timeline.append(&op);
    if (!computes(&op))
      continue;
    compute = analysis.streams.of(&op);
    if (auto wait = dyn_cast<WaitOp>(op)) {
      if (Operation *action = wait.getEvent().getDefiningOp(); action && !nameOf(action).empty())
        waits.push_back(action);
      continue;
    }
    // What runs between the last action that it had to wait for and this one covers it.
    for (Operation *action : waits) {
      int64_t start = timeline.entries()[timeline.indexOf(action)].start[compute];
      if (runs.back() == runs[start])
        note(action, &op);
    }
    waits.clear();
    runs.push_back(runs.back() + isa<RunOp>(op));
  }
  // What cannot start before the last run is complete has none beside it.
  for (const Timeline::Entry &entry : timeline.entries())
    if (compute >= 0 && !nameOf(entry.op).empty() && runs[entry.start[compute]] == runs.back() &&
        !noted.contains(entry.op))
      note(entry.op, nullptr);
  return emit();
}

LogicalResult Reporter::emit() {
  for (auto &[names, entry] : found) {
    std::string times = entry.actions == 1 ? "" : " (" + std::to_string(entry.actions) + " times a step)";
    std::string text = "stage " + std::to_string(program.getPosition()) + ": " + names.first.str();
    if (entry.waiting) {
      FailureOr<StringAttr> buffer = shared(entry.first, entry.waiting);
      if (failed(buffer))
        return failure();
      text += " is waited for at once" + times + ": exec." + names.second.str() + " touches " +
              (*buffer ? "@" + buffer->str() : "bytes that lie there as well") + ", and no run lies between";
    } else {
      text += " follows the last run" + times + ": it needs what that or a later action leaves";
    }
    remark::missed(entry.first->getLoc(), remark::RemarkOpts::name("not-covered").category(kOverlapRemarks))
        << text;
  }
  return success();
}

namespace {
struct ReportOverlap : dsopt::impl::ReportOverlapBase<ReportOverlap> {
  void runOnOperation() override {
    // Nobody listens.
    if (!getContext().getRemarkEngine())
      return;
    AccessAnalysis analysis(getOperation());
    for (ProgramOp program : getStepPrograms(getOperation()))
      if (getSchedule(program) && failed(Reporter(program, analysis).report()))
        return signalPassFailure();
  }
};
} // namespace
