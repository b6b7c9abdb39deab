//===- DeviceGraphs.cpp - which actions a CUDA graph replays ---------------===//

#include "Core/DeviceGraphs.h"

#include <algorithm>
#include <map>
#include <set>

namespace dsopt::runtime {

namespace {
/// As many single calls cost less than one graph.
constexpr int64_t kFewActions = 2;

/// A queue's run that grows, and what its stream is behind of other queues'.
struct Run {
  int64_t first = -1, length = 0;
  bool isMuch = false;
  std::set<int64_t> behind;
};
} // namespace

GraphPlan planGraphs(const std::vector<Action> &actions, const std::vector<GraphPart> &parts) {
  // By another queue. Of several in one queue the last one is all that counts.
  std::vector<char> isAwaited(actions.size());
  for (const Action &action : actions) {
    std::map<int64_t, int64_t> last;
    for (int64_t wait : action.waits)
      if (int64_t queue = actions[wait].queue; queue != action.queue)
        last[queue] = std::max(last.emplace(queue, wait).first->second, wait);
    for (auto [queue, wait] : last)
      isAwaited[wait] = 1;
  }

  GraphPlan plan;
  plan.lengths.resize(actions.size());
  std::map<int64_t, Run> runs; ///< by queue
  auto end = [&](Run &run) {
    if (run.isMuch || run.length > kFewActions) {
      plan.lengths[run.first] = run.length;
      ++plan.graphs;
      plan.actions += run.length;
    }
    run.length = 0;
    run.isMuch = false;
  };
  for (size_t index = 0; index < actions.size(); ++index) {
    const Action &action = actions[index];
    Run &run = runs[action.queue];
    bool waits = false;
    for (int64_t wait : action.waits)
      waits |= actions[wait].queue != action.queue && run.behind.insert(wait).second;
    if (waits || !parts[index].isRecordable || (run.length && parts[run.first].phase != parts[index].phase))
      end(run);
    if (!parts[index].isRecordable)
      continue;
    if (run.length++ == 0)
      run.first = static_cast<int64_t>(index);
    run.isMuch |= parts[index].isMuch;
    if (isAwaited[index])
      end(run);
  }
  for (auto &[queue, run] : runs)
    end(run);
  return plan;
}

} // namespace dsopt::runtime
