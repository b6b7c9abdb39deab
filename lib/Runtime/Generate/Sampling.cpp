//===- Sampling.cpp - from logits to a token -------------------------------===//

#include "Generate/Sampling.h"

#include "dsopt/Runtime/Philox.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

using namespace dsopt::runtime;

static constexpr float kNever = -std::numeric_limits<float>::infinity();

Sampler::Sampler(const SamplingOptions &options, int64_t vocabulary)
    : options(options), scores(vocabulary), order(vocabulary) {}

bool Sampler::isFinite(const float *logits, int64_t vocabulary) {
  bool any = false;
  for (int64_t i = 0; i < vocabulary; ++i) {
    if (std::isnan(logits[i]) || logits[i] == -kNever)
      return false;
    any |= std::isfinite(logits[i]);
  }
  return any;
}

/// Those of what stands in prompt and answer, then those of what was generated.
void Sampler::penalize(const std::vector<int64_t> &tokens, int64_t prompt) {
  if (options.repetitionPenalty != 1) {
    auto penalty = static_cast<float>(options.repetitionPenalty);
    std::vector<int64_t> seen(tokens);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (int64_t token : seen)
      scores[token] = scores[token] < 0 ? scores[token] * penalty : scores[token] / penalty;
  }
  if (options.presencePenalty == 0 && options.frequencyPenalty == 0)
    return;
  std::map<int64_t, int64_t> counts;
  for (size_t i = prompt; i < tokens.size(); ++i)
    ++counts[tokens[i]];
  for (auto [token, count] : counts)
    scores[token] -=
        static_cast<float>(options.presencePenalty + options.frequencyPenalty * static_cast<double>(count));
}

int64_t Sampler::largest() const { return std::max_element(scores.begin(), scores.end()) - scores.begin(); }

/// top-k keeps what is as large as the k-th; top-p takes away the smallest whose sum stays within 1 - p;
/// min-p what is less likely than its share of the likeliest.
void Sampler::cut() {
  auto vocabulary = static_cast<int64_t>(scores.size());
  if (options.topK > 0 && options.topK < vocabulary) {
    std::vector<float> sorted(scores);
    std::nth_element(sorted.begin(), sorted.begin() + (options.topK - 1), sorted.end(), std::greater<>());
    float least = sorted[options.topK - 1];
    for (float &score : scores)
      score = score < least ? kNever : score;
  }
  if (options.topP < 1) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return scores[a] < scores[b]; });
    float most = scores[order.back()];
    double all = 0, below = 0;
    for (float score : scores)
      all += std::exp(static_cast<double>(score - most));
    for (int64_t i = 0; i + 1 < vocabulary; ++i) {
      below += std::exp(static_cast<double>(scores[order[i]] - most)) / all;
      if (below > 1 - options.topP)
        break;
      scores[order[i]] = kNever;
    }
  }
  if (options.minP > 0) {
    float most = scores[largest()], least = most + static_cast<float>(std::log(options.minP));
    for (float &score : scores)
      score = score < least ? kNever : score;
  }
}

/// The first token at which the sum of probabilities, in the order of tokens, is above a number from [0, 1).
int64_t Sampler::draw(int64_t position, int64_t answer) {
  auto half = [](int64_t value, int part) {
    return static_cast<uint32_t>(static_cast<uint64_t>(value) >> (32 * part));
  };
  std::array<uint32_t, 4> words =
      philox({half(position, 0), half(position, 1), half(answer, 0), half(answer, 1)},
             {half(options.seed, 0), half(options.seed, 1)});
  double number = ((static_cast<uint64_t>(words[0]) << 32 | words[1]) >> 11) * 0x1p-53;
  float most = scores[largest()];
  double all = 0, sum = 0;
  for (float score : scores)
    all += std::exp(static_cast<double>(score - most));
  int64_t last = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    double weight = std::exp(static_cast<double>(scores[i] - most));
    if (weight == 0)
      continue;
    sum += weight;
    last = static_cast<int64_t>(i);
    if (sum > number * all)
      break;
  }
  return last;
}

int64_t Sampler::choose(const float *logits, const std::vector<int64_t> &tokens, int64_t prompt,
                        int64_t answer) {
  std::copy_n(logits, scores.size(), scores.begin());
  for (auto [token, bias] : options.bias)
    scores[token] += static_cast<float>(bias);
  penalize(tokens, prompt);
  if (static_cast<int64_t>(tokens.size()) - prompt < options.minNewTokens)
    for (int64_t token : options.endTokens)
      scores[token] = kNever;
  if (options.temperature == 0)
    return largest();
  for (float &score : scores)
    score /= static_cast<float>(options.temperature);
  cut();
  return draw(static_cast<int64_t>(tokens.size()), answer);
}
