//===- GenerateSettings.h - what to go on from, and how ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H
#define DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H

#include "Generate/Generation.h"
#include "dsopt/Runtime/Options.h"

#include <optional>
#include <string>

namespace dsopt::runtime {

struct GenerateSettings {
  AnswerOptions answer;
  std::optional<int64_t> newTokens; ///< as given
  int64_t answers = 1;              ///< of each prompt
  std::string promptIds;            ///< a file of tokens
  std::string saveOutputs;          ///< where tokens are written; empty: nowhere
  bool saveLogits = false, quiet = false;
};

/// What options say. An Error of status 1 says what is wrong.
GenerateSettings resolveGenerate(const Program &program, const ParsedOptions &options);

/// The sequences that answer prompts, each as often as is asked for; sets how many tokens answers have at
/// most.
std::vector<Sequence> makeSequences(const Program &program, GenerateSettings &settings,
                                    const std::vector<std::vector<int64_t>> &prompts);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H
