//===- ReportOverlap.cpp - what computation has to wait for at once -------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Analysis/Exec/Simulation.h"
#include "dsopt/Analysis/Exec/StepCost.h"
#include "dsopt/Analysis/Exec/Timeline.h"
#include "dsopt/Analysis/Exec/Traffic.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Transforms/Overlap/Passes.h"
#include "mlir/IR/Remarks.h"

#include "llvm/Support/FormatVariadic.h"

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
/// Collectives on values of one kind that runs of a phase wait for.
struct Exposed {
  Operation *first = nullptr;
  int64_t actions = 0, bytes = 0, block = 0; ///< sent in those, and the first run's
  double seconds = 0;
};
} // namespace

static StringRef nameOfValues(Operation *op) {
  return isa<ShiftOp>(op) ? "hops" : isa<AllToAllOp>(op) ? "exchanges" : "gathers";
}

/// What parts of sequences wait for, by the plan's own times: hops whose meetings are shorter, or that what
/// they carry was only computed for, and exchanges.
static void reportValues(ModuleOp module) {
  SmallVector<ProgramOp> programs = getStepPrograms(module);
  ActionTimes times(module);
  Simulation simulation(programs, [&](Operation *op) {
    auto action = cast<ActionOpInterface>(op);
    return times.ofWork(action) + times.ofMove(action);
  });
  SymbolTable symbols(module);
  for (auto [program, traffic] : llvm::zip_equal(programs, collectTraffic(module, programs))) {
    llvm::DenseMap<Operation *, const SentBytes *> ofSequences;
    for (const SentBytes &sent : traffic)
      if (sent.kind == Traffic::SequenceParallel)
        ofSequences[sent.action] = &sent;
    std::map<std::tuple<Phase, StringRef, StringRef>, Exposed> found;
    SmallVector<WaitOp> waits; ///< since the last run
    for (Operation &op : getSchedule(program).getOps()) {
      if (auto wait = dyn_cast<WaitOp>(op); wait && simulation.heldBy(wait) > 0)
        waits.push_back(wait);
      auto run = dyn_cast<RunOp>(op);
      PartAttr part = run ? getPart(run, symbols.lookup(run.getSegment())) : PartAttr();
      if (!part)
        continue;
      for (WaitOp wait : waits) {
        Operation *action = wait.getEvent().getDefiningOp();
        const SentBytes *sent =
            action && getStream(&op) == getStream(wait) ? ofSequences.lookup(action) : nullptr;
        if (!sent)
          continue;
        Exposed &one = found[{part.getPhase(), nameOfValues(action), sent->over.getValue()}];
        if (one.actions++ == 0) {
          one.first = action;
          one.block = part.getBlock();
        }
        one.bytes += sent->bytes;
        one.seconds += simulation.heldBy(wait);
      }
      waits.clear();
    }
    for (auto &[key, one] : found) {
      auto [phase, name, over] = key;
      remark::missed(one.first->getLoc(), remark::RemarkOpts::name("exposed").category(kOverlapRemarks))
          << llvm::formatv(
                 "stage {0}: runs of phase {1} wait {2:F3} ms for {3} along {4} ({5} a step, {6} bytes), "
                 "first in block {7}",
                 program.getPosition(), stringifyPhase(phase), one.seconds * 1e3, name, over, one.actions,
                 one.bytes, one.block)
                 .str();
    }
  }
}

namespace {
struct ReportOverlap : dsopt::impl::ReportOverlapBase<ReportOverlap> {
  void runOnOperation() override {
    // Nobody listens.
    if (!getContext().getRemarkEngine())
      return;
    reportValues(getOperation());
    AccessAnalysis analysis(getOperation());
    for (ProgramOp program : getStepPrograms(getOperation()))
      if (getSchedule(program) && failed(Reporter(program, analysis).report()))
        return signalPassFailure();
  }
};
} // namespace
