//===- Schedules.cpp - the learning rate of a step ------------------------===//

#include "dsopt/Runtime/Schedules.h"
#include "dsopt/Runtime/Session.h"

#include <algorithm>
#include <cmath>

namespace dsopt::runtime {

namespace {
struct NamedSchedule {
  const char *name;
  LrSchedule schedule;
};
constexpr NamedSchedule kSchedules[] = {{"constant", LrSchedule::Constant},
                                        {"linear", LrSchedule::Linear},
                                        {"cosine", LrSchedule::Cosine},
                                        {"stream", LrSchedule::Stream},
                                        {"warmup", LrSchedule::Warmup},
                                        {"warmup-decay", LrSchedule::WarmupDecay},
                                        {"warmup-cosine", LrSchedule::WarmupCosine},
                                        {"onecycle", LrSchedule::OneCycle},
                                        {"range-test", LrSchedule::RangeTest}};

constexpr int bit(LrSchedule schedule) { return 1 << static_cast<int>(schedule); }
constexpr int kOwn = bit(LrSchedule::Constant) | bit(LrSchedule::Linear) | bit(LrSchedule::Cosine);
constexpr int kWarmups =
    bit(LrSchedule::Warmup) | bit(LrSchedule::WarmupDecay) | bit(LrSchedule::WarmupCosine);

/// A parameter of a schedule: of DeepSpeed's under DeepSpeed's name. Below `least` it is refused.
struct ScheduleParameter {
  const char *name;
  int schedules;
  double byDefault, least;
};
/// What stands for a parameter that follows another one where it is left out.
constexpr double kFollows = -1;
/// What stands for a parameter that is not there where it is left out.
constexpr double kAbsent = -2;

constexpr ScheduleParameter kParameters[] = {
    {"warmup_from_zero", kOwn, kAbsent, 0}, // as the schedules of transformers rise
    {"warmup_min_lr", bit(LrSchedule::Warmup) | bit(LrSchedule::WarmupDecay), 0, 0},
    {"warmup_min_ratio", bit(LrSchedule::WarmupCosine), 0, 0},
    {"cos_min_ratio", bit(LrSchedule::WarmupCosine), 0.0001, 0},
    {"warmup_type", kWarmups, 1, 0}, // 0 linear, 1 log
    {"cycle_min_lr", bit(LrSchedule::OneCycle), 0, 0},
    {"cycle_first_step_size", bit(LrSchedule::OneCycle), 2000, 1},
    {"cycle_second_step_size", bit(LrSchedule::OneCycle), kFollows, 0},
    {"cycle_first_stair_count", bit(LrSchedule::OneCycle), 0, 0},
    {"cycle_second_stair_count", bit(LrSchedule::OneCycle), kFollows, 0},
    {"decay_step_size", bit(LrSchedule::OneCycle), 0, 0},
    {"decay_lr_rate", bit(LrSchedule::OneCycle), 0, 0},
    {"cycle_momentum", bit(LrSchedule::OneCycle), 1, 0},
    {"cycle_min_mom", bit(LrSchedule::OneCycle), 0.8, 0},
    {"cycle_max_mom", bit(LrSchedule::OneCycle), 0.9, 0},
    {"decay_mom_rate", bit(LrSchedule::OneCycle), 0, 0},
    {"lr_range_test_step_size", bit(LrSchedule::RangeTest), 2000, 1},
    {"lr_range_test_step_rate", bit(LrSchedule::RangeTest), 1, 0},
    {"lr_range_test_staircase", bit(LrSchedule::RangeTest), 0, 0},
};

double valueOf(const std::string &name, const std::string &text) {
  if (name == "warmup_type" && (text == "log" || text == "linear"))
    return text == "log";
  if (text == "true" || text == "false")
    return text == "true";
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !std::isfinite(value) || name == "warmup_type")
    throw Error(StatusInput, "option -lr-params: " + name + ": expected " +
                                 (name == "warmup_type" ? "log or linear" : "a number") + ", got '" + text +
                                 "'");
  return value;
}

std::string namesOf(LrSchedule schedule) {
  std::string names;
  for (const ScheduleParameter &parameter : kParameters)
    if (parameter.schedules & bit(schedule))
      names += (names.empty() ? "" : ", ") + std::string(parameter.name);
  return names;
}

/// How far a warm-up is after `iteration` steps of the scheduler, 0 to 1.
double warmupShare(const RunOptions &options, int64_t iteration, int64_t warmup) {
  if (options.lrParameters.at("warmup_type") > 0)
    return 1.0 / std::log(static_cast<double>(warmup)) * std::log(static_cast<double>(iteration + 1));
  return static_cast<double>(iteration) / static_cast<double>(warmup);
}

/// DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR. Its scheduler makes its first step after the
/// optimizer's: step s runs with the rate of iteration s - 1, the very first one with the start's.
double warmupRate(const RunOptions &options, int64_t step) {
  bool cosine = options.schedule == LrSchedule::WarmupCosine;
  double lr = options.lr, least = cosine ? 0 : options.lrParameters.at("warmup_min_lr");
  int64_t iteration = step - 1, warmup = std::max<int64_t>(2, options.warmupSteps);
  int64_t total = options.decaySteps > 0 ? options.decaySteps : options.steps;
  if (iteration < 0)
    return least;
  if (iteration < warmup) {
    double share = warmupShare(options, iteration, warmup);
    if (!cosine)
      return least + (lr - least) * share;
    double start = options.lrParameters.at("warmup_min_ratio");
    return lr * (start + share * (1 - start));
  }
  if (options.schedule == LrSchedule::Warmup)
    return lr;
  auto left = static_cast<double>(std::max<int64_t>(1, total - warmup));
  if (!cosine)
    return least + (lr - least) * std::max(0.0, static_cast<double>(total - iteration) / left);
  double floor = options.lrParameters.at("cos_min_ratio");
  double progress = std::min(1.0, static_cast<double>(iteration - warmup + 1) / left);
  return lr * std::max(0.0, floor + (1 - floor) * (1 + std::cos(M_PI * progress)) / 2);
}

/// One cycle of DeepSpeed's OneCycle: up over `first` steps, down over `second`.
struct Cycle {
  explicit Cycle(const RunOptions &options) : values(options.lrParameters) {
    first = at("cycle_first_step_size");
    second = at("cycle_second_step_size") == kFollows ? first : at("cycle_second_step_size");
    total = first + second;
  }
  double at(const char *name) const { return values.at(name); }

  /// Where step `step` of the cycle lies between the bottom (0) and the top (1).
  double height(int64_t step) const {
    double ratio = first / total, cycle = std::floor(1 + step / total), x = 1 + step / total - cycle;
    bool rising = x <= ratio;
    double stairs = at("cycle_first_stair_count");
    if (!rising && at("cycle_second_stair_count") != kFollows)
      stairs = at("cycle_second_stair_count");
    if (stairs <= 0)
      return rising ? x / ratio : (x - 1) / (ratio - 1);
    double within = std::fmod(static_cast<double>(step), total);
    double position = within <= first ? within * stairs / first : (total - within) * stairs / second;
    return std::floor(position) / stairs;
  }
  /// How often `decay_step_size` steps have passed since the cycle ended; 0 without decay.
  double decays(int64_t step) const {
    return at("decay_step_size") > 0 ? (step - total) / at("decay_step_size") : 0;
  }

  const std::map<std::string, double> &values;
  double first, second, total;
};
} // namespace

LrSchedule lrScheduleNamed(const std::string &name) {
  for (const NamedSchedule &row : kSchedules)
    if (name == row.name)
      return row.schedule;
  throw Error(StatusInput, "there is no learning-rate schedule '" + name + "'");
}

const char *lrScheduleName(LrSchedule schedule) {
  for (const NamedSchedule &row : kSchedules)
    if (schedule == row.schedule)
      return row.name;
  return "";
}

bool decays(LrSchedule schedule) {
  return schedule == LrSchedule::Linear || schedule == LrSchedule::Cosine ||
         schedule == LrSchedule::WarmupDecay || schedule == LrSchedule::WarmupCosine;
}

std::map<std::string, double> lrParameters(LrSchedule schedule, const std::string &text) {
  std::map<std::string, double> values;
  for (const ScheduleParameter &parameter : kParameters)
    if ((parameter.schedules & bit(schedule)) && parameter.byDefault != kAbsent)
      values[parameter.name] = parameter.byDefault;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string word = text.substr(begin, end - begin), name = word.substr(0, word.find('='));
    begin = end + 1;
    auto taken = [&](const ScheduleParameter &parameter) {
      return name == parameter.name && (parameter.schedules & bit(schedule));
    };
    if (std::none_of(std::begin(kParameters), std::end(kParameters), taken) ||
        name.size() + 1 >= word.size()) {
      std::string names = namesOf(schedule);
      throw Error(StatusInput, "option -lr-params: got '" + word +
                                   "'; -lr-schedule=" + lrScheduleName(schedule) +
                                   (names.empty() ? " takes none" : " takes NAME=VALUE of " + names));
    }
    double value = valueOf(name, word.substr(name.size() + 1));
    for (const ScheduleParameter &parameter : kParameters)
      if (name == parameter.name && value < parameter.least)
        throw Error(StatusInput, "option -lr-params: " + name + ": expected " +
                                     (parameter.least > 0 ? "1 or more" : "0 or more") + ", got " +
                                     word.substr(name.size() + 1));
    values[name] = value;
  }
  return values;
}

double learningRate(const RunOptions &options, int64_t step) {
  switch (options.schedule) {
  case LrSchedule::Warmup:
  case LrSchedule::WarmupDecay:
  case LrSchedule::WarmupCosine:
    return warmupRate(options, step);
  case LrSchedule::OneCycle: {
    Cycle cycle(options);
    double least = cycle.at("cycle_min_lr");
    if (step <= cycle.total)
      return least + (options.lr - least) * cycle.height(step);
    return least / (1 + cycle.at("decay_lr_rate") * cycle.decays(step));
  }
  case LrSchedule::RangeTest: {
    double interval = static_cast<double>(step) / options.lrParameters.at("lr_range_test_step_size");
    if (options.lrParameters.at("lr_range_test_staircase") > 0)
      interval = std::floor(interval);
    return options.lr * (1 + options.lrParameters.at("lr_range_test_step_rate") * interval);
  }
  case LrSchedule::Constant:
  case LrSchedule::Linear:
  case LrSchedule::Cosine:
  case LrSchedule::Stream:
    break;
  }
  int64_t warmup = options.warmupSteps, decay = options.decaySteps > 0 ? options.decaySteps : options.steps;
  if (step < warmup) {
    auto fromZero = options.lrParameters.find("warmup_from_zero");
    bool first = fromZero != options.lrParameters.end() && fromZero->second > 0;
    return options.lr * static_cast<double>(first ? step : step + 1) / static_cast<double>(warmup);
  }
  if (options.schedule == LrSchedule::Constant)
    return options.lr;
  if (step >= decay)
    return options.minLr;
  double t = static_cast<double>(step - warmup) / (decay - warmup);
  if (options.schedule == LrSchedule::Linear)
    return options.lr + (options.minLr - options.lr) * t;
  return options.minLr + (options.lr - options.minLr) * (1 + std::cos(M_PI * t)) / 2;
}

Betas betasOf(const RunOptions &options, int64_t step) {
  if (options.schedule != LrSchedule::OneCycle || options.lrParameters.at("cycle_momentum") <= 0)
    return {options.beta1, options.beta2};
  Cycle cycle(options);
  double least = cycle.at("cycle_min_mom"), most = cycle.at("cycle_max_mom");
  constexpr double kBeta2 = 0.99; // what DeepSpeed's cycle sets, whatever the optimizer was given
  if (step == 0)
    return {least, kBeta2};
  if (step <= cycle.total)
    return {most - (most - least) * cycle.height(step), kBeta2};
  return {most * (1 + cycle.at("decay_mom_rate") * cycle.decays(step)), kBeta2};
}

} // namespace dsopt::runtime
