//===- Bpe.h - byte pair encoding -------------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_BPE_H
#define DSOPT_LIB_RUNTIME_TEXT_BPE_H

#include "Merges.h"
#include "Steps.h"

#include <array>

namespace dsopt::runtime::text {

/// Ids of the tokens <0x00> to <0xFF>.
class ByteTokens {
public:
  explicit ByteTokens(const Model &model);
  /// Appends the tokens of all bytes; false, and nothing, where one is no token.
  bool append(std::string_view text, std::vector<int32_t> &ids) const;

private:
  std::array<int32_t, 256> ids; ///< -1: none
};

/// Merges by a list, from characters on: tokenizer.json's.
std::unique_ptr<Model> makeBpe(Fields &fields);

/// Merges by what the result is worth: tiktoken's ranks (from bytes on) and SentencePiece's scores (from
/// characters on).
class RankedBpe : public Model {
public:
  struct Rules {
    std::vector<uint32_t> ranks; ///< of each id; equal ones are as good
    std::vector<bool> isMerged;  ///< whether a token is made of others
    TokenTree whole;             ///< stand in texts as they are, and are merged with nothing
    bool fromBytes = false;      ///< and a piece that is a token is this one
    int32_t unknown = -1;        ///< of a character that is none; several in a row are one
    bool byteFallback = false;
  };
  RankedBpe(Vocabulary vocabulary, Rules rules);
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override;
  std::optional<int32_t> find(std::string_view token) const override { return vocabulary.find(token); }
  const std::string *textOf(int32_t id) const override { return vocabulary.textOf(id); }
  int64_t size() const override { return vocabulary.size(); }

private:
  void encodeWord(std::string_view piece, std::vector<int32_t> &ids) const;
  /// The number of a text that is merged, at most one character or a token; -1: none.
  int32_t symbolOf(std::string_view text) const;
  void append(int32_t symbol, std::string_view text, bool &wasUnknown, std::vector<int32_t> &ids) const;

  Vocabulary vocabulary;
  Rules rules;
  Vocabulary
      parts; ///< characters that are no tokens, but that tokens are made of, numbered behind the vocabulary
  PairTable pairs;
  std::array<int32_t, 256> bytes;
  std::unique_ptr<ByteTokens> fallback;
  WordCuts words;
  WordCache cache;
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_BPE_H
