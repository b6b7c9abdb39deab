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

TEST(Decide, Scalars) {
  RunOptions options;
  options.weightDecay = 0.1;
  options.momentum = 0.7;
  Decision decision;
  decision.lr = 0.01;
  decision.factor = 0.5;
  float table[DSOPT_SCALARS];
  writeScalars(decision, options, "adamw", 2.0, true, table);
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
  writeScalars(decision, options, "sgd", 1.0, false, table);
  EXPECT_EQ(table[DSOPT_BETA1], 0.7f);
  EXPECT_EQ(table[DSOPT_WEIGHT_DECAY], 0.0f);
  EXPECT_EQ(table[DSOPT_DECAY_FACTOR], 1.0f);
  EXPECT_EQ(table[DSOPT_STEP_SIZE], 0.01f);
  EXPECT_EQ(table[DSOPT_FIRST], 0.0f);
}

TEST(Decide, ClipFactor) {
  EXPECT_EQ(clipFactor(0, 100), 1);
  EXPECT_EQ(clipFactor(2, 1), 1);
  EXPECT_DOUBLE_EQ(clipFactor(1, 4), 1 / (4 + 1e-6));
}
