//===- Prompts.h - what sequences begin with --------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_PROMPTS_H
#define DSOPT_LIB_RUNTIME_GENERATE_PROMPTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What a sequence begins with.
struct Prompt {
  std::vector<int64_t> tokens;
  std::string text; ///< empty where tokens alone are given
};

/// The prompts of an .npz file: the rows of `input_ids`, or arrays 0, 1, ... of their own lengths. An Error
/// of status 1 says what does not fit.
std::vector<Prompt> readPromptIds(const std::string &path);

/// An Error of status 1 for prompts that are empty, have tokens outside of the vocabulary (0: unknown), or
/// leave no room for so many new tokens in a context.
void checkPrompts(const std::vector<Prompt> &prompts, int64_t vocabulary, int64_t newTokens, int64_t context);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_PROMPTS_H
