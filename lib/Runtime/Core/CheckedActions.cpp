//===- CheckedActions.cpp - a step that compares actions with what they say -===//
//
// DSOPT_CHECK_ACCESSES. Actions go one after the other, in an order that queues and waits
// allow and a seed draws; only what other ranks have a part in flies beside them. All but
// that is run twice (AccessMemory.h). What flies is compared with what the engine is
// asked, and with what has changed in memory.
//
//===----------------------------------------------------------------------===//

#include "Core/Executor.h"

#include <algorithm>
#include <thread>

namespace dsopt::runtime {

static constexpr const char *kName = " (DSOPT_CHECK_ACCESSES)";

/// What an action says it writes, as far as this rank's own part goes: other ranks may do all of a run, and
/// an update goes by parameters. What an agreement writes depends on what is agreed.
std::vector<Touch> Executor::wholeTouches(const Prepared &prepared, std::vector<Touch> touches) const {
  const Action &action = *prepared.action;
  std::vector<Touch> all;
  for (Touch &touch : touches) {
    bool isPart = touch.isWhole && action.kind == ActionKind::Update && touch.address < action.refs.size();
    if (prepared.isIdle || action.kind == ActionKind::Agree || isPart)
      touch.isWhole = false;
    all.push_back(touch);
    if (!isPart || action.elements == 0)
      continue;
    int64_t width = (touch.end - touch.begin) / action.elements;
    for (size_t i = prepared.firstLaunch; i < prepared.lastLaunch; ++i) {
      Touch part = touch;
      part.isWhole = true;
      part.begin = touch.begin + launches[i].begin * width;
      part.end = touch.begin + launches[i].end * width;
      all.push_back(part);
    }
  }
  return all;
}

/// What the engine is asked to take and to give is what the action says.
void Executor::expectStaged(const Prepared &prepared, const std::vector<Touch> &touches) const {
  Staged ranges = stage(prepared);
  auto expect = [&](const std::vector<Staged::Range> &all, bool writes) {
    for (const Staged::Range &range : all) {
      auto [memory, begin] = checked->memory.find(range.begin);
      if (range.bytes == 0 || memory == checked->memory.size())
        continue;
      int64_t end = begin + range.bytes;
      for (bool grows = true; grows && begin < end;) {
        grows = false;
        for (const Touch &touch : touches)
          if (touch.memory == memory && (writes ? touch.writes : touch.reads) && touch.begin <= begin &&
              touch.end > begin) {
            begin = touch.end;
            grows = true;
          }
      }
      if (begin < end)
        throw Error(StatusInput,
                    "program table: '" + prepared.action->name + "' " + (writes ? "writes " : "reads ") +
                        describePlace(position, memory, begin, touches) + ", which it does not say" + kName);
    }
  };
  expect(ranges.taken, false);
  expect(ranges.given, true);
}

void Executor::check(AccessMemory *memory) {
  if (!memory)
    return;
  checked = std::make_unique<Checked>(
      Checked{*memory, touchesOf(program, position, info), std::vector<std::vector<int64_t>>(queues.size())});
  if (std::string race = findRace(position, checked->touches); !race.empty())
    throw Error(StatusInput, "program table: " + race + kName);
  for (size_t index = 0; index < actions.size(); ++index) {
    Prepared &prepared = actions[index];
    if (communicates(prepared.action->kind))
      expectStaged(prepared, checked->touches[index]);
    checked->touches[index] = wholeTouches(prepared, std::move(checked->touches[index]));
    checked->byQueue[prepared.action->queue].push_back(static_cast<int64_t>(index));
    // Each is over before the next one.
    prepared.trails = prepared.meetsTrailing = false;
  }
  if (device)
    checked->stream = std::make_unique<cuda::Stream>();
}

/// One that may start, -1: none before what flies is over.
int64_t Executor::chooseNext() {
  std::vector<int64_t> computed, flown;
  for (size_t queue = 0; queue < queues.size(); ++queue) {
    if (checked->next[queue] == checked->byQueue[queue].size() || queues[queue]->waiting() >= 0)
      continue;
    int64_t index = checked->byQueue[queue][checked->next[queue]];
    const std::vector<int64_t> &waits = actions[index].action->waits;
    bool isBusy = std::any_of(checked->flying.begin(), checked->flying.end(), [&](int64_t other) {
      return actions[other].action->queue == static_cast<int64_t>(queue);
    });
    if (!isBusy && std::all_of(waits.begin(), waits.end(), [&](int64_t wait) { return done[wait]; }))
      (communicates(actions[index].action->kind) ? flown : computed).push_back(index);
  }
  // By steps: what flies as soon as it can, as late as it can, or any way.
  switch ((step + options.checkAccesses) % 3) {
  case 0:
    if (!flown.empty())
      computed.clear();
    break;
  case 1:
    if (!computed.empty())
      flown.clear();
    break;
  default:
    break;
  }
  computed.insert(computed.end(), flown.begin(), flown.end());
  return computed.empty() ? -1 : computed[checked->random() % computed.size()];
}

/// What flies, the engine and a save do with memory meanwhile.
std::vector<OthersTouch> Executor::othersTouch(int64_t action) const {
  std::vector<OthersTouch> others;
  for (int64_t flying : checked->flying)
    if (flying != action)
      for (const Touch &touch : checked->touches[flying])
        others.push_back({touch.memory, touch.begin, touch.end, touch.writes});
  if (const Buffer *staging = addresses.find("staging"))
    others.push_back(
        {static_cast<size_t>(staging->memory), staging->offset, staging->offset + staging->bytes, true});
  if (save)
    save->eachHeld([&](const char *begin, const char *end) {
      if (auto [memory, at] = checked->memory.find(begin); memory < checked->memory.size())
        others.push_back({memory, at, at + (end - begin), false});
    });
  return others;
}

AccessMemory::Trial Executor::trialOf(int64_t action, const std::vector<OthersTouch> &others) {
  return {position, checked->touches[action], others, [this, action] { rehearse(actions[action]); }};
}

void Executor::rehearse(const Prepared &prepared) {
  Profile *profile = std::exchange(rt.profile, nullptr);
  if (isOnDevice(prepared)) {
    device->calls.setStream(*checked->stream);
    runOnDevice(prepared);
    checked->stream->synchronize();
  } else {
    run(prepared, -1);
    if (prepared.transfer)
      disk->wait(*prepared.transfer);
  }
  rt.profile = profile;
}

void Executor::runCompared(int64_t action, Breakdown &breakdown) {
  const Prepared &prepared = actions[action];
  bool flies = communicates(prepared.action->kind);
  while (isHeld(action))
    if (!save->take(prepared.regions))
      std::this_thread::yield();
  std::vector<OthersTouch> others = othersTouch(action);
  AccessMemory::Trial trial = trialOf(action, others);
  if (!checked->flying.empty())
    checked->memory.expectNoChange(position, others);
  if (flies)
    checked->memory.launch(trial);
  else
    checked->memory.rehearse(trial);
  ++checked->next[prepared.action->queue];
  queues[prepared.action->queue]->submit(action, prepared.action->waits);
  if (flies) {
    checked->flying.push_back(action);
    queues[prepared.action->queue]->poll();
    return;
  }
  while (!done[action]) {
    checked->awaited = 1;
    drive(checked->awaited, breakdown);
  }
  checked->memory.compare(trial);
}

/// What is over of what flew.
void Executor::landCompared() {
  for (size_t i = 0; i < checked->flying.size();) {
    int64_t action = checked->flying[i];
    if (!done[action]) {
      ++i;
      continue;
    }
    std::vector<OthersTouch> others = othersTouch(action);
    checked->memory.land(trialOf(action, others));
    checked->flying.erase(checked->flying.begin() + static_cast<std::ptrdiff_t>(i));
    checked->memory.expectNoChange(position, othersTouch(-1));
  }
}

void Executor::runChecked(Breakdown &breakdown) {
  checked->memory.begin();
  checked->next.assign(queues.size(), 0);
  checked->random.seed(static_cast<uint64_t>(options.checkAccesses) * 1000003 +
                       static_cast<uint64_t>(step) * 1009 + static_cast<uint64_t>(info.rank));
  replays = false;
  int64_t looked = -1;
  try {
    while (left > 0 || !checked->flying.empty()) {
      looked = checked->flying.empty() ? -1 : checked->flying.front();
      landCompared();
      int64_t action = chooseNext();
      if (action >= 0) {
        looked = action;
        runCompared(action, breakdown);
      } else if (left > 0) {
        checked->awaited = 1;
        drive(checked->awaited, breakdown);
      }
    }
  } catch (const AccessFault &fault) {
    throw failed(std::max<int64_t>(looked, 0), fault.what + kName);
  } catch (const cuda::Failure &failure) {
    throw deviceFailed(failure);
  }
}

} // namespace dsopt::runtime
