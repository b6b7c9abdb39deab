//===- DeviceQueue.cpp - queues of a device's work ------------------------===//

#include "Core/DeviceQueue.h"

#include <algorithm>

namespace dsopt::runtime {
namespace {

class DeviceQueue final : public ActionQueue {
public:
  DeviceQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order,
              const std::vector<std::vector<int64_t>> &uploads)
      : ActionQueue(owner), device(device), order(order), uploads(uploads) {}

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
    if (int64_t action = mayWrite(waiting()) ? takeReady() : -1; action >= 0) {
      order.follow(stream, takenDependencies());
      device.calls.setStream(stream);
      owner.start(action, -1, QueueOwner::Clock::now());
      order.issue(action, stream);
      flying.push_back(action);
      moved = true;
    }
    return moved;
  }
  bool isWorking() const override { return first < flying.size(); }
  void abandon() override { cuda::Driver::get().cuStreamSynchronize(stream); }

protected:
  bool isMet(int64_t dependency) const override {
    return owner.isComplete(dependency) || order.isIssued(dependency);
  }

private:
  bool mayWrite(int64_t action) const {
    return action < 0 || std::all_of(
                             uploads[action].begin(), uploads[action].end(),
                             [&](int64_t upload) { return owner.isComplete(upload); });
  }

  DeviceRank &device;
  DeviceOrder &order;
  const std::vector<std::vector<int64_t>> &uploads; ///< by action
  cuda::Stream stream;
  std::vector<int64_t> flying; ///< from `first` on
  size_t first = 0;
  QueueOwner::Clock::time_point begin; ///< since then the first one has the stream
};

class StagedQueue final : public ActionQueue {
public:
  StagedQueue(QueueOwner &owner, DeviceRank &device, Engine &engine, int slot,
              const std::vector<Staged> &staged)
      : ActionQueue(owner), flight(owner, device.memory, engine, slot, staged) {}

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

std::unique_ptr<ActionQueue> makeDeviceQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             const std::vector<std::vector<int64_t>> &uploads) {
  return std::make_unique<DeviceQueue>(owner, device, order, uploads);
}
std::unique_ptr<ActionQueue> makeStagedQueue(QueueOwner &owner, DeviceRank &device, Engine &engine, int slot,
                                             const std::vector<Staged> &staged) {
  return std::make_unique<StagedQueue>(owner, device, engine, slot, staged);
}

} // namespace dsopt::runtime
