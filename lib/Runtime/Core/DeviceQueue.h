//===- DeviceQueue.h - queues of a device's work ----------------*- C++ -*-===//
//
// A queue of computation is a stream: its actions are issued as soon as what they depend
// on is complete or itself issued to a stream, which then waits for the other's event.
// Several that a graph does (DeviceGraphs.h) are issued as one, with one event behind.
// A queue of communication takes its bytes from the device before they fly, and puts what
// came there behind.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H

#include "Core/DeviceRank.h"
#include "Core/StagedFlight.h"
#include "Kernels/CUDA/Graph.h"

namespace dsopt::runtime {

/// What of an executor's actions is issued to the device but not known to be complete.
class DeviceOrder {
public:
  explicit DeviceOrder(size_t actions) : events(actions), isReached(actions), places(actions) {}
  bool isIssued(int64_t action) const { return places[action].stream; }
  void issue(int64_t action, cuda::StreamHandle stream) { issue(&action, 1, stream); }
  /// The same of several that the stream has got as one.
  void issue(const int64_t *actions, size_t count, cuda::StreamHandle stream) {
    int64_t last = actions[count - 1];
    events[last].record(stream);
    isReached[last] = 0;
    for (size_t i = 0; i < count; ++i)
      places[actions[i]] = {stream, last};
  }
  /// True once, when the device has done it.
  bool takeDone(int64_t action) {
    Place &place = places[action];
    if (!isReached[place.event] && !events[place.event].isReached())
      return false;
    isReached[place.event] = 1;
    place.stream = nullptr;
    return true;
  }
  /// One of the streams that work of the executor is put on; `computes`: such that reads scalars.
  void join(cuda::StreamHandle stream, bool computes) { streams.push_back({stream, computes}); }
  /// It is known no more that the action was issued.
  void forget(int64_t action) { places[action].stream = nullptr; }
  /// All that is put on other streams from now on comes behind what this one has.
  void leave(cuda::StreamHandle stream) { putFirst(stream, false); }
  /// The same of what computes.
  void putFirst(cuda::StreamHandle stream, bool ofThoseThatCompute = true) {
    cuda::Event &event = ends[stream];
    event.record(stream);
    for (auto [other, computes] : streams)
      if (other != stream && (computes || !ofThoseThatCompute))
        DSOPT_CUDA(cuStreamWaitEvent, other, event, 0);
  }
  /// Returns when that is done.
  void settle() {
    for (auto &[stream, event] : ends)
      DSOPT_CUDA(cuEventSynchronize, event);
  }
  /// What is put on the stream from now on comes behind those that are issued of `actions`.
  void follow(cuda::StreamHandle stream, const std::vector<int64_t> &actions) const {
    for (int64_t action : actions)
      if (const Place &place = places[action]; place.stream && place.stream != stream)
        DSOPT_CUDA(cuStreamWaitEvent, stream, events[place.event], 0);
  }

private:
  struct Place {
    cuda::StreamHandle stream = nullptr; ///< null: it is not issued
    int64_t event = -1;
  };
  std::vector<cuda::Event> events; ///< by action
  std::vector<char> isReached;     ///< by event, as found last
  std::vector<Place> places;       ///< by action
  std::vector<std::pair<cuda::StreamHandle, bool>> streams;
  std::map<cuda::StreamHandle, cuda::Event> ends; ///< of what was left
};

/// What queues of a device ask of the executor besides.
class DeviceOwner : public QueueOwner {
public:
  /// How many actions of a queue, from this one on, a graph does now; 0: this one is issued by itself.
  virtual int64_t together(int64_t action) const = 0;
  /// What precedes an action's work, which a graph then does.
  virtual void announce(int64_t action) = 0;
  /// Puts the action's work on the stream that is chosen.
  virtual void issue(int64_t action) = 0;
  /// What was announced is on the stream.
  virtual void issued() = 0;
  /// Whether the host has no part in the action once it is issued.
  virtual bool isDevicesAlone(int64_t action) const = 0;
};

/// Actions that the device computes. One is begun when its `uploads` are complete, whose bytes the host then
/// writes or reads itself.
std::unique_ptr<ActionQueue> makeDeviceQueue(DeviceOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             const std::vector<std::vector<int64_t>> &uploads);
/// Actions that fly in a slot of the engine, one at a time, from and to the mirror.
std::unique_ptr<ActionQueue> makeStagedQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             Engine &engine, int slot, const std::vector<Staged> &staged);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H
