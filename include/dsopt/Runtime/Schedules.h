//===- Schedules.h - how the learning rate moves ----------------*- C++ -*-===//
//
// dsopt's own schedules (constant, linear, cosine: CONTRACT section 2) and
// DeepSpeed's, which keep DeepSpeed's formulas to the letter, so that a run that
// moves here goes on with the same numbers. Parameters beyond -lr, -warmup-steps
// and -lr-decay-steps are in -lr-params=NAME=VALUE,...
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_SCHEDULES_H
#define DSOPT_RUNTIME_SCHEDULES_H

#include <cstdint>
#include <map>
#include <string>

namespace dsopt::runtime {

struct RunOptions;

enum class LrSchedule {
  Constant,
  Linear,
  Cosine,
  Stream,
  Warmup,
  WarmupDecay,
  WarmupCosine,
  OneCycle,
  RangeTest
};

/// The schedule of -lr-schedule=`name`; an Error of status 1 if there is none.
LrSchedule lrScheduleNamed(const std::string &name);
const char *lrScheduleName(LrSchedule schedule);

/// Whether it is one of DeepSpeed's.
inline bool isDeepSpeeds(LrSchedule schedule) { return schedule >= LrSchedule::Warmup; }

/// Whether it has to know -lr-decay-steps.
bool decays(LrSchedule schedule);

/// The values of `text` (-lr-params) and the defaults of what it leaves out, by name. An Error of status 1
/// names what the schedule does not take or what is out of range.
std::map<std::string, double> lrParameters(LrSchedule schedule, const std::string &text);

/// The learning rate of a step, before group scales. That of LrSchedule::Stream comes with the step's data.
double learningRate(const RunOptions &options, int64_t step);

/// Adam's betas of a step: -betas, but for a cycle that moves the momentum.
struct Betas {
  double beta1, beta2;
};
Betas betasOf(const RunOptions &options, int64_t step);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_SCHEDULES_H
