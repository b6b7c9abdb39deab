//===- Liveness.h - whether a rank gets on ----------------------*- C++ -*-===//
//
// A rank's pulse counts all that it does: actions, exchanges, pieces of files. Where
// ranks share memory the pulse lies there, for the launcher and for each other. A
// world in which no pulse beats for long stands still; whoever sees that first says
// who waits for whom, and ends it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_LIVENESS_H
#define DSOPT_RUNTIME_LIVENESS_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// Where in its life a rank is.
enum class Place : int { Starting, Loading, Training, Evaluating, Saving, AwaitingData, Finishing, Done };
/// "while it saves": what is more to be said than step and action; empty for Training.
const char *describePlace(Place place);

/// Zero to begin with; other processes may read it.
struct Pulse {
  std::atomic<uint64_t> beats;
  std::atomic<int> place; ///< a Place
  std::atomic<int> waits; ///< 1 while it sleeps until peers have done their part
};

/// The pulse of this process; setPulse(nullptr) gives it back its own.
extern std::atomic<Pulse *> thisPulse;
inline Pulse &pulse() { return *thisPulse.load(std::memory_order_relaxed); }
void setPulse(Pulse *pulse);

/// This rank gets on.
inline void beat() { pulse().beats.fetch_add(1, std::memory_order_relaxed); }
inline void enter(Place place) {
  pulse().place.store(static_cast<int>(place), std::memory_order_relaxed);
  beat();
}

/// While it lives the rank waits for its peers.
class WaitsForPeers {
public:
  WaitsForPeers() : waits(pulse().waits) { waits.store(1, std::memory_order_relaxed); }
  ~WaitsForPeers() { waits.store(0, std::memory_order_relaxed); }
  WaitsForPeers(const WaitsForPeers &) = delete;

private:
  std::atomic<int> &waits;
};

/// How long nothing has happened. Only time in which this process runs counts: not what it was stopped for.
class StallClock {
public:
  using Clock = std::chrono::steady_clock;
  /// Limits of 0 are never reached.
  explicit StallClock(std::chrono::milliseconds limit) : limit(limit) {}
  bool runs() const { return limit.count() > 0; }
  void restart() { started = false; }
  /// Looks at the time, a second apart at most; true if the limit is reached. `count` grows while others
  /// get on.
  bool isOver(Clock::time_point now, uint64_t count);

private:
  std::chrono::milliseconds limit;
  Clock::time_point last;
  Clock::duration still{};
  uint64_t seen = 0;
  bool started = false;
};

/// "rank 1", "ranks 0, 2 and 5", "ranks 0, 1, 2, 3 and 60 more".
std::string describeRanks(const std::vector<int> &ranks);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_LIVENESS_H
