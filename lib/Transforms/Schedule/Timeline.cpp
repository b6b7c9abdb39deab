//===- Timeline.cpp - what is complete when an action starts --------------===//

#include "Timeline.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

Timeline::Timeline(ScheduleOp schedule) {
  for (Operation &op : schedule.getBody().front())
    append(&op);
}

void Timeline::append(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    if (Operation *action = wait.getEvent().getDefiningOp())
      clocks[(int)wait.getStream()].join(actions[indexOf(action)].completion());
    return;
  }
  int stream = (int)getStream(op);
  Clock &clock = clocks[stream];
  indices[op] = actions.size();
  actions.push_back({op, stream, clock[stream] + 1, clock});
  ++clock[stream];
}

void HazardTracker::conflicts(const Access &access,
                              llvm::function_ref<void(int64_t entry, bool wrote)> conflict) const {
  auto it = slots.find({access.buffer, access.slot});
  if (it == slots.end())
    return;
  for (const Range &range : it->second) {
    if (range.end <= access.begin || access.end <= range.begin)
      continue;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (range.written[stream] >= 0)
        conflict(range.written[stream], true);
      if (access.writes && range.read[stream] >= 0)
        conflict(range.read[stream], false);
    }
  }
}

void HazardTracker::record(const Access &access, int64_t entry, int stream) {
  auto &ranges = slots[{access.buffer, access.slot}];
  auto range =
      llvm::find_if(ranges, [&](const Range &r) { return r.begin == access.begin && r.end == access.end; });
  if (range == ranges.end()) {
    Range fresh{access.begin, access.end, {}, {}};
    fresh.written.fill(-1);
    fresh.read.fill(-1);
    ranges.push_back(fresh);
    range = ranges.end() - 1;
  }
  if (access.writes)
    range->written[stream] = entry;
  if (access.reads)
    range->read[stream] = entry;
}
