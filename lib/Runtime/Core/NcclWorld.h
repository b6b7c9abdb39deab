//===- NcclWorld.h - a rank's communicators of NCCL -------------*- C++ -*-===//
//
// All that the program uses, joined at the start. The host's engine carries what they are
// joined by, and says when a peer has failed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_NCCLWORLD_H
#define DSOPT_LIB_RUNTIME_CORE_NCCLWORLD_H

#include "Comm/Nccl.h"
#include "Core/NcclPlan.h"
#include "Kernels/CUDA/TreeSum.h"
#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

/// Why ranks cannot talk by NCCL; empty: they can (collective). It needs a device for each of them, and the
/// library.
std::string ncclObstacle(Engine &engine, const cuda::Device &device);

class NcclWorld {
public:
  /// Collective. The device is the thread's and outlives it.
  NcclWorld(Engine &engine, cuda::Device &device, NcclPlan plan);
  ~NcclWorld();

  /// The group of an action, null: the host's engine does it.
  nccl::Communicator *groupOf(size_t list, size_t action) const {
    int group = plan.groupOf[list][action];
    return group < 0 ? nullptr : groups[group].get();
  }
  /// Ends what flies on the device; nothing can be begun any more.
  void abort();

  const cuda::TreeSum sum;

private:
  /// Returns when all of them are settled; an Error if that takes longer than `limit` (0: for ever).
  void await(const char *what, std::chrono::seconds limit);

  Engine &engine;
  NcclPlan plan;
  std::vector<std::unique_ptr<nccl::Communicator>> groups; ///< by number; null where this rank is no member
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_NCCLWORLD_H
