//===- Profile.h - measures the calls of a step -----------------*- C++ -*-===//
//
// Only for -report=kernels. A segment makes its calls in the order that the
// program table lists: each routine of the ABI begins with a CallTimer, and the
// n-th one of a segment is the n-th of the list. Nothing allocates in a step.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PROFILE_H
#define DSOPT_LIB_RUNTIME_CORE_PROFILE_H

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Session.h"

#include <chrono>

namespace dsopt::runtime {

class Profile {
public:
  using Clock = std::chrono::steady_clock;

  explicit Profile(const Program &program);

  /// Forgets what was measured.
  void reset();

  /// The segment whose calls come next.
  void startSegment(const std::vector<int64_t> *calls) {
    made = calls;
    next = 0;
  }
  void call(Clock::duration time) {
    int64_t index = made && next < made->size() ? (*made)[next] : unknown();
    ++next;
    add(index, time, rows[index].one.bytes, rows[index].one.flops);
  }
  void update(int64_t call, int64_t elements, Clock::duration time) {
    const Call &one = rows[call].one;
    add(call, time, one.bytes * elements / 64, one.flops * elements / 64);
  }
  void action(ActionKind kind, int64_t bytes, Clock::duration time) { add(rowOf(kind), time, bytes, 0); }

  std::vector<CallRow> result() const;

private:
  friend class CallTimer;
  struct Row {
    Call one;
    bool flies = false;
    int64_t calls = 0, bytes = 0, flops = 0;
    Clock::duration time{};
  };
  int64_t rowOf(ActionKind kind) const { return actions + static_cast<int64_t>(kind); }
  int64_t unknown() const { return rowOf(ActionKind::Run); }
  void add(int64_t index, Clock::duration time, int64_t bytes, int64_t flops) {
    Row &row = rows[index];
    ++row.calls;
    row.time += time;
    row.bytes += bytes;
    row.flops += flops;
  }

  std::vector<Row> rows; ///< the program's calls, then a row for each kind of action
  int64_t actions;       ///< the first of those
  const std::vector<int64_t> *made = nullptr;
  size_t next = 0;
  bool inside = false; ///< of a routine: what it calls itself is part of it
};

/// The first line of every routine that a segment calls.
class CallTimer {
public:
  explicit CallTimer(Profile *measures) : profile(measures && !measures->inside ? measures : nullptr) {
    if (!profile)
      return;
    profile->inside = true;
    begin = Profile::Clock::now();
  }
  ~CallTimer() {
    if (!profile)
      return;
    profile->inside = false;
    profile->call(Profile::Clock::now() - begin);
  }
  CallTimer(const CallTimer &) = delete;

private:
  Profile *profile;
  Profile::Clock::time_point begin;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PROFILE_H
