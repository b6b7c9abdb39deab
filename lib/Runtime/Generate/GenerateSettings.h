//===- GenerateSettings.h - what to go on from, and how ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H
#define DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H

#include "Generate/Generation.h"
#include "Generate/Prompts.h"
#include "dsopt/Runtime/Options.h"
#include "dsopt/Runtime/Tokenizer.h"

#include <memory>
#include <optional>
#include <string>

namespace dsopt::runtime {

struct GenerateSettings {
  AnswerOptions answer;
  std::optional<int64_t> newTokens;           ///< as given
  int64_t answers = 1;                        ///< of each prompt
  std::shared_ptr<const Tokenizer> tokenizer; ///< null where all is in tokens
  std::vector<Prompt> prompts;
  bool isInteractive = false;      ///< prompts are lines of a terminal, as they come
  bool isChat = false;             ///< they are turns of a conversation
  std::string system;              ///< what a conversation begins with
  std::vector<std::string> stops;  ///< texts that end an answer
  bool echoes = false;             ///< answers begin with their prompts
  std::optional<int64_t> logprobs; ///< how many of the likeliest tokens are said, too
  std::string saveOutputs;         ///< where tokens are written; empty: nowhere
  bool saveLogits = false, quiet = false;
};

/// What options say. Where this process `reads` them (rank 0), prompts are read. An Error of status 1 says
/// what is wrong.
GenerateSettings resolveGenerate(const Program &program, const ParsedOptions &options, bool reads);

/// A turn of a conversation as a member of its list in JSON.
std::string chatTurn(const std::string &role, const std::string &text);
/// What a conversation, its turns with commas between them, begins with by the tokenizer's chat template.
Prompt promptOfChat(const GenerateSettings &settings, const std::string &turns);

/// The sequences that answer the prompts, each as often as is asked for; sets how many tokens answers have at
/// most.
std::vector<Sequence> makeSequences(const Program &program, GenerateSettings &settings);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_GENERATESETTINGS_H
