//===- LocalSteps.cpp - steps by which ranks move apart, and meet ---------===//

#include "Core/LocalSteps.h"
#include "Core/SavedState.h"

#include <algorithm>
#include <cstring>

namespace dsopt::runtime {

/// Larger than any step.
static constexpr int64_t kLongest = INT64_C(1) << 62;

/// Of steps up to the freeze. An interval of 2^j ends with the last of its whole steps, which are multiples.
static int64_t wholeInterval(int64_t scaler, int64_t number) {
  int64_t interval = 1;
  for (int64_t end = scaler; number > end && interval < kLongest / 2;) {
    interval *= 2;
    if (scaler > kLongest / interval)
      break;
    end = (end / interval + scaler) * interval;
  }
  return interval;
}

/// Of step `number` behind the freeze.
static int64_t localInterval(const LocalPolicy &policy, int64_t number) {
  int64_t doubled = (number - 1) / policy.local_step_scaler;
  return doubled >= 62 ? policy.local_step_clipper
                       : std::min(policy.local_step_clipper, INT64_C(1) << doubled);
}

ListKind kindOfStep(const LocalPolicy &policy, int64_t freezeStep, int64_t number) {
  if (number <= freezeStep)
    return number % wholeInterval(policy.var_update_scaler, number) == 0 ? ListKind::Step
                                                                         : ListKind::CompressedStep;
  return number % localInterval(policy, number - freezeStep) == 0 ? ListKind::JoinStep : ListKind::LocalStep;
}

int64_t countWhole(const LocalPolicy &policy, int64_t freezeStep, int64_t number) {
  number = std::min(number, freezeStep);
  int64_t interval = 1, begin = 0, count = 0;
  while (policy.var_update_scaler <= kLongest / interval) {
    int64_t end = (begin / interval + policy.var_update_scaler) * interval;
    if (number <= end || interval >= kLongest / 2)
      break;
    count += policy.var_update_scaler;
    begin = end;
    interval *= 2;
  }
  return count + number / interval - begin / interval;
}

bool areApart(const Program &program, int64_t applied) {
  return movesApart(program) && applied > program.freeze_step &&
         kindOfStep(program.local_policy, program.freeze_step, applied) == ListKind::LocalStep;
}

void clearErrors(const Position &position, const Addresses &addresses) {
  for (const Buffer &buffer : position.buffers) {
    size_t at = buffer.name.rfind('.');
    std::string suffix = at == std::string::npos ? "" : buffer.name.substr(at + 1);
    if (suffix == kWorkerError || suffix == kServerError)
      std::memset(addresses.at(buffer), 0, buffer.bytes);
  }
}

} // namespace dsopt::runtime
