//===- Prompts.h - texts that are asked for on a command line ---*- C++ -*-===//

#ifndef DSOPT_RUNTIME_PROMPTS_H
#define DSOPT_RUNTIME_PROMPTS_H

#include "dsopt/Runtime/Options.h"
#include "dsopt/Runtime/Tokenizer.h"

#include <functional>
#include <string>

namespace dsopt::runtime {

/// Where the tokenizer of a command line is: -tokenizer, else beside or at `model`.
TokenizerFiles tokenizerFiles(const ParsedOptions &options, const std::string &model);

/// What answers to prompts go by: the files that -tokenizer names, else `own`, whose generation_config.json
/// counts where those have none.
TokenizerFiles answerFiles(const ParsedOptions &options, TokenizerFiles own);

/// Calls `use` with each text that -prompt or -prompts asks for, one after the other; of standard input, with
/// each line. Conversations become texts by the tokenizer's chat template. `isChat` says that the text has
/// its special tokens already.
void forPrompts(const ParsedOptions &options, const Tokenizer &tokenizer,
                const std::function<void(const std::string &text, bool isChat)> &use);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_PROMPTS_H
