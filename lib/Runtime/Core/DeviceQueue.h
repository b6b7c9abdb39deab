//===- DeviceQueue.h - queues of a device's work ----------------*- C++ -*-===//
//
// A queue of computation is a stream: its actions are issued as soon as what they depend
// on is complete or itself issued to a stream, which then waits for the other's event.
// A queue of communication takes its bytes from the device before they fly, and puts what
// came there behind.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H

#include "Core/DeviceRank.h"
#include "Core/StagedFlight.h"

namespace dsopt::runtime {

/// What of an executor's actions is issued to the device but not known to be complete.
class DeviceOrder {
public:
  explicit DeviceOrder(size_t actions) : events(actions), issued(actions) {}
  bool isIssued(int64_t action) const { return issued[action]; }
  void issue(int64_t action, cuda::StreamHandle stream) {
    events[action].record(stream);
    issued[action] = 1;
  }
  /// True once, when the device has done it.
  bool takeDone(int64_t action) {
    if (!events[action].isReached())
      return false;
    issued[action] = 0;
    return true;
  }
  /// What is put on the stream from now on comes behind those that are issued of `actions`.
  void follow(cuda::StreamHandle stream, const std::vector<int64_t> &actions) const {
    for (int64_t action : actions)
      if (issued[action])
        DSOPT_CUDA(cuStreamWaitEvent, stream, events[action], 0);
  }

private:
  std::vector<cuda::Event> events; ///< by action
  std::vector<char> issued;
};

/// Actions that the device computes. One is begun when its `uploads` are complete, whose bytes the host then
/// writes or reads itself.
std::unique_ptr<ActionQueue> makeDeviceQueue(QueueOwner &owner, DeviceRank &device, DeviceOrder &order,
                                             const std::vector<std::vector<int64_t>> &uploads);
/// Actions that fly in a slot of the engine, one at a time, from and to the mirror.
std::unique_ptr<ActionQueue> makeStagedQueue(QueueOwner &owner, DeviceRank &device, Engine &engine, int slot,
                                             const std::vector<Staged> &staged);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICEQUEUE_H
