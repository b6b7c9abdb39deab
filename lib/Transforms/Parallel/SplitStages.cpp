//===- SplitStages.cpp - cut the blocks into stages of balanced cost ------===//

#include "ParameterUses.h"
#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_SPLITSTAGES
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct SplitStagesPass : dsopt::impl::SplitStagesBase<SplitStagesPass> {
  using SplitStagesBase::SplitStagesBase;
  void runOnOperation() override;
};
} // namespace

/// The first block of each chunk such that the largest sum of costs of a chunk
/// is minimal (linear partition by dynamic programming, O(blocks^2 stages)).
static SmallVector<int64_t> balance(ArrayRef<double> costs, int64_t stages) {
  int64_t n = costs.size();
  SmallVector<double> sum(n + 1, 0);
  for (int64_t i = 0; i < n; ++i)
    sum[i + 1] = sum[i] + costs[i];
  // best[s][i]: the least largest cost of the first i blocks in s + 1 stages.
  std::vector<std::vector<double>> best(stages, std::vector<double>(n + 1, sum[n] + 1));
  std::vector<std::vector<int64_t>> cut(stages, std::vector<int64_t>(n + 1, 0));
  for (int64_t i = 1; i <= n; ++i)
    best[0][i] = sum[i];
  for (int64_t s = 1; s < stages; ++s)
    for (int64_t i = s + 1; i <= n; ++i)
      for (int64_t j = s; j < i; ++j)
        if (double worst = std::max(best[s - 1][j], sum[i] - sum[j]); worst < best[s][i]) {
          best[s][i] = worst;
          cut[s][i] = j;
        }
  SmallVector<int64_t> first(stages, 0);
  for (int64_t s = stages - 1, end = n; s > 0; --s)
    first[s] = end = cut[s][end];
  return first;
}

/// The first block of each chunk: those of `runs` stay together, each of which begins with a block.
static SmallVector<int64_t> balanceRuns(ArrayRef<double> costs, ArrayRef<int64_t> runs, int64_t chunks) {
  SmallVector<double> sums(runs.size(), 0);
  for (auto [block, cost] : llvm::enumerate(costs))
    sums[llvm::upper_bound(runs, (int64_t)block) - runs.begin() - 1] += cost;
  return llvm::map_to_vector(balance(sums, chunks), [&](int64_t run) { return runs[run]; });
}

/// The stage of each chunk of `total` blocks, as the schedule has it.
static FailureOr<SmallVector<int64_t>> chunkMap(ModuleOp module, StringRef name, int64_t stages,
                                                int64_t total) {
  std::string problem;
  PipelineSchedule schedule = getPipelineSchedule(name, &problem);
  if (!schedule.order)
    return module.emitError("schedule ") << problem;
  if (problem = schedule.refuse(stages, options::micro_batches(module).value_or(0), {}); !problem.empty())
    return module.emitError("schedule ") << name << " " << problem;
  SmallVector<int64_t> map = schedule.chunks(stages, {});
  for (int64_t stage : map)
    if (stage < 0 || stage >= stages)
      return module.emitError("schedule ")
             << name << " has a chunk at stage " << stage << ", expected stages 0 to " << stages - 1;
  for (int64_t stage = 0; stage < stages; ++stage)
    if (!llvm::is_contained(map, stage))
      return module.emitError("schedule ") << name << " has no chunk at stage " << stage << " of " << stages;
  if ((int64_t)map.size() > total)
    return module.emitError("cannot cut ")
           << total << " blocks into the " << map.size() << " chunks that schedule " << name << " has on "
           << stages << " pipeline stages: fewer chunks or stages (-pp) are needed";
  return map;
}

void SplitStagesPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  int64_t count = dist::getGrid(module).size(Axis::pp);
  int64_t total = blocks->size();
  if (count < 1 || count > total) {
    module.emitError("cannot cut ") << total << " blocks into " << count
                                    << " pipeline stages: -pp is at most " << total << " for this model";
    return signalPassFailure();
  }
  giveOption(module, "schedule", StringRef(schedule));
  FailureOr<SmallVector<int64_t>> chunks = chunkMap(module, options::schedule(module), count, total);
  if (failed(chunks))
    return signalPassFailure();

  SymbolTable symbols(module);
  SmallVector<WholeTiles> together = findWholeTiles(module, *blocks, symbols);
  SmallVector<int64_t> runs; // where stages may begin
  for (int64_t block = 0; block < total; ++block)
    if (llvm::none_of(together,
                      [&](const WholeTiles &tiles) { return tiles.first < block && block <= tiles.last; }))
      runs.push_back(block);
  if (runs.size() < chunks->size()) {
    WholeTiles most = *llvm::max_element(together, [](const WholeTiles &a, const WholeTiles &b) {
      return a.last - a.first < b.last - b.first;
    });
    module.emitError("cannot cut ") << total << " blocks into " << chunks->size()
                                    << " stages or chunks: " << most.rule.getRuleName() << " sees "
                                    << describe(most.rule.getScope()) << ", so that blocks " << most.first
                                    << " to " << most.last << " with the tiles of @"
                                    << most.parameter.getValue() << " stay on one; expected -pp of at most "
                                    << runs.size() << ", or -tile-products=none";
    return signalPassFailure();
  }
  graph::FlopCounter counter(module);
  SmallVector<double> flops, bytes;
  double allFlops = 0, allBytes = 0;
  for (graph::Block &block : *blocks) {
    double blockFlops = 0, blockBytes = 0;
    for (func::FuncOp function : block.stepFunctions()) {
      FailureOr<int64_t> cost = counter.count(function);
      if (failed(cost))
        return signalPassFailure();
      blockFlops += *cost;
    }
    for (StringAttr name : graph::readParameters(block.stepFunctions().front(), symbols))
      blockBytes += symbols.lookup<graph::ParameterOp>(name).getBytes();
    flops.push_back(blockFlops);
    bytes.push_back(blockBytes);
    allFlops += blockFlops;
    allBytes += blockBytes;
  }
  SmallVector<double> costs;
  for (int64_t i = 0; i < total; ++i)
    costs.push_back(flops[i] / std::max(allFlops, 1.0) + bytes[i] / std::max(allBytes, 1.0));

  Builder builder(module.getContext());
  SmallVector<int64_t> first = balanceRuns(costs, runs, chunks->size());
  // A variant of a program is cut where the program is.
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(getOption(module, "stage_starts")))
    first.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  bool apart = (int64_t)chunks->size() > count;
  if (first.size() != chunks->size() || first.front() != 0 || !llvm::is_sorted(first) ||
      first.back() >= total) {
    module.emitError("option stage_starts does not cut ")
        << total << " blocks into " << chunks->size() << (apart ? " chunks" : " stages");
    return signalPassFailure();
  }
  first.push_back(total);
  for (auto [chunk, stage] : llvm::enumerate(*chunks))
    for (int64_t i = first[chunk]; i < first[chunk + 1]; ++i)
      for (func::FuncOp function : (*blocks)[i].functions()) {
        function->setAttr(dist::kStageAttr, builder.getI64IntegerAttr(stage));
        if (apart)
          function->setAttr(dist::kChunkAttr, builder.getI64IntegerAttr(chunk));
      }
}
