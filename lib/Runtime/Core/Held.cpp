//===- Held.cpp - what holds the actions of a step back --------------------===//
//
// Beside what they wait for in their own step: what the last step still writes to disk, and
// a checkpoint that has not taken what they change.
//
//===----------------------------------------------------------------------===//

#include "Core/Executor.h"

#include <algorithm>

namespace dsopt::runtime {

/// What the disk's queue writes last, and nothing waits for, goes on while the next step begins. The disk
/// takes that step's transfers behind it; other actions that touch its bytes, which the plan may give to
/// anything once a step has ended, wait.
void Executor::prepareTrailing() {
  std::vector<char> awaited(actions.size());
  for (const Prepared &prepared : actions)
    for (int64_t wait : prepared.action->waits)
      awaited[wait] = 1;
  std::vector<std::pair<const char *, const char *>> ranges;
  for (size_t index = actions.size(); index-- > 0;) {
    Prepared &prepared = actions[index];
    if (!prepared.transfer)
      continue;
    const Action &action = *prepared.action;
    const Memory &target = position.memories[position.buffers[action.refs[1].buffer].memory];
    if (target.kind != MemoryKind::Disk || awaited[index])
      break;
    prepared.trails = true;
    for (const Ref &ref : action.refs)
      ranges.emplace_back(addresses.at(ref), addresses.at(ref) + action.bytes);
  }
  auto meets = [&](const Ref &ref) {
    if (ref.buffer < 0)
      return false;
    const char *begin = addresses.at(Ref{ref.buffer, ref.slot}),
               *end = begin + position.buffers[ref.buffer].bytes;
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto &range) { return begin < range.second && range.first < end; });
  };
  for (Prepared &prepared : actions)
    if (!prepared.transfer)
      prepared.meetsTrailing = meets(prepared.action->temp) ||
                               std::any_of(prepared.action->refs.begin(), prepared.action->refs.end(), meets);
}

void Executor::waitFor(AsyncSave &newSave) {
  save = &newSave;
  for (Prepared &prepared : actions) {
    prepared.regions.clear();
    for (int64_t index : prepared.action->changes) {
      const Buffer &buffer = position.buffers[index];
      const char *begin = addresses.at(buffer);
      for (size_t region : save->regionsIn(begin, begin + (buffer.slots - 1) * buffer.stride + buffer.bytes))
        prepared.regions.push_back(region);
    }
  }
}

bool Executor::isHeld(int64_t action) {
  if (trailing > 0 && (actions[action].flies || actions[action].meetsTrailing))
    return true;
  if (!save || !save->holds(actions[action].regions))
    return false;
  held = action;
  return true;
}

} // namespace dsopt::runtime
