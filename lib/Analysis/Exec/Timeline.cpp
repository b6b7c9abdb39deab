//===- Timeline.cpp - what is complete when an action starts --------------===//

#include "dsopt/Analysis/Exec/Timeline.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void Timeline::append(Operation *op) {
  int stream = streams->of(op);
  if (auto wait = dyn_cast<WaitOp>(op)) {
    if (Operation *action = wait.getEvent().getDefiningOp())
      clocks[stream].join(actions[indexOf(action)].completion());
    return;
  }
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
    const Touched *touched = &slot.touched[(range - slot.ranges.begin()) * streams];
    for (int stream = 0; stream < streams; ++stream) {
      if (touched[stream].written >= 0)
        conflict(touched[stream].written, true);
      if (access.writes && touched[stream].read >= 0)
        conflict(touched[stream].read, false);
    }
  }
}

void HazardTracker::record(const Access &access, int64_t entry, int stream) {
  if ((size_t)access.place >= slots.size())
    slots.resize(std::max<size_t>(access.place + 1, 2 * slots.size()));
  Slot &slot = slots[access.place];
  size_t index = slot.find(access.begin, access.end) - slot.ranges.cbegin();
  auto range = slot.ranges.begin() + index;
  if (range == slot.ranges.end() || range->begin != access.begin || range->end != access.end) {
    slot.ranges.insert(range, {access.begin, access.end});
    slot.touched.insert(slot.touched.begin() + index * streams, streams, Touched());
    slot.longest = std::max(slot.longest, access.end - access.begin);
  }
  Touched &touched = slot.touched[index * streams + stream];
  if (access.writes)
    touched.written = entry;
  if (access.reads)
    touched.read = entry;
}
