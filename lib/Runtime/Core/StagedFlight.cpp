//===- StagedFlight.cpp - communication by way of the host ----------------===//

#include "Core/StagedFlight.h"

#include <utility>

namespace dsopt::runtime {

void StagedFlight::begin(int64_t action) {
  flying = action;
  since = QueueOwner::Clock::now();
  for (const Staged::Range &range : staged[flying].taken)
    memory.download(range.begin, range.bytes, stream);
  copied.record(stream);
  place = Place::Taking;
}

bool StagedFlight::poll() {
  bool moved = false;
  while (true) {
    QueueOwner::Clock::time_point now = QueueOwner::Clock::now();
    switch (place) {
    case Place::Idle:
      return moved;
    case Place::Taking:
      if (!copied.isReached())
        return moved;
      owner.start(flying, slot, since);
      place = Place::Flying;
      break;
    case Place::Flying: {
      bool complete = engine.poll(slot);
      if (complete || engine.progressed(slot)) {
        moved = true;
        owner.communicated(now);
      }
      if (!complete)
        return moved;
      for (const Staged::Range &range : staged[flying].given)
        memory.upload(range.begin, range.bytes, stream);
      copied.record(stream);
      place = Place::Giving;
      break;
    }
    case Place::Giving:
      if (!copied.isReached())
        return moved;
      place = Place::Idle;
      owner.finish(std::exchange(flying, -1), since);
      return true;
    }
    moved = true;
  }
}

void StagedFlight::abandon() {
  if (place == Place::Flying)
    engine.abandon();
  cuda::Driver::get().cuStreamSynchronize(stream);
}

} // namespace dsopt::runtime
