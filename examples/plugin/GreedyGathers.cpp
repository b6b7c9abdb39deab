//===- GreedyGathers.cpp - a pass outside the tree: DeepCompile's rule -----===//
//
// Places gathers as DeepSpeed's compiler does (Tanaka et al., DeepCompile, 2025), to compare with: of the
// memory that each action leaves, nine tenths, parameters that are gathered most for their bytes stay whole
// as long as the first of them fits (selective unsharding). Then, from the last run to the first, gathers
// move ahead, and where a run would have too little room with them the one that is needed last stays behind
// it (proactive prefetching). Without a budget all move to the front. Stands in front of prefetch-gathers,
// with -prefetch=0.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/MemoryProfile.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// The part of memory that may be filled, and the bytes that gathers ahead take at most.
static constexpr double kUsed = 0.9, kMostBuffered = 4e9;
/// Starting a gather takes as long as sending so many bytes.
static constexpr double kStartBytes = 50000;

namespace {
/// Works on one program.
class GreedyRule {
public:
  GreedyRule(ProgramOp program, double limit)
      : program(program), actions(getSchedule(program).getBody().front()), limit(limit) {}
  LogicalResult apply() { return failure(failed(keep()) || failed(prefetch())); }

private:
  LogicalResult measure();
  /// Whole parameters alone are for runs.
  static bool isOfParameters(GatherOp gather) {
    return gather && gather.getSlice().getBuffer() != gather.getTarget().getBuffer();
  }
  int64_t bytesOf(Attribute buffer) {
    return cast<BufferOp>(SymbolTable::lookupSymbolIn(program, cast<FlatSymbolRefAttr>(buffer))).getStride();
  }
  LogicalResult keep();
  LogicalResult prefetch();

  ProgramOp program;
  Block &actions;
  double limit;
  MemoryProfile profile;
};
} // namespace

LogicalResult GreedyRule::measure() {
  AccessAnalysis analysis(program->getParentOfType<ModuleOp>());
  FailureOr<MemoryProfile> found = MemoryProfile::compute(program, analysis);
  if (succeeded(found))
    profile = std::move(*found);
  return failure(failed(found));
}

LogicalResult GreedyRule::keep() {
  if (failed(measure()))
    return failure();
  llvm::MapVector<Attribute, SmallVector<GatherOp>> gathers;
  for (auto gather : actions.getOps<GatherOp>())
    if (isOfParameters(gather))
      gathers[gather.getTarget().getBuffer()].push_back(gather);
  auto all = gathers.takeVector();
  auto time = [&](const auto &entry) { // for each byte
    return entry.second.size() * (1 + kStartBytes / bytesOf(entry.first));
  };
  llvm::stable_sort(all, [&](const auto &a, const auto &b) { return time(a) > time(b); });
  double room = limit - profile.peak;
  for (auto &[buffer, list] : all) {
    room -= bytesOf(buffer);
    if (room < 0)
      break;
    for (GatherOp gather : ArrayRef(list).drop_front())
      gather.erase();
  }
  return success();
}

LogicalResult GreedyRule::prefetch() {
  if (failed(measure()))
    return failure();
  SmallVector<GatherOp> pending; ///< the one that is needed last comes first
  int64_t bytes = 0;
  auto put = [&](size_t index, RunOp run) {
    bytes -= bytesOf(pending[index].getTarget().getBuffer());
    pending[index]->moveAfter(run);
    pending.erase(pending.begin() + index);
  };
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(actions))) {
    if (auto gather = dyn_cast<GatherOp>(op); isOfParameters(gather)) {
      pending.push_back(gather);
      bytes += bytesOf(gather.getTarget().getBuffer());
    }
    auto run = dyn_cast<RunOp>(op);
    if (!run)
      continue;
    // Not in front of a run that needs what the buffer holds before.
    for (size_t index = 0; index < pending.size();)
      if (usesBuffer(run, pending[index].getTarget().getBuffer()))
        put(index, run);
      else
        ++index;
    while (!pending.empty() && (profile.live[run] + bytes > limit || bytes > kMostBuffered))
      put(0, run);
  }
  Operation *front = &actions.front();
  for (GatherOp gather : pending) {
    if (gather == front)
      continue;
    gather->moveBefore(front);
    front = gather;
  }
  renumberCollectives(getSchedule(program));
  return success();
}

namespace {
struct GreedyGathers : PassWrapper<GreedyGathers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GreedyGathers)
  GreedyGathers() = default;
  GreedyGathers(const GreedyGathers &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "greedy-gathers"; }
  StringRef getDescription() const final { return "place gathers by DeepCompile's rule, for comparison"; }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    int64_t memory = deviceMemory ? deviceMemory : options::device_memory(module);
    double limit = memory > 0 ? kUsed * memory : std::numeric_limits<double>::infinity();
    for (auto program : module.getOps<ProgramOp>())
      if (getSchedule(program) && failed(GreedyRule(program, limit).apply()))
        return signalPassFailure();
  }

  Option<int64_t> deviceMemory{*this, "device-memory",
                               llvm::cl::desc("bytes (0: as dsopt.options says, else any number)"),
                               llvm::cl::init(0)};
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "greedy-gathers", "1", [] { PassRegistration<GreedyGathers>(); }};
}
