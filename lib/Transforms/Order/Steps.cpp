//===- Steps.cpp - runs, inputs and transfers of a position in order ------===//

#include "Steps.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dsopt;

ChunkEntries::ChunkEntries(const MicroBatch &graph, ArrayRef<SmallVector<PipelineSlot>> orders,
                           ArrayRef<std::vector<int64_t>> starts) {
  for (auto [stage, order] : llvm::enumerate(orders))
    for (auto [slot, start] : llvm::zip(order, starts[stage]))
      entries.try_emplace({graph.chunkOf(slot.block) * 2 + (slot.phase == Phase::F), slot.microBatch},
                          start * graph.stages + stage);
}

namespace {
class Lister {
public:
  Lister(const MicroBatch &graph, int64_t stage) : graph(graph), stage(stage) {}
  SmallVector<Step> list(ArrayRef<PipelineSlot> order);

private:
  /// Values from a chunk to the one above (below), in their order.
  SmallVector<int64_t> crossing(int64_t from, bool up) const;
  bool computedInPhase(int64_t value, int64_t from, bool up) const;
  void enter(int64_t chunk, int64_t microBatch, bool up);
  void run(int64_t id, int64_t microBatch);
  int64_t stageOf(int64_t chunk) const { return graph.chunks[chunk].stage; }

  const MicroBatch &graph;
  int64_t stage;
  SmallVector<Step> steps;
  std::set<std::tuple<int64_t, int64_t, bool>> entered; ///< chunk, micro-batch, up
  std::set<std::pair<int64_t, int64_t>> loaded;         ///< value, micro-batch
};
} // namespace

bool Lister::computedInPhase(int64_t id, int64_t from, bool up) const {
  const ValueInfo &value = graph.values[id];
  return value.chunk == from && (graph.runs[value.run].phase == Phase::F) == up;
}

SmallVector<int64_t> Lister::crossing(int64_t from, bool up) const {
  SmallVector<int64_t> here, computed;
  for (auto [id, value] : llvm::enumerate(graph.values))
    if (value.crosses(from, up))
      (computedInPhase(id, from, up) ? computed : here).push_back(id);
  here.append(computed);
  return here;
}

void Lister::enter(int64_t chunk, int64_t microBatch, bool up) {
  if (!entered.insert({chunk, microBatch, up}).second)
    return;
  int64_t from = up ? chunk - 1 : chunk + 1, to = up ? chunk + 1 : chunk - 1, count = graph.chunks.size();
  if (from >= 0 && from < count)
    for (int64_t value : crossing(from, up))
      steps.push_back({Step::Recv, value, microBatch, stageOf(from), chunk, up});
  if (to >= 0 && to < count)
    for (int64_t value : crossing(chunk, up))
      if (!computedInPhase(value, chunk, up))
        steps.push_back({Step::Send, value, microBatch, stageOf(to), to, up});
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
  int64_t to = up ? run.chunk + 1 : run.chunk - 1;
  for (int64_t value : run.results)
    if (graph.values[value].crosses(run.chunk, up))
      steps.push_back({Step::Send, value, microBatch, stageOf(to), to, up});
}

SmallVector<Step> Lister::list(ArrayRef<PipelineSlot> order) {
  std::map<std::pair<int64_t, Phase>, SmallVector<int64_t>> runs;
  for (auto [id, info] : llvm::enumerate(graph.runs))
    if (info.stage == stage)
      runs[{info.block, info.phase}].push_back(id);
  int64_t microBatches = 0;
  for (const PipelineSlot &slot : order) {
    enter(graph.chunkOf(slot.block), slot.microBatch, slot.phase == Phase::F);
    for (int64_t id : runs[{slot.block, slot.phase}])
      run(id, slot.microBatch);
    microBatches = std::max(microBatches, slot.microBatch + 1);
  }
  // A stage without backward of its own still hands values on.
  for (bool up : {true, false})
    for (int64_t m = 0; m < microBatches; ++m)
      for (auto [chunk, info] : llvm::enumerate(graph.chunks))
        if (info.stage == stage)
          enter(chunk, m, up);
  return std::move(steps);
}

/// Each send moves behind transfers to chunks that are come to earlier.
static SmallVector<Step> sortSends(ArrayRef<Step> steps, const ChunkEntries &entries) {
  struct Transfer {
    int64_t entry, place; ///< among the steps
  };
  SmallVector<Transfer> sends, recvs;
  for (auto [place, step] : llvm::enumerate(steps))
    if (step.kind == Step::Send || step.kind == Step::Recv)
      (step.kind == Step::Send ? sends : recvs)
          .push_back({entries.at(step.chunk, step.microBatch, step.up), (int64_t)place});
  llvm::sort(sends, [](const Transfer &a, const Transfer &b) {
    return std::tie(a.entry, a.place) < std::tie(b.entry, b.place);
  });
  SmallVector<Step> sorted;
  const Transfer *send = sends.begin(), *recv = recvs.begin();
  for (int64_t place = 0, count = steps.size(); place < count; ++place) {
    if (steps[place].kind != Step::Send)
      sorted.push_back(steps[place]);
    while (recv != recvs.end() && recv->place <= place)
      ++recv;
    for (; send != sends.end() && send->place <= place && (recv == recvs.end() || send->entry < recv->entry);
         ++send)
      sorted.push_back(steps[send->place]);
  }
  return sorted;
}

SmallVector<Step> dsopt::listSteps(const MicroBatch &graph, int64_t stage, ArrayRef<PipelineSlot> order,
                                   const ChunkEntries *entries) {
  SmallVector<Step> steps = Lister(graph, stage).list(order);
  return entries ? sortSends(steps, *entries) : steps;
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
