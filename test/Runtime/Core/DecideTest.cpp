//===- DecideTest.cpp - schedules and scalars ------------------------------===//

#include "Core/Decide.h"
#include "dsopt/Runtime/Scalars.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

TEST(Decide, LearningRates) {
  RunOptions options;
  options.lr = 1;
  options.steps = 10;
  EXPECT_EQ(learningRate(options, 9), 1);
  options.warmupSteps = 2;
  options.minLr = 0.2;
  options.schedule = LrSchedule::Linear;
  EXPECT_EQ(learningRate(options, 0), 0.5);
  EXPECT_EQ(learningRate(options, 1), 1);
  EXPECT_EQ(learningRate(options, 2), 1);
  EXPECT_DOUBLE_EQ(learningRate(options, 6), 0.6);
  EXPECT_EQ(learningRate(options, 10), 0.2);
  options.schedule = LrSchedule::Cosine;
  EXPECT_DOUBLE_EQ(learningRate(options, 6), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(options, 4), 0.2 + 0.8 * (1 + std::cos(M_PI / 4)) / 2);
  options.decaySteps = 6;
  EXPECT_EQ(learningRate(options, 6), 0.2);
}

namespace {
/// The rates of the first steps with DeepSpeed 0.19.8's scheduler of the same parameters.
void expectRates(RunOptions options, const char *schedule, const std::string &parameters,
                 const std::vector<double> &rates) {
  options.schedule = lrScheduleNamed(schedule);
  options.lrParameters = lrParameters(options.schedule, parameters);
  for (size_t step = 0; step < rates.size(); ++step)
    EXPECT_NEAR(learningRate(options, step), rates[step], 1e-15) << schedule << ", step " << step;
}
} // namespace

TEST(Decide, DeepSpeedsSchedules) {
  RunOptions options;
  options.lr = 0.5;
  options.warmupSteps = 4;
  expectRates(options, "warmup", "warmup_min_lr=0.1",
              {0.1, 0.1, 0.30000000000000004, 0.41699250014423128, 0.5, 0.5, 0.5});
  options.warmupSteps = 3;
  options.decaySteps = 7;
  expectRates(options, "warmup-decay", "warmup_min_lr=0.1,warmup_type=linear",
              {0.1, 0.1, 0.23333333333333334, 0.3666666666666667, 0.5, 0.4, 0.30000000000000004, 0.2, 0.1});
  expectRates(
      options, "warmup-cosine", "warmup_min_ratio=0.1,cos_min_ratio=0.01",
      {0, 0.05, 0.33391838910715577, 0.5, 0.42750892834367049, 0.2525, 0.077491071656329513, 0.005, 0.005});
  expectRates(options, "onecycle", "cycle_min_lr=0.1,cycle_first_step_size=5,cycle_first_stair_count=2",
              {0.1, 0.1, 0.1, 0.3, 0.3, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1});
  options.lr = 0.1;
  expectRates(options, "range-test",
              "lr_range_test_step_size=2,lr_range_test_step_rate=5,lr_range_test_staircase=true",
              {0.1, 0.1, 0.6, 0.6, 1.1, 1.1});
}

TEST(Decide, WarmsUpFromZero) {
  RunOptions options;
  options.lr = 0.4;
  options.warmupSteps = 4;
  options.decaySteps = 8;
  expectRates(options, "linear", "", {0.1, 0.2, 0.3, 0.4, 0.4, 0.3, 0.2, 0.1, 0});
  EXPECT_TRUE(lrParameters(LrSchedule::Linear, "").empty());
  expectRates(options, "linear", "warmup_from_zero=true", {0, 0.1, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1, 0});
  expectRates(options, "constant", "warmup_from_zero=1", {0, 0.1, 0.2, 0.3, 0.4, 0.4});
  expectRates(options, "cosine", "warmup_from_zero=0", {0.1, 0.2, 0.3, 0.4, 0.4});
}

TEST(Decide, OneCycleMovesMomentum) {
  RunOptions options;
  options.lr = 0.5;
  std::string parameters = "cycle_min_lr=0.1,cycle_first_step_size=3,cycle_second_step_size=4,"
                           "decay_step_size=2,decay_lr_rate=0.5,decay_mom_rate=0.01";
  expectRates(options, "onecycle", parameters,
              {0.1, 0.23333333333333328, 0.36666666666666659, 0.5, 0.4, 0.3, 0.2, 0.1, 0.08,
               0.066666666666666666, 0.057142857142857148, 0.05});
  options.schedule = LrSchedule::OneCycle;
  options.lrParameters = lrParameters(options.schedule, parameters);
  const double momenta[] = {0.8,   0.8666666666666667, 0.8333333333333334, 0.8, 0.825, 0.85, 0.875, 0.9,
                            0.9045};
  for (int64_t step = 0; step < 9; ++step) {
    EXPECT_NEAR(betasOf(options, step).beta1, momenta[step], 1e-15) << "step " << step;
    EXPECT_EQ(betasOf(options, step).beta2, 0.99);
  }
}

TEST(Decide, RefusesParametersOfOtherSchedules) {
  auto message = [](LrSchedule schedule, const char *text) -> std::string {
    try {
      lrParameters(schedule, text);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      message(LrSchedule::Constant, "warmup_min_lr=1"),
      "option -lr-params: got 'warmup_min_lr=1'; -lr-schedule=constant takes NAME=VALUE of warmup_from_zero");
  EXPECT_EQ(message(LrSchedule::Warmup, "warmup_type=square"),
            "option -lr-params: warmup_type: expected log or linear, got 'square'");
  EXPECT_EQ(message(LrSchedule::OneCycle, "cycle_first_step_size=0"),
            "option -lr-params: cycle_first_step_size: expected 1 or more, got 0");
  EXPECT_EQ(message(LrSchedule::WarmupDecay, "cos_min_ratio=1"),
            "option -lr-params: got 'cos_min_ratio=1'; -lr-schedule=warmup-decay takes NAME=VALUE of "
            "warmup_min_lr, warmup_type");
}

TEST(Decide, Scalars) {
  RunOptions options;
  options.weightDecay = 0.1;
  options.momentum = 0.7;
  Decision decision;
  decision.lr = 0.01;
  decision.factor = 0.5;
  float table[DSOPT_SCALARS];
  writeScalars(decision, options, "adamw", 2.0, 1.0, table);
  EXPECT_EQ(table[DSOPT_LR], 0.02f);
  EXPECT_EQ(table[DSOPT_FACTOR], 0.5f);
  EXPECT_EQ(table[DSOPT_APPLY], 1.0f);
  EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
  EXPECT_EQ(table[DSOPT_ONE_MINUS_BETA2], static_cast<float>(1 - 0.999));
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 0.02f / 0.1f);
  EXPECT_FLOAT_EQ(table[DSOPT_RSQRT_BIAS2], 1 / std::sqrt(0.001f));
  EXPECT_EQ(table[DSOPT_DECAY_FACTOR], static_cast<float>(1 - 0.02 * 0.1));
  EXPECT_EQ(table[DSOPT_FIRST], 1.0f);
  decision.appliedSteps = 1;
  writeScalars(decision, options, "sgd", 1.0, 0.0, table);
  EXPECT_EQ(table[DSOPT_BETA1], 0.7f);
  EXPECT_EQ(table[DSOPT_WEIGHT_DECAY], 0.0f);
  EXPECT_EQ(table[DSOPT_DECAY_FACTOR], 1.0f);
  EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  EXPECT_EQ(table[DSOPT_FIRST], 0.0f);
  // LAMB corrects the bias of both moments in its step size; Lion has betas and corrects nothing.
  writeScalars(decision, options, "lamb", 1.0, 1.0, table);
  EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 0.01 * std::sqrt(1 - 0.999 * 0.999) / (1 - 0.9 * 0.9));
  // 1-bit LAMB corrects none, before its freeze and behind it.
  for (int64_t frozen : {0, 1}) {
    writeScalars(decision, options, "onebit-lamb", 1.0, 1.0, table, frozen);
    EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
    EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  }
  writeScalars(decision, options, "lion", 1.0, 1.0, table);
  EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
  EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  // Muon has a momentum and a rate; the AdamW beside it has betas and a rate of its own.
  options.adamLrFactor = 3;
  writeScalars(decision, options, "muon", 2.0, 1.0, table);
  EXPECT_EQ(table[DSOPT_LR], 0.02f);
  EXPECT_EQ(table[DSOPT_MOMENTUM], 0.7f);
  EXPECT_EQ(table[DSOPT_ONE_MINUS_MOMENTUM], static_cast<float>(1 - 0.7));
  EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 0.06 / (1 - 0.9 * 0.9));
  EXPECT_FLOAT_EQ(table[DSOPT_DECAY_FACTOR], 1 - 0.06 * 0.1);
  // Adafactor's mean of squares takes less and less, and its rate has a bound that falls.
  writeScalars(decision, options, "adafactor", 1.0, 1.0, table);
  EXPECT_FLOAT_EQ(table[DSOPT_ONE_MINUS_BETA2], std::pow(2.0, -0.8));
  EXPECT_FLOAT_EQ(table[DSOPT_BETA2], 1 - std::pow(2.0, -0.8));
  EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  EXPECT_FLOAT_EQ(table[DSOPT_DECAY_FACTOR], 1 - 0.01 * 0.1);
  writeScalars(decision, options, "adafactor", 200.0, 1.0, table);
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 1 / std::sqrt(2.0));
  // 1-bit Adam is Adam until its variance freezes; then the correction of that stays, and the momentum has
  // none.
  writeScalars(decision, options, "onebit-adam", 1.0, 1.0, table);
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 0.01 / (1 - 0.9 * 0.9));
  EXPECT_FLOAT_EQ(table[DSOPT_RSQRT_BIAS2], 1 / std::sqrt(1 - 0.999 * 0.999));
  decision.appliedSteps = 40;
  writeScalars(decision, options, "onebit-adam", 1.0, 1.0, table, /*freezeStep=*/3);
  EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  EXPECT_FLOAT_EQ(table[DSOPT_RSQRT_BIAS2], 1 / std::sqrt(1 - 0.999 * 0.999 * 0.999));
  // 0/1 Adam counts the updates of its variance, and divides by the rates since ranks met, each group by its
  // own.
  decision.rates = 0.04;
  writeScalars(decision, options, "zero-one-adam", 2.0, 1.0, table, /*freezeStep=*/0, /*varianceSteps=*/2);
  EXPECT_FLOAT_EQ(table[DSOPT_STEP_SIZE], 0.02 / (1 - std::pow(0.9, decision.appliedSteps + 1)));
  EXPECT_FLOAT_EQ(table[DSOPT_RSQRT_BIAS2], 1 / std::sqrt(1 - 0.999 * 0.999));
  EXPECT_EQ(table[DSOPT_BETA1], 0.9f);
  EXPECT_EQ(table[DSOPT_RATES], 0.08f);
}

TEST(Decide, ClipFactor) {
  EXPECT_EQ(clipFactor(0, 100), 1);
  EXPECT_EQ(clipFactor(2, 1), 1);
  EXPECT_DOUBLE_EQ(clipFactor(1, 4), 1 / (4 + 1e-6));
}
