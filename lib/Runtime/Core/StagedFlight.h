//===- StagedFlight.h - communication by way of the host --------*- C++ -*-===//
//
// One action at a time: its bytes come from the device to the mirror, fly in a slot of the
// engine, and what came with them goes to the device.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_STAGEDFLIGHT_H
#define DSOPT_LIB_RUNTIME_CORE_STAGEDFLIGHT_H

#include "Core/Queue.h"
#include "Kernels/CUDA/Memory.h"

namespace dsopt::runtime {

/// A communication's bytes in the mirror: what it takes and what it gives.
struct Staged {
  struct Range {
    char *begin;
    int64_t bytes;
  };
  std::vector<Range> taken, given;
};

class StagedFlight {
public:
  /// `staged` is by action.
  StagedFlight(QueueOwner &owner, const cuda::Memory &memory, Engine &engine, int slot,
               const std::vector<Staged> &staged)
      : owner(owner), memory(memory), engine(engine), slot(slot), staged(staged) {}

  /// All that the action depends on is complete.
  void begin(int64_t action);
  /// Drives it on; true if anything moved.
  bool poll();
  bool isIdle() const { return place == Place::Idle; }
  /// The action while the engine has it, else -1.
  int64_t inFlight() const { return place == Place::Flying ? flying : -1; }
  bool isWorking() const { return place == Place::Taking || place == Place::Giving; }
  void abandon();
  cuda::StreamHandle copyStream() const { return stream; }

private:
  enum class Place { Idle, Taking, Flying, Giving };
  QueueOwner &owner;
  const cuda::Memory &memory;
  Engine &engine;
  int slot;
  const std::vector<Staged> &staged;
  cuda::Stream stream;
  cuda::Event copied;
  Place place = Place::Idle;
  int64_t flying = -1;
  QueueOwner::Clock::time_point since;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_STAGEDFLIGHT_H
