//===- NcclQueue.h - a queue of communication on a device -------*- C++ -*-===//
//
// A stream whose actions NCCL carries between the memories of devices: issued as soon as
// what they depend on is complete or itself issued to a stream. A reduction exchanges
// slices, a piece at a time, through the planned staging buffer and adds them along the
// canonical tree. What NCCL does not carry goes by way of the host, in its turn.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_NCCLQUEUE_H
#define DSOPT_LIB_RUNTIME_CORE_NCCLQUEUE_H

#include "Comm/Nccl.h"
#include "Core/DeviceQueue.h"
#include "Core/NcclWorld.h"

namespace dsopt::runtime {

/// An action of NCCL's; addresses are the device's.
struct NcclAction {
  nccl::Communicator *group = nullptr; ///< null: the host's engine does it
  ActionKind kind = ActionKind::Gather;
  Element type = Element::F32; ///< Reduce
  const char *source = nullptr;
  char *target = nullptr;
  int64_t bytes = 0;       ///< of a member's part, or of the value
  bool accumulate = false; ///< Reduce
  bool fast = false;       ///< Reduce: NCCL adds
  TrafficClass traffic = TrafficClass::AllGather;
  int64_t sent = 0; ///< to other ranks
};

/// What the queues of NCCL share.
struct NcclPlace {
  NcclWorld &world;
  const cuda::Memory &memory;
  char *staging; ///< the device's
  int64_t stagingBytes;
};

/// `actions` and `staged` are by action.
std::unique_ptr<ActionQueue> makeNcclQueue(QueueOwner &owner, const NcclPlace &place, DeviceOrder &order,
                                           Engine &engine, int slot, const std::vector<NcclAction> &actions,
                                           const std::vector<Staged> &staged);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_NCCLQUEUE_H
