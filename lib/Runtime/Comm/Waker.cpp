//===- Waker.cpp - what a rank sleeps on -----------------------------------===//

#include "dsopt/Runtime/Waker.h"
#include "Core/Futex.h"

#include <cstdlib>
#include <cstring>

#include <sched.h>

namespace dsopt::runtime {

bool Waker::endless() {
  static const bool forever = [] {
    const char *wait = std::getenv("DSOPT_WAIT");
    return wait && std::strcmp(wait, "forever") == 0;
  }();
  return forever;
}

void Waker::ring(Bell &bell, bool shared) {
  bell.count.fetch_add(1);
  if (bell.sleeping.load())
    futexWake(bell.count, 1, shared);
}

void Waker::sleep(uint32_t seen) {
  for (int i = 0; i < patience.spins; ++i) {
    if (bell.count.load(std::memory_order_relaxed) != seen)
      return;
    pause();
  }
  if (seen != last) {
    last = seen;
    yielded = 0;
  }
  if (yielded < patience.yields) {
    ++yielded;
    sched_yield();
    return;
  }
  bell.sleeping.store(1);
  if (bell.count.load() == seen)
    futexWait(bell.count, seen, shared, endless() && !patience.polls ? -1 : patience.microseconds);
  bell.sleeping.store(0);
}

} // namespace dsopt::runtime
