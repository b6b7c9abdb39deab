//===- PrefetchGathers.cpp - gathers start before their run ---------------===//

#include "Gathered.h"
#include "dsopt/Analysis/Exec/MemoryProfile.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Overlap/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_PREFETCHGATHERS
#include "dsopt/Transforms/Overlap/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// How far ahead gathers may start.
struct Ahead {
  int64_t distance;             ///< runs
  int64_t elements = INT64_MAX; ///< with so many ahead no further gather starts early
  int64_t live = INT64_MAX;     ///< elements that are whole at once
  int64_t bytes = INT64_MAX;    ///< of memory while a run lasts, in order of issue
};

/// What a gather makes whole is needed from the `first` to the `last` run.
struct Use {
  GatherOp gather;
  int64_t before; ///< runs before the gather
  int64_t first, last;
};

/// Moves the gathers of one program.
class Mover {
public:
  Mover(ProgramOp program, const Ahead &most, AccessAnalysis &analysis)
      : most(most), program(program), analysis(analysis), schedule(getSchedule(program)), elements(program) {}
  LogicalResult move();

private:
  void readUses();
  int64_t bytesOf(GatherOp gather) {
    return analysis.buffer(program, gather.getTarget().getBuffer().getAttr()).getStride();
  }
  /// Why a gather cannot start before a run that it follows; empty where it can.
  std::string holdsBack(Use use, int64_t run);

  Ahead most;
  ProgramOp program;
  AccessAnalysis &analysis;
  ScheduleOp schedule;
  GatheredElements elements;
  SmallVector<RunOp> runs;
  SmallVector<Use> uses;
  SmallVector<int64_t> live, ahead; ///< elements by run: whole, and for later runs alone
  MemoryProfile profile;            ///< where there is a limit of bytes
};
} // namespace

void Mover::readUses() {
  llvm::DenseMap<Attribute, SmallVector<int64_t>> users; ///< runs, by what they are given
  for (Operation &op : schedule.getBody().front()) {
    if (auto run = dyn_cast<RunOp>(op)) {
      for (auto ref : run.getBuffers().getAsRange<RefAttr>())
        users[ref.getBuffer()].push_back(runs.size());
      runs.push_back(run);
    } else if (auto gather = dyn_cast<GatherOp>(op);
               gather && !isOfValues(gather.getTraffic()) &&
               gather.getSlice().getBuffer() != gather.getTarget().getBuffer()) {
      uses.push_back({gather, (int64_t)runs.size(), -1, -1});
    }
  }
  live.assign(runs.size(), 0);
  ahead.assign(runs.size(), 0);
  SmallVector<int64_t> changes(runs.size() + 1, 0); ///< of `live`, from one run to the next
  llvm::DenseMap<Attribute, int64_t> ends;          ///< of a buffer: the runs before its next gather
  for (Use &use : llvm::reverse(uses)) {
    FlatSymbolRefAttr buffer = use.gather.getTarget().getBuffer();
    int64_t &end = ends.try_emplace(buffer, runs.size()).first->second;
    ArrayRef<int64_t> given = users[buffer];
    const int64_t *first = llvm::lower_bound(given, use.before), *behind = llvm::lower_bound(given, end);
    if (first != behind) {
      use.first = *first;
      use.last = behind[-1];
      changes[use.before] += elements.of(buffer);
      changes[use.last + 1] -= elements.of(buffer);
    }
    end = use.before;
  }
  int64_t sum = 0;
  for (auto [whole, change] : llvm::zip(live, changes))
    whole = sum += change;
  // Only whole parameters are for a run.
  llvm::erase_if(uses, [](const Use &use) { return use.first < 0; });
}

std::string Mover::holdsBack(Use use, int64_t run) {
  FlatSymbolRefAttr buffer = use.gather.getTarget().getBuffer();
  // Not in front of a run that needs what the buffer holds before.
  if (usesBuffer(runs[run], buffer))
    return "the run before needs what the buffer holds";
  if (ahead[run] >= most.elements)
    return "-prefetch-bucket-size=" + std::to_string(most.elements);
  if (most.bytes != INT64_MAX && profile.live[runs[run]] + bytesOf(use.gather) > most.bytes)
    return "-device-memory leaves no room for it beside the run before";
  if (live[run] + elements.of(buffer) > most.live)
    return "-max-live-parameters=" + std::to_string(most.live);
  return "";
}

LogicalResult Mover::move() {
  readUses();
  if (most.bytes != INT64_MAX) {
    FailureOr<MemoryProfile> found = MemoryProfile::compute(program, analysis);
    if (failed(found))
      return failure();
    profile = std::move(*found);
  }
  Block &body = schedule.getBody().front();
  GatherRemarks remarks("gather-not-prefetched");
  // Behind the runs, or at the front: where the next gather that is moved there goes.
  llvm::DenseMap<int64_t, Operation *> ends;
  Operation *front = &*llvm::find_if(body, [](Operation &op) { return !isa<GatherOp>(op); });
  for (const Use &use : uses) {
    GatherOp gather = use.gather;
    int64_t place = use.before - 1, size = elements.of(gather.getTarget().getBuffer());
    std::string reason = place < 0 ? "no run comes before it" : most.distance == 0 ? "-prefetch=0" : "";
    while (place >= 0 && place > use.first - 1 - most.distance) {
      if (reason = holdsBack(use, place); !reason.empty())
        break;
      profile.live[runs[place]] += bytesOf(gather);
      live[place] += size;
      ahead[place--] += size;
    }
    if (place == use.first - 1 && !reason.empty())
      remarks.add(gather, reason);
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
  remarks.emit("is not gathered ahead of its run");
  renumberCollectives(schedule);
  return success();
}

LogicalResult dsopt::prefetchGathers(ModuleOp module) {
  Ahead most{options::prefetch(module).value_or(1), options::prefetch_bucket_size(module).value_or(INT64_MAX),
             options::max_live_parameters(module).value_or(INT64_MAX),
             getOption(module, "prefetch_memory", INT64_MAX)};
  AccessAnalysis analysis(module);
  for (auto program : module.getOps<ProgramOp>())
    if (ScheduleOp schedule = getSchedule(program); schedule && !schedule.getBody().front().empty())
      if (failed(Mover(program, most, analysis).move()))
        return failure();
  return success();
}

namespace {
struct PrefetchGathers : dsopt::impl::PrefetchGathersBase<PrefetchGathers> {
  using PrefetchGathersBase::PrefetchGathersBase;
  void runOnOperation() override {
    giveOption(getOperation(), "prefetch", distance, /*unset=*/-1);
    giveOption(getOperation(), "prefetch_bucket_size", bucketSize, /*unset=*/-1);
    giveOption(getOperation(), "max_live_parameters", maxLiveParameters, /*unset=*/-1);
    giveOption(getOperation(), "prefetch_memory", memory, /*unset=*/0);
    if (failed(prefetchGathers(getOperation())))
      signalPassFailure();
  }
};
} // namespace
