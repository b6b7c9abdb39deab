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
  const Slot &slot = it->second;
  // What starts further in front ends before the access.
  for (auto range = slot.ranges.lower_bound({access.begin - slot.longest, 0});
       range != slot.ranges.end() && range->first.first < access.end; ++range) {
    if (range->first.second <= access.begin)
      continue;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (range->second.written[stream] >= 0)
        conflict(range->second.written[stream], true);
      if (access.writes && range->second.read[stream] >= 0)
        conflict(range->second.read[stream], false);
    }
  }
}

void HazardTracker::record(const Access &access, int64_t entry, int stream) {
  Slot &slot = slots[{access.buffer, access.slot}];
  auto [range, fresh] = slot.ranges.try_emplace({access.begin, access.end});
  if (fresh) {
    range->second.written.fill(-1);
    range->second.read.fill(-1);
    slot.longest = std::max(slot.longest, access.end - access.begin);
  }
  if (access.writes)
    range->second.written[stream] = entry;
  if (access.reads)
    range->second.read[stream] = entry;
}
