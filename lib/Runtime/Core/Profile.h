//===- Profile.h - measures the calls of a step -----------------*- C++ -*-===//
//
// Only for -report=kernels. A segment makes its calls in the order that the
// program table lists: each routine of the ABI begins with a CallTimer, and the
// n-th one of a segment is the n-th of the list. Nothing allocates in a step. What
// goes to a device is timed there, between marks that are read after the step.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PROFILE_H
#define DSOPT_LIB_RUNTIME_CORE_PROFILE_H

#include "Core/DeviceMeter.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Session.h"

#include <algorithm>
#include <chrono>

namespace dsopt::runtime {

class Profile {
public:
  using Clock = std::chrono::steady_clock;

  /// How long something took: on the host, or on the device from one mark to another.
  struct Span {
    Clock::duration time{};
    size_t begin = 0, end = 0;
    bool isOnDevice = false;
  };

  /// `meter`: of the device that does what segments call; null: the host does.
  explicit Profile(const Program &program, DeviceMeter *meter = nullptr);

  /// Forgets what was measured.
  void reset();

  /// The segment whose calls come next.
  void startSegment(const std::vector<int64_t> *calls) {
    made = calls;
    next = 0;
  }
  void call(const Span &span) {
    int64_t index = made && next < made->size() ? (*made)[next] : unknown();
    ++next;
    add(index, span, rows[index].one.bytes, rows[index].one.flops);
  }
  void update(int64_t call, int64_t elements, const Span &span) {
    const Call &one = rows[call].one;
    add(call, span, one.bytes * elements / 64, one.flops * elements / 64);
  }
  void action(ActionKind kind, int64_t bytes, const Span &span) { add(rowOf(kind), span, bytes, 0); }
  /// The end of what the device has been given; only where there is one.
  size_t mark() { return meter->mark(); }
  /// Reads the marks. The device has come by all of them.
  void settle();

  std::vector<CallRow> result() const;

private:
  friend class CallTimer;
  struct Row {
    Call one;
    bool flies = false;
    int64_t calls = 0, bytes = 0, flops = 0;
    Clock::duration time{};
    double deviceMs = 0;
    KernelFigures figures; ///< the most of its kernels'
  };
  struct Marked {
    int64_t row;
    size_t begin, end;
  };
  int64_t rowOf(ActionKind kind) const { return actions + static_cast<int64_t>(kind); }
  int64_t unknown() const { return rowOf(ActionKind::Run); }
  void add(int64_t index, const Span &span, int64_t bytes, int64_t flops) {
    Row &row = rows[index];
    ++row.calls;
    row.time += span.time;
    row.bytes += bytes;
    row.flops += flops;
    if (!span.isOnDevice)
      return;
    marked.push_back({index, span.begin, span.end});
    KernelFigures one = meter->takeFigures(), &most = row.figures;
    most = {std::max(most.registers, one.registers), std::max(most.shared, one.shared),
            std::max(most.spills, one.spills), one.algorithm ? one.algorithm : most.algorithm};
  }

  std::vector<Row> rows; ///< the program's calls, then a row for each kind of action
  int64_t actions;       ///< the first of those
  const std::vector<int64_t> *made = nullptr;
  size_t next = 0;
  bool inside = false; ///< of a routine: what it calls itself is part of it
  DeviceMeter *meter;
  std::vector<Marked> marked; ///< since marks were read
};

/// The first line of every routine that a segment calls.
class CallTimer {
public:
  explicit CallTimer(Profile *measures) : profile(measures && !measures->inside ? measures : nullptr) {
    if (!profile)
      return;
    profile->inside = true;
    if (profile->meter)
      mark = profile->mark();
    else
      begin = Profile::Clock::now();
  }
  ~CallTimer() {
    if (!profile)
      return;
    profile->inside = false;
    if (profile->meter)
      profile->call({{}, mark, profile->mark(), /*isOnDevice=*/true});
    else
      profile->call({Profile::Clock::now() - begin});
  }
  CallTimer(const CallTimer &) = delete;

private:
  Profile *profile;
  Profile::Clock::time_point begin;
  size_t mark = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PROFILE_H
