//===- Sampling.h - from logits to a token ----------------------*- C++ -*-===//
//
// The processors of transformers in their order: biases and penalties, then temperature, then cuts. What is
// drawn follows from the seed, the answer and the position alone.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_SAMPLING_H
#define DSOPT_LIB_RUNTIME_GENERATE_SAMPLING_H

#include <cstdint>
#include <utility>
#include <vector>

namespace dsopt::runtime {

struct SamplingOptions {
  double temperature = 0; ///< 0: the largest logit, the first of several
  int64_t topK = 0;       ///< 0: all
  double topP = 1, minP = 0;
  double repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0;
  std::vector<std::pair<int64_t, double>> bias; ///< added to the logits of tokens
  std::vector<int64_t> endTokens;               ///< that end an answer
  int64_t minNewTokens = 0;                     ///< before which it does not end
  int64_t seed = 0;
};

class Sampler {
public:
  Sampler(const SamplingOptions &options, int64_t vocabulary);

  /// The token behind `tokens`, of which the first `prompt` were given, by `logits` of the vocabulary.
  /// Answers are counted over all prompts.
  int64_t choose(const float *logits, const std::vector<int64_t> &tokens, int64_t prompt, int64_t answer);
  /// Whether all logits are finite, or -inf as the model may say of what cannot come.
  static bool isFinite(const float *logits, int64_t vocabulary);

private:
  void penalize(const std::vector<int64_t> &tokens, int64_t prompt);
  int64_t largest() const;
  void cut();
  int64_t draw(int64_t position, int64_t answer);

  const SamplingOptions options;
  std::vector<float> scores;
  std::vector<int32_t> order; ///< of tokens, where cuts sort them
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_SAMPLING_H
