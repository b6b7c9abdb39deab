//===- DeviceQueue.cpp - queues of a device's work ------------------------===//

#include "Core/DeviceQueue.h"

#include <algorithm>
#include <unordered_map>

namespace dsopt::runtime {
namespace {

class DeviceQueue final : public ActionQueue {
public:
  DeviceQueue(DeviceOwner &owner, DeviceRank &device, DeviceOrder &order,
              const std::vector<std::vector<int64_t>> &uploads)
      : ActionQueue(owner), owner(owner), device(device), order(order), uploads(uploads) {
    order.join(stream, /*computes=*/true);
  }

  void reserve(size_t actions) override {
    ActionQueue::reserve(actions);
    flying.reserve(actions);
  }
  bool poll() override {
    bool moved = false;
    for (; first < flying.size() && order.takeDone(flying[first]); ++first, moved = true) {
      owner.finish(flying[first], begin);
      begin = QueueOwner::Clock::now();
    }
    if (first == flying.size()) {
      flying.clear();
      first = 0;
      begin = QueueOwner::Clock::now();
    }
    // Work in pieces: peers wait for what is polled between them.
    int64_t replayed = waiting() < 0 ? 0 : owner.together(waiting()), count = std::max<int64_t>(replayed, 1);
    if (int64_t action = mayTake(count) ? takeReady() : -1; action >= 0) {
      order.follow(stream, takenDependencies());
      device.calls.setStream(stream);
      size_t begun = flying.size();
      flying.push_back(action);
      for (int64_t i = 1; i < count; ++i)
        flying.push_back(takeNext());
      const int64_t *actions = flying.data() + begun;
      if (replayed)
        replay(actions, count);
      else
        owner.start(action, -1, QueueOwner::Clock::now());
      order.issue(actions, count, stream);
      moved = true;
    }
    return moved;
  }
  bool isWorking() const override { return first < flying.size(); }
  size_t leavable() const override {
    bool all = std::all_of(flying.begin() + static_cast<std::ptrdiff_t>(first), flying.end(),
                           [this](int64_t action) { return owner.isDevicesAlone(action); });
    return all ? flying.size() - first : 0;
  }
  void leave() override {
    if (first == flying.size())
      return;
    for (; first < flying.size(); ++first) {
      order.forget(flying[first]);
      owner.finish(flying[first], begin);
    }
    flying.clear();
    first = 0;
    order.leave(stream);
  }
  void abandon() override { cuda::Driver::get().cuStreamSynchronize(stream); }

protected:
  bool isMet(int64_t dependency) const override {
    return owner.isComplete(dependency) || order.isIssued(dependency);
  }

private:
  /// As far as the host's memory goes, and what holds actions back behind the first one.
  bool mayTake(int64_t count) {
    if (waiting() < 0)
      return false;
    for (int64_t upload : uploads[waiting()])
      if (!owner.isComplete(upload))
        return false;
    for (int64_t i = 1; i < count; ++i)
      if (owner.isHeld(waiting(i)))
        return false;
    return true;
  }

  void replay(const int64_t *actions, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      owner.announce(actions[i]);
    cuda::RecordedWork &graph = graphs[*actions];
    if (!graph)
      graph = cuda::RecordedWork(stream, [&] {
        for (int64_t i = 0; i < count; ++i)
          owner.issue(actions[i]);
      });
    graph.launch(stream);
    owner.issued();
  }

  DeviceOwner &owner;
  DeviceRank &device;
  DeviceOrder &order;
  const std::vector<std::vector<int64_t>> &uploads; ///< by action
  cuda::Stream stream;
  std::unordered_map<int64_t, cuda::RecordedWork> graphs; ///< by their first actions
  std::vector<int64_t> flying;                            ///< from `first` on
  size_t first = 0;
  QueueOwner::Clock::time_point begin; ///< since then the first one has the stream
};

class StagedQueue final : public ActionQueue {
public:
  StagedQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order, Engine &engine, int slot,
              const std::vector<Staged> &staged)
      : ActionQueue(owner), flight(owner, device.memory, engine, slot, staged) {
    order.join(flight.copyStream(), /*computes=*/false);
  }

  bool poll() override {
    bool moved = false;
    while (true) {
      moved |= flight.poll();
      int64_t action = flight.isIdle() ? takeReady() : -1;
      if (action < 0)
        return moved;
      flight.begin(action);
      moved = true;
    }
  }
  int64_t inFlight() const override { return flight.inFlight(); }
  bool isWorking() const override { return flight.isWorking(); }
  void abandon() override { flight.abandon(); }

private:
  StagedFlight flight;
};

} // namespace

std::unique_ptr<ActionQueue> makeDeviceQueue(DeviceOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             const std::vector<std::vector<int64_t>> &uploads) {
  return std::make_unique<DeviceQueue>(owner, device, order, uploads);
}
std::unique_ptr<ActionQueue> makeStagedQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             Engine &engine, int slot, const std::vector<Staged> &staged) {
  return std::make_unique<StagedQueue>(owner, device, order, engine, slot, staged);
}

} // namespace dsopt::runtime
