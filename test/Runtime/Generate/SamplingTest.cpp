//===- SamplingTest.cpp - from logits to a token --------------------------===//

#include "Generate/Sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace dsopt::runtime;

namespace {
constexpr float kNever = -std::numeric_limits<float>::infinity();

/// How often each token is drawn.
std::vector<int64_t> counts(const SamplingOptions &options, const std::vector<float> &logits, int64_t draws) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()));
  std::vector<int64_t> result(logits.size());
  for (int64_t answer = 0; answer < draws; ++answer)
    ++result[sampler.choose(logits.data(), {0}, 1, answer)];
  return result;
}

/// Whether draws are of these probabilities: chi-square below a bound that one of 10^5 runs exceeds.
void expectProbabilities(const std::vector<int64_t> &drawn, const std::vector<double> &probabilities) {
  double all = 0, square = 0;
  int64_t free = -1;
  for (int64_t count : drawn)
    all += static_cast<double>(count);
  for (size_t i = 0; i < drawn.size(); ++i) {
    double expected = all * probabilities[i];
    if (expected == 0) {
      EXPECT_EQ(drawn[i], 0) << "token " << i << " cannot come";
      continue;
    }
    square +=
        (static_cast<double>(drawn[i]) - expected) * (static_cast<double>(drawn[i]) - expected) / expected;
    ++free;
  }
  if (free == 0)
    return;
  auto k = static_cast<double>(free);
  // Wilson and Hilferty's approximation.
  double bound = k * std::pow(1 - 2 / (9 * k) + 4.3 * std::sqrt(2 / (9 * k)), 3);
  EXPECT_LT(square, bound) << "over " << free << " degrees of freedom";
}

TEST(Sampling, TakesTheFirstOfTheLargest) {
  Sampler sampler({}, 4);
  std::vector<float> logits{1, 3, 3, 2};
  EXPECT_EQ(sampler.choose(logits.data(), {0}, 1, 0), 1);
}

TEST(Sampling, DrawsByProbability) {
  SamplingOptions options;
  options.temperature = 1;
  expectProbabilities(counts(options, {0, std::log(2.0f), std::log(5.0f), kNever}, 1000000),
                      {1.0 / 8, 2.0 / 8, 5.0 / 8, 0});
  options.temperature = 0.5;
  expectProbabilities(counts(options, {0, std::log(2.0f), std::log(5.0f)}, 100000),
                      {1.0 / 30, 4.0 / 30, 25.0 / 30});
}

TEST(Sampling, CutsAsTransformersDoes) {
  SamplingOptions options;
  options.temperature = 1;
  options.topK = 2;
  // What is as large as the second stays.
  expectProbabilities(counts(options, {2, 1, 1, 0}, 100000),
                      {std::exp(1) / (std::exp(1) + 2), 1 / (std::exp(1) + 2), 1 / (std::exp(1) + 2), 0});
  options.topK = 0;
  options.topP = 0.6;
  // Of 1/8, 2/8, 5/8 the smallest go as long as their sum is at most 0.4.
  expectProbabilities(counts(options, {0, std::log(2.0f), std::log(5.0f)}, 10000), {0, 0, 1});
  options.topP = 0.7;
  expectProbabilities(counts(options, {0, std::log(2.0f), std::log(5.0f)}, 100000), {0, 2.0 / 7, 5.0 / 7});
  options.topP = 1;
  options.minP = 0.3;
  expectProbabilities(counts(options, {0, std::log(2.0f), std::log(5.0f)}, 100000), {0, 2.0 / 7, 5.0 / 7});
}

TEST(Sampling, OneOfAllTokensStays) {
  SamplingOptions options;
  options.temperature = 1;
  options.topP = 1e-9;
  expectProbabilities(counts(options, {1, 2, 0}, 1000), {0, 1, 0});
}

TEST(Sampling, PenalizesWhatIsThere) {
  SamplingOptions options;
  options.repetitionPenalty = 2;
  Sampler repeated(options, 3);
  std::vector<float> logits{3, 2, -1};
  // A positive logit is halved, a negative one doubled.
  EXPECT_EQ(repeated.choose(logits.data(), {0}, 1, 0), 1);
  EXPECT_EQ(repeated.choose(logits.data(), {0, 1, 1}, 1, 0), 0);
  options = {};
  options.presencePenalty = 0.5;
  options.frequencyPenalty = 0.4;
  Sampler counted(options, 3);
  // Of the answer alone, once for being there and again for each time.
  EXPECT_EQ(counted.choose(logits.data(), {0, 0}, 2, 0), 0);
  EXPECT_EQ(counted.choose(logits.data(), {1, 0}, 1, 0), 0);
  EXPECT_EQ(counted.choose(logits.data(), {1, 0, 0}, 1, 0), 1);
}

TEST(Sampling, BiasesAndLeastLength) {
  SamplingOptions options;
  options.bias = {{2, 10}};
  options.endTokens = {2};
  options.minNewTokens = 2;
  Sampler sampler(options, 3);
  std::vector<float> logits{1, 0, 0};
  EXPECT_EQ(sampler.choose(logits.data(), {0}, 1, 0), 0);
  EXPECT_EQ(sampler.choose(logits.data(), {0, 0}, 1, 0), 0);
  EXPECT_EQ(sampler.choose(logits.data(), {0, 0, 0}, 1, 0), 2);
}

TEST(Sampling, FollowsFromSeedAnswerAndPosition) {
  SamplingOptions options;
  options.temperature = 1;
  options.seed = 7;
  std::vector<float> logits(1000, 0);
  Sampler one(options, 1000), two(options, 1000);
  two.choose(logits.data(), {1, 2}, 1, 5);
  EXPECT_EQ(one.choose(logits.data(), {1, 2, 3}, 1, 9), two.choose(logits.data(), {4, 5, 6}, 2, 9));
  EXPECT_NE(one.choose(logits.data(), {1, 2, 3}, 1, 9), one.choose(logits.data(), {1, 2, 3}, 1, 10));
  EXPECT_NE(one.choose(logits.data(), {1, 2, 3}, 1, 9), one.choose(logits.data(), {1, 2, 3, 4}, 1, 9));
  options.seed = 8;
  EXPECT_NE(one.choose(logits.data(), {1, 2, 3}, 1, 9),
            Sampler(options, 1000).choose(logits.data(), {1, 2, 3}, 1, 9));
}

TEST(Sampling, KnowsWhatIsNotFinite) {
  std::vector<float> logits{1, kNever, 2};
  EXPECT_TRUE(Sampler::isFinite(logits.data(), 3));
  logits[0] = std::nanf("");
  EXPECT_FALSE(Sampler::isFinite(logits.data(), 3));
  logits = {kNever, kNever, kNever};
  EXPECT_FALSE(Sampler::isFinite(logits.data(), 3));
  logits = {1, -kNever, 0};
  EXPECT_FALSE(Sampler::isFinite(logits.data(), 3));
}
} // namespace
