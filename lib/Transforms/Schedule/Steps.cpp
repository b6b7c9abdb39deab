//===- Steps.cpp - runs, inputs and transfers of a position in order ------===//

#include "Steps.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dsopt;

namespace {
class Lister {
public:
  Lister(const MicroBatch &graph, int64_t stage) : graph(graph), stage(stage) {}
  SmallVector<Step> list(ArrayRef<PipelineSlot> order);

private:
  /// Values from stage `from` to the one above (below), in their order.
  SmallVector<int64_t> crossing(int64_t from, bool up) const;
  bool computedInPhase(int64_t value, int64_t from, bool up) const;
  void enter(int64_t microBatch, bool up);
  void run(int64_t id, int64_t microBatch);

  const MicroBatch &graph;
  int64_t stage;
  SmallVector<Step> steps;
  std::set<std::pair<int64_t, bool>> entered;   ///< micro-batch, up
  std::set<std::pair<int64_t, int64_t>> loaded; ///< value, micro-batch
};
} // namespace

bool Lister::computedInPhase(int64_t id, int64_t from, bool up) const {
  const ValueInfo &value = graph.values[id];
  return value.stage == from && (graph.runs[value.run].phase == Phase::F) == up;
}

SmallVector<int64_t> Lister::crossing(int64_t from, bool up) const {
  SmallVector<int64_t> here, computed;
  for (auto [id, value] : llvm::enumerate(graph.values))
    if (up ? value.crossesUp(from) : value.crossesDown(from))
      (computedInPhase(id, from, up) ? computed : here).push_back(id);
  here.append(computed);
  return here;
}

void Lister::enter(int64_t microBatch, bool up) {
  if (!entered.insert({microBatch, up}).second)
    return;
  int64_t from = up ? stage - 1 : stage + 1, to = up ? stage + 1 : stage - 1;
  if (from >= 0 && from < graph.stages)
    for (int64_t value : crossing(from, up))
      steps.push_back({Step::Recv, value, microBatch, from});
  if (to >= 0 && to < graph.stages)
    for (int64_t value : crossing(stage, up))
      if (!computedInPhase(value, stage, up))
        steps.push_back({Step::Send, value, microBatch, to});
}

void Lister::run(int64_t id, int64_t microBatch) {
  const RunInfo &run = graph.runs[id];
  for (int64_t value : run.inputs) {
    const ValueInfo &info = graph.values[value];
    if (info.stage < 0 && !info.seed && loaded.insert({value, microBatch}).second)
      steps.push_back({Step::Input, value, microBatch});
  }
  steps.push_back({Step::Run, id, microBatch});
  bool up = run.phase == Phase::F;
  for (int64_t value : run.results)
    if (up ? graph.values[value].crossesUp(stage) : graph.values[value].crossesDown(stage))
      steps.push_back({Step::Send, value, microBatch, up ? stage + 1 : stage - 1});
}

SmallVector<Step> Lister::list(ArrayRef<PipelineSlot> order) {
  std::map<std::pair<int64_t, Phase>, SmallVector<int64_t>> runs;
  for (auto [id, info] : llvm::enumerate(graph.runs))
    if (info.stage == stage)
      runs[{info.block, info.phase}].push_back(id);
  int64_t microBatches = 0;
  for (const PipelineSlot &slot : order) {
    enter(slot.microBatch, slot.phase == Phase::F);
    for (int64_t id : runs[{slot.block, slot.phase}])
      run(id, slot.microBatch);
    microBatches = std::max(microBatches, slot.microBatch + 1);
  }
  // A stage without backward of its own still hands values on.
  for (bool up : {true, false})
    for (int64_t m = 0; m < microBatches; ++m)
      enter(m, up);
  return std::move(steps);
}

SmallVector<Step> dsopt::listSteps(const MicroBatch &graph, int64_t stage, ArrayRef<PipelineSlot> order) {
  return Lister(graph, stage).list(order);
}

llvm::DenseMap<int64_t, int64_t> dsopt::countSlots(const MicroBatch &graph, ArrayRef<Step> steps) {
  // First and last step of each (value, micro-batch).
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> spans;
  auto touch = [&](int64_t value, int64_t microBatch, int64_t step) {
    auto [it, fresh] = spans.try_emplace({value, microBatch}, step, step);
    it->second.second = step;
  };
  for (auto [i, step] : llvm::enumerate(steps)) {
    if (step.kind != Step::Run) {
      touch(step.id, step.microBatch, i);
      continue;
    }
    for (int64_t value : graph.runs[step.id].inputs)
      touch(value, step.microBatch, i);
    for (int64_t value : graph.runs[step.id].results)
      touch(value, step.microBatch, i);
  }
  llvm::DenseMap<int64_t, SmallVector<std::pair<int64_t, int64_t>>> changes;
  for (auto &[key, span] : spans) {
    changes[key.first].push_back({span.first, 1});
    changes[key.first].push_back({span.second + 1, -1});
  }
  llvm::DenseMap<int64_t, int64_t> slots;
  for (auto &[value, list] : changes) {
    llvm::sort(list);
    int64_t alive = 0, most = 0;
    for (auto [step, change] : list)
      most = std::max(most, alive += change);
    slots[value] = most;
  }
  return slots;
}

SmallVector<Window> dsopt::listWindows(const MicroBatch &graph, ArrayRef<Step> steps, int64_t microBatches) {
  std::map<int64_t, SmallVector<int64_t>> gathersOf; ///< by run that needs them
  for (auto [id, gather] : llvm::enumerate(graph.gathers))
    for (int64_t run = gather.first; run <= gather.last; ++run)
      if (graph.runs[run].stage == gather.stage)
        gathersOf[run].push_back(id);
  // (gather, window) -> first and last run.
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> spans;
  int64_t position = 0;
  for (const Step &step : steps) {
    if (step.kind != Step::Run)
      continue;
    if (auto gathers = gathersOf.find(step.id); gathers != gathersOf.end())
      for (int64_t id : gathers->second)
        spans.try_emplace({id, step.microBatch / microBatches}, position, position).first->second.second =
            position;
    ++position;
  }
  SmallVector<Window> windows;
  for (auto &[key, span] : spans)
    windows.push_back({graph.gathers[key.first].bucket, span.first, span.second});
  llvm::sort(windows, [](const Window &a, const Window &b) {
    return std::tie(a.bucket, a.first, a.last) < std::tie(b.bucket, b.first, b.last);
  });
  SmallVector<Window> merged;
  for (const Window &window : windows) {
    if (!merged.empty() && merged.back().bucket == window.bucket && window.first <= merged.back().last + 1)
      merged.back().last = std::max(merged.back().last, window.last);
    else
      merged.push_back(window);
  }
  llvm::sort(merged, [](const Window &a, const Window &b) {
    return std::tie(a.first, a.bucket) < std::tie(b.first, b.bucket);
  });
  return merged;
}
