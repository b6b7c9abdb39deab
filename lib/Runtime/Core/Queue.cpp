//===- Queue.cpp - what runs the actions of a queue ------------------------===//

#include "Core/Queue.h"

#include <algorithm>
#include <utility>

namespace dsopt::runtime {

int64_t ActionQueue::takeReady() {
  if (next == taken.size())
    return -1;
  const std::vector<int64_t> &waits = *taken[next].dependencies;
  if (!std::all_of(waits.begin(), waits.end(), [&](int64_t wait) { return owner.isComplete(wait); }))
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

} // namespace

std::unique_ptr<ActionQueue> makeComputeQueue(QueueOwner &owner) {
  return std::make_unique<ComputeQueue>(owner);
}
std::unique_ptr<ActionQueue> makeEngineQueue(QueueOwner &owner, Engine &engine, int slot) {
  return std::make_unique<EngineQueue>(owner, engine, slot);
}

} // namespace dsopt::runtime
