//===- Waker.h - what a rank sleeps on --------------------------*- C++ -*-===//
//
// One count that everything rings which may let an action go on: peers, the
// threads that move bytes, what calls back for a device. A rank reads the count,
// looks at all it waits for, and sleeps unless the count has changed since, so no
// ring is lost.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_WAKER_H
#define DSOPT_RUNTIME_WAKER_H

#include <atomic>
#include <cstdint>

namespace dsopt::runtime {

class Waker {
public:
  /// Zero to begin with; in memory that other processes map too, they ring it there.
  struct Bell {
    std::atomic<uint32_t> count, sleeping;
  };
  /// What precedes sleep, and how long it is at most: a rank looks for itself now and then. `polls`: nobody
  /// rings for some of what is waited for.
  struct Patience {
    int spins = 0, yields = 0;
    int microseconds = 50000;
    bool polls = false;
  };
  /// Tests set DSOPT_WAIT=forever: no wait ends by itself, so that a ring that is missing is a hang.
  static bool endless();

  /// `shared`: between processes.
  Waker(Bell &bell, bool shared, Patience patience) : bell(bell), shared(shared), patience(patience) {}

  uint32_t count() const { return bell.count.load(); }
  void setSpins(int spins) { patience.spins = spins; }
  /// Returns when the count is no longer `seen`, or after a while.
  void sleep(uint32_t seen);
  /// From any thread, and from signal handlers.
  void ring() { ring(bell, shared); }
  static void ring(Bell &bell, bool shared);

private:
  Bell &bell;
  bool shared;
  Patience patience;
  uint32_t last = 0; ///< that was slept on
  int yielded = 0;   ///< since it changed
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_WAKER_H
