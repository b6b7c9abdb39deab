//===- TextAnswer.h - an answer as text -------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_TEXTANSWER_H
#define DSOPT_LIB_RUNTIME_GENERATE_TEXTANSWER_H

#include "dsopt/Runtime/Tokenizer.h"

#include <string>
#include <vector>

namespace dsopt::runtime {

/// Text as tokens come. What may become a stop waits until it is one, or none.
class TextAnswer {
public:
  TextAnswer(const Tokenizer &tokenizer, const std::vector<std::string> &stops)
      : tokenizer(tokenizer), stream(tokenizer), stops(stops) {}

  /// What can be said now that a token has come.
  std::string add(int64_t token);
  /// What still waits, when no more comes.
  std::string finish();
  /// Whether a stop has come: what stands before it was said, and that is all.
  bool hasStopped() const { return stopped; }

private:
  std::string take(bool isLast);

  const Tokenizer &tokenizer;
  DecodeStream stream;
  const std::vector<std::string> &stops;
  std::string waiting;
  bool stopped = false;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_TEXTANSWER_H
