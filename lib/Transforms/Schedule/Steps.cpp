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

SmallVector<int64_t> dsopt::countSlots(const MicroBatch &graph, ArrayRef<Step> steps) {
  // First and last step of each micro-batch of each value.
  std::vector<SmallVector<std::pair<int64_t, int64_t>, 0>> spans(graph.values.size());
  auto touch = [&](int64_t value, int64_t microBatch, int64_t step) {
    auto &list = spans[value];
    if ((int64_t)list.size() <= microBatch)
      list.resize(microBatch + 1, {-1, -1});
    auto &[first, last] = list[microBatch];
    first = first < 0 ? step : first;
    last = step;
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
  SmallVector<int64_t> slots;
  SmallVector<std::pair<int64_t, int64_t>> changes;
  for (const auto &list : spans) {
    changes.clear();
    for (auto [first, last] : list)
      if (first >= 0) {
        changes.push_back({first, 1});
        changes.push_back({last + 1, -1});
      }
    llvm::sort(changes);
    int64_t alive = 0, most = 0;
    for (auto [step, change] : changes)
      most = std::max(most, alive += change);
    slots.push_back(most);
  }
  return slots;
}
