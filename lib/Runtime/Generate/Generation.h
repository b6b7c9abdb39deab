//===- Generation.h - from prompts to answers -------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_GENERATION_H
#define DSOPT_LIB_RUNTIME_GENERATE_GENERATION_H

#include "Generate/RowSource.h"
#include "Generate/Sampling.h"

namespace dsopt::runtime {

/// When an answer ends, and how its tokens are chosen.
struct AnswerOptions {
  SamplingOptions sampling;
  int64_t newTokens = 0;   ///< most of an answer
  bool ignoresEnd = false; ///< end tokens are tokens as others
};

/// What was done.
struct GenerateCounts {
  int64_t given = 0, chosen = 0;    ///< tokens of prompts, and behind them
  double givenMs = 0, chosenMs = 0; ///< of runs with a part of a prompt in them, and of the others
  bool stopped = false;             ///< all ranks agreed to stop before the end
};

/// Hears of answers as they come.
class AnswerSink {
public:
  virtual ~AnswerSink() = default;
  /// A token was chosen, by these logits before any processor. Whether the answer ends with it.
  virtual bool token(const Sequence &sequence, const float *logits) = 0;
  /// The answer has ended.
  virtual void done(const Sequence &sequence) = 0;
};

/// Answers all sequences (collective): rank 0 chooses, and tells `sink`; others need no sequences.
GenerateCounts generate(Session &session, Engine &engine, const Program &program, RowSource &source,
                        Sequences &sequences, const AnswerOptions &options, AnswerSink &sink);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_GENERATION_H
