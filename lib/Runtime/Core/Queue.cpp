//===- Queue.cpp - what runs the actions of a queue ------------------------===//

#include "Core/Queue.h"

#include <algorithm>
#include <utility>

namespace dsopt::runtime {

int64_t ActionQueue::takeReady() {
  if (next == taken.size())
    return -1;
  const std::vector<int64_t> &waits = *taken[next].dependencies;
  int64_t action = taken[next].action;
  if (!std::all_of(waits.begin(), waits.end(), [&](int64_t wait) { return isMet(wait); }))
    return -1;
  if (owner.isHeld(action))
    return -1;
  return taken[next++].action;
}

namespace {

class ComputeQueue final : public ActionQueue {
public:
  using ActionQueue::ActionQueue;
  bool poll() override {
    QueueOwner::Clock::time_point begin = QueueOwner::Clock::now();
    int64_t action = takeReady();
    if (action < 0)
      return false;
    owner.start(action, -1, begin);
    owner.finish(action, begin);
    return true;
  }
};

class EngineQueue final : public ActionQueue {
public:
  EngineQueue(QueueOwner &owner, Engine &engine, int slot) : ActionQueue(owner), engine(engine), slot(slot) {}

  bool poll() override {
    bool moved = false;
    while (true) {
      QueueOwner::Clock::time_point now = QueueOwner::Clock::now();
      if (flying < 0) {
        flying = takeReady();
        if (flying < 0)
          return moved;
        begin = now;
        moved = true;
        owner.start(flying, slot, begin);
        continue;
      }
      bool complete = engine.poll(slot);
      if (complete || engine.progressed(slot)) {
        moved = true;
        owner.communicated(now);
      }
      if (!complete)
        return moved;
      owner.finish(std::exchange(flying, -1), begin);
    }
  }
  int64_t inFlight() const override { return flying; }
  void abandon() override {
    if (flying >= 0)
      engine.abandon();
  }

private:
  Engine &engine;
  int slot;
  int64_t flying = -1;
  QueueOwner::Clock::time_point begin;
};

class DiskQueue final : public ActionQueue {
public:
  DiskQueue(QueueOwner &owner, DiskMemory &disk, const std::vector<DiskTransfer> &transfers)
      : ActionQueue(owner), disk(disk), transfers(transfers) {
    flying.reserve(2 * transfers.size()); // some fly on into the next step
  }

  bool poll() override {
    bool moved = false;
    for (; first < flying.size() && disk.poll(transfers[flying[first]]); ++first, moved = true) {
      owner.finish(flying[first], begin);
      begin = QueueOwner::Clock::now();
    }
    if (first == flying.size()) {
      flying.clear();
      first = 0;
      begin = QueueOwner::Clock::now();
    } else if (first >= transfers.size()) {
      flying.erase(flying.begin(), flying.begin() + static_cast<std::ptrdiff_t>(first));
      first = 0;
    }
    // The disk takes them in this order, and need not wait for this thread between two of them.
    for (int64_t action = takeReady(); action >= 0; action = takeReady(), moved = true) {
      flying.push_back(action);
      owner.start(action, -1, QueueOwner::Clock::now());
    }
    return moved;
  }
  int64_t inFlight() const override { return first < flying.size() ? flying[first] : -1; }
  void abandon() override {
    if (!flying.empty())
      disk.wait(transfers[flying.back()]);
  }

private:
  DiskMemory &disk;
  const std::vector<DiskTransfer> &transfers; ///< by action
  std::vector<int64_t> flying;                ///< from `first` on
  size_t first = 0;
  QueueOwner::Clock::time_point begin; ///< since then the first one has the disk
};

} // namespace

std::unique_ptr<ActionQueue> makeComputeQueue(QueueOwner &owner) {
  return std::make_unique<ComputeQueue>(owner);
}
std::unique_ptr<ActionQueue> makeEngineQueue(QueueOwner &owner, Engine &engine, int slot) {
  return std::make_unique<EngineQueue>(owner, engine, slot);
}
std::unique_ptr<ActionQueue> makeDiskQueue(QueueOwner &owner, DiskMemory &disk,
                                           const std::vector<DiskTransfer> &transfers) {
  return std::make_unique<DiskQueue>(owner, disk, transfers);
}

} // namespace dsopt::runtime
