//===- Trace.h - when each action of the first steps ran --------*- C++ -*-===//
//
// Only for -trace. The executor notes begin and end of each action and of its
// waiting; afterwards rank 0 writes all ranks' notes as one Chrome trace, which
// Perfetto opens: a process for each rank, a lane for each queue.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_TRACE_H
#define DSOPT_LIB_RUNTIME_CORE_TRACE_H

#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Program.h"

#include <chrono>
#include <string>
#include <vector>

namespace dsopt::runtime {

class Trace {
public:
  using Clock = std::chrono::steady_clock;
  /// What an event is if it is no action.
  enum : int32_t { Step = -1, Waiting = -2 };
  struct Event {
    int64_t begin = 0, end = 0; ///< nanoseconds of the rank's clock
    int32_t step = 0, action = 0;
  };

  /// Room for so many steps: no step allocates.
  Trace(int64_t actions, int64_t steps) { events.reserve(steps * (2 * actions + 2)); }

  void note(int64_t step, int64_t action, Clock::time_point begin, Clock::time_point end) {
    if (events.size() < events.capacity())
      events.push_back(
          {nanoseconds(begin), nanoseconds(end), static_cast<int32_t>(step), static_cast<int32_t>(action)});
  }
  /// Waiting that nothing interrupted is one event.
  void wait(int64_t step, Clock::time_point begin, Clock::time_point end) {
    if (!events.empty() && events.back().action == Waiting && events.back().step == step)
      events.back().end = nanoseconds(end);
    else
      note(step, Waiting, begin, end);
  }

  const std::vector<Event> &all() const { return events; }

private:
  static int64_t nanoseconds(Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }
  std::vector<Event> events;
};

/// Collective: rank 0 writes the events of all ranks to `path`.
void writeTrace(const Program &program, Engine &engine, const Trace &trace, const std::string &path);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_TRACE_H
