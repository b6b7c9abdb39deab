//===- Tokenizer.h - text to ids and back -----------------------*- C++ -*-===//
//
// Reads what others write: tokenizer.json, SentencePiece's .model, tiktoken's
// ranks, tekken.json, vocab.json with merges.txt and vocab.txt. What a file asks
// for and this lacks is an Error of status 1 that names it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_TOKENIZER_H
#define DSOPT_RUNTIME_TOKENIZER_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime {

/// The files that say what a tokenizer is, by name: tokenizer.json, tokenizer_config.json, ...
struct TokenizerFiles {
  std::string where; ///< what messages call them
  std::map<std::string, std::string> bytes;
  /// What a tiktoken file splits texts at, a known name (cl100k_base) or a pattern; empty: by the file's
  /// name.
  std::string pattern;

  /// Of a file, or of a folder; other files in it are not read.
  static TokenizerFiles read(const std::string &path);

  /// All of it as bytes that a program carries, and back; `where` is what messages call them then.
  std::string pack() const;
  static TokenizerFiles unpack(std::string_view packed, const std::string &where);
};

/// What becomes of special tokens.
enum class SpecialTokens {
  Add,       ///< those that begin and end a text are added; texts that spell one become it
  Recognize, ///< texts that spell one become it
  Ignore,    ///< texts are texts
};

class Tokenizer {
public:
  explicit Tokenizer(const TokenizerFiles &files);
  ~Tokenizer();
  Tokenizer(const Tokenizer &) = delete;

  /// The ids of a text; an Error of status 1 where it is not UTF-8.
  std::vector<int32_t> encode(std::string_view text, SpecialTokens special = SpecialTokens::Add) const;

  /// The bytes of ids: UTF-8 but where tokens end inside a character. An Error of status 1 for an id that is
  /// none.
  std::string decode(const std::vector<int32_t> &ids, bool skipsSpecial = true) const;

  /// The largest id and one.
  int64_t vocabularySize() const;
  std::optional<int32_t> find(std::string_view token) const;
  /// A token as the vocabulary spells it, null where no token has this id.
  const std::string *textOf(int32_t id) const;
  bool isSpecial(int32_t id) const;

  /// Tokens by their names in configurations: bos_token, eos_token, pad_token, ...
  const std::map<std::string, std::string> &namedTokens() const;
  std::optional<int32_t> begin() const; ///< bos_token
  std::optional<int32_t> end() const;   ///< eos_token

  /// Chat templates by name; the one for everything is "default".
  const std::map<std::string, std::string> &chatTemplates() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Text as tokens come: bytes of a character that is not whole wait for the next token.
class DecodeStream {
public:
  explicit DecodeStream(const Tokenizer &tokenizer, bool skipsSpecial = true)
      : tokenizer(tokenizer), skipsSpecial(skipsSpecial) {}
  /// What can be said now that `id` has come.
  std::string add(int32_t id);
  /// What still waits.
  std::string finish();

private:
  const Tokenizer &tokenizer;
  bool skipsSpecial;
  std::vector<int32_t> window; ///< of the tokens that what comes depends on
  size_t said = 0;             ///< bytes of the window's text
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_TOKENIZER_H
