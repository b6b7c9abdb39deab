//===- Unigram.h - the likeliest of all ways to cut a text ------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_UNIGRAM_H
#define DSOPT_LIB_RUNTIME_TEXT_UNIGRAM_H

#include "Bpe.h"

namespace dsopt::runtime::text {

/// What differs between SentencePiece's own and `tokenizers`: Score is float or double.
struct UnigramRules {
  std::vector<double> scores;
  std::vector<bool> isUsed;  ///< whether texts can have a token; empty: all
  std::vector<bool> isWhole; ///< SentencePiece's user-defined symbols; empty: none
  int32_t unknown = -1;      ///< -1: none
  bool byteFallback = false;
  bool isSentencePiece = false; ///< computes in float, and finds no unknown text again in the vocabulary
};

std::unique_ptr<Model> makeUnigram(Vocabulary vocabulary, UnigramRules rules, const std::string &where);
std::unique_ptr<Model> makeUnigram(Fields &fields);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_UNIGRAM_H
