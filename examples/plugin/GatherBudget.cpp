//===- GatherBudget.cpp - a pass outside the tree: prefetch by bytes ------===//
//
// Starts gathers as early as they fit: at most `bytes` of whole parameters are
// gathered ahead of the run that is next (what DeepSpeed calls its prefetch
// bucket). Runs after prefetch-gathers with -prefetch=0.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace dsopt::exec;

namespace {
struct GatherBudget : PassWrapper<GatherBudget, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatherBudget)
  GatherBudget() = default;
  GatherBudget(const GatherBudget &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "gather-budget"; }
  StringRef getDescription() const final { return "gather as early as `bytes` of whole parameters allow"; }

  void move(ScheduleOp schedule, int64_t ranks) {
    SmallVector<RunOp> runs;
    SmallVector<std::pair<GatherOp, int64_t>> gathers; // with the run that needs it
    for (Operation &op : llvm::make_early_inc_range(schedule.getBody().front()))
      if (auto run = dyn_cast<RunOp>(op))
        runs.push_back(run);
      else if (auto wait = dyn_cast<WaitOp>(op); wait && isa<GatherOp>(wait->getNextNode()))
        wait.erase();
      else if (auto gather = dyn_cast<GatherOp>(op);
               gather && gather.getSlice().getBuffer() != gather.getTarget().getBuffer())
        gathers.push_back({gather, (int64_t)runs.size()});
    SmallVector<int64_t> ahead(runs.size(), 0);
    llvm::DenseMap<int64_t, Operation *> ends;
    for (auto [gather, user] : gathers) {
      FlatSymbolRefAttr buffer = gather.getTarget().getBuffer();
      if (user == 0 || user == (int64_t)runs.size() || !usesBuffer(runs[user], buffer))
        continue;
      int64_t size = gather.getBytes() * ranks, place = user - 1;
      while (place > 0 && ahead[place] + size <= bytes && !usesBuffer(runs[place], buffer))
        ahead[place--] += size;
      Operation *&end = ends.try_emplace(place, runs[place]).first->second;
      gather->moveAfter(end);
      end = gather;
      OpBuilder builder(gather);
      WaitOp::create(builder, gather.getLoc(), runs[place].getEvent(), gather.getStream());
    }
    renumberCollectives(schedule);
  }

  void runOnOperation() final {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (ScheduleOp schedule = getSchedule(program))
        move(schedule, dsopt::dist::getGrid(getOperation()).dataParallel());
  }

  Option<int64_t> bytes{*this, "bytes", llvm::cl::desc("bytes gathered ahead at most"), llvm::cl::init(0)};
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gather-budget", "1", [] { PassRegistration<GatherBudget>(); }};
}
