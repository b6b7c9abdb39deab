//===- Queue.h - what runs the actions of a queue ---------------*- C++ -*-===//
//
// The executor submits a step's actions to their queues in the order of issue and
// then only polls them: a queue starts its actions in order, each as soon as what
// it depends on is complete. How many are in flight is the queue's affair.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_QUEUE_H
#define DSOPT_LIB_RUNTIME_CORE_QUEUE_H

#include "Core/DiskMemory.h"
#include "dsopt/Runtime/Engine.h"

#include <chrono>
#include <memory>
#include <vector>

namespace dsopt::runtime {

/// What queues ask of the executor that feeds them.
class QueueOwner {
public:
  using Clock = std::chrono::steady_clock;
  virtual ~QueueOwner() = default;
  virtual bool isComplete(int64_t action) const = 0;
  /// Whether something outside of the step holds back an action that could start.
  virtual bool isHeld(int64_t action) = 0;
  /// Does an action, begun at `begin`, or what precedes its flight in the engine's `slot`.
  virtual void start(int64_t action, int slot, Clock::time_point begin) = 0;
  /// A started action is complete: since `begin` it has run, or flown.
  virtual void finish(int64_t action, Clock::time_point begin) = 0;
  /// The queue has moved bytes since `begin`.
  virtual void communicated(Clock::time_point begin) = 0;
  /// What is to be thrown for a started action of which `what` is said.
  virtual Error failed(int64_t action, const std::string &what) const = 0;
};

class ActionQueue {
public:
  explicit ActionQueue(QueueOwner &owner) : owner(owner) {}
  virtual ~ActionQueue() = default;

  /// Room for so many actions, so that submitting them allocates nothing.
  virtual void reserve(size_t actions) { taken.reserve(actions); }
  /// Takes an action behind those that it has; it starts once `dependencies`, which outlive it, are complete.
  void submit(int64_t action, const std::vector<int64_t> &dependencies) {
    if (next == taken.size()) {
      taken.clear();
      next = 0;
    }
    taken.push_back({action, &dependencies});
  }
  /// Drives on what it has; true if anything moved.
  virtual bool poll() = 0;
  /// An action that flies and whose completion rings the engine's waker, -1: none.
  virtual int64_t inFlight() const { return -1; }
  /// Whether a device works for it, which rings nothing.
  virtual bool isWorking() const { return false; }
  /// The action that starts next, -1: none.
  int64_t waiting() const { return next < taken.size() ? taken[next].action : -1; }
  /// How many actions only a device has still to do, if the next step may begin beside them.
  virtual size_t leavable() const { return 0; }
  /// Counts those as complete: what comes later on the device is behind them.
  virtual void leave() {}
  /// Gives up what flies, so that its memory may go.
  virtual void abandon() {}

protected:
  /// Takes the next action out if it may start, else -1.
  int64_t takeReady();
  /// The action `ahead` places behind the one that starts next; there is one.
  int64_t waiting(size_t ahead) const { return taken[next + ahead].action; }
  /// Takes the next action out, which there is.
  int64_t takeNext() { return taken[next++].action; }
  /// Whether the next action may start as far as `dependency` goes.
  virtual bool isMet(int64_t dependency) const { return owner.isComplete(dependency); }
  /// What the action taken last depends on.
  const std::vector<int64_t> &takenDependencies() const { return *taken[next - 1].dependencies; }

  QueueOwner &owner;

private:
  struct Entry {
    int64_t action;
    const std::vector<int64_t> *dependencies;
  };
  std::vector<Entry> taken; ///< from `next` on not started yet
  size_t next = 0;
};

/// Actions that the rank's own threads compute, one a poll.
std::unique_ptr<ActionQueue> makeComputeQueue(QueueOwner &owner);
/// Actions that fly in a slot of the engine, one at a time.
std::unique_ptr<ActionQueue> makeEngineQueue(QueueOwner &owner, Engine &engine, int slot);
/// Copies from a disk and to it, one after the other: starting one submits its transfer, of those by action.
std::unique_ptr<ActionQueue> makeDiskQueue(QueueOwner &owner, DiskMemory &disk,
                                           const std::vector<DiskTransfer> &transfers);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_QUEUE_H
