//===- Timeline.cpp - what is complete when an action starts --------------===//

#include "Timeline.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void Timeline::append(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    if (Operation *action = wait.getEvent().getDefiningOp())
      clocks[(int)wait.getStream()].join(actions[indexOf(action)].completion());
    return;
  }
  int stream = (int)getStream(op);
  Clock &clock = clocks[stream];
  indices[op] = actions.size();
  actions.push_back({op, op->getName().getTypeID(), stream, clock[stream] + 1, clock});
  ++clock[stream];
}

void HazardTracker::conflicts(const Access &access,
                              llvm::function_ref<void(int64_t entry, bool wrote)> conflict) const {
  if ((size_t)access.place >= slots.size())
    return;
  const Slot &slot = slots[access.place];
  // What starts further in front ends before the access.
  for (auto range = slot.find(access.begin - slot.longest, 0);
       range != slot.ranges.end() && range->begin < access.end; ++range) {
    if (range->end <= access.begin)
      continue;
    const Touched &touched = range->touched;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (touched.written[stream] >= 0)
        conflict(touched.written[stream], true);
      if (access.writes && touched.read[stream] >= 0)
        conflict(touched.read[stream], false);
    }
  }
}

void HazardTracker::record(const Access &access, int64_t entry, int stream) {
  if ((size_t)access.place >= slots.size())
    slots.resize(std::max<size_t>(access.place + 1, 2 * slots.size()));
  Slot &slot = slots[access.place];
  auto range = slot.ranges.begin() + (slot.find(access.begin, access.end) - slot.ranges.cbegin());
  if (range == slot.ranges.end() || range->begin != access.begin || range->end != access.end) {
    range = slot.ranges.insert(range, {access.begin, access.end, {}});
    range->touched.written.fill(-1);
    range->touched.read.fill(-1);
    slot.longest = std::max(slot.longest, access.end - access.begin);
  }
  if (access.writes)
    range->touched.written[stream] = entry;
  if (access.reads)
    range->touched.read[stream] = entry;
}
