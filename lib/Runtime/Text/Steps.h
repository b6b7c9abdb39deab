//===- Steps.h - what a tokenizer is made of --------------------*- C++ -*-===//
//
// Text becomes ids in four steps: it is normalized, cut into pieces, each piece
// becomes tokens of a vocabulary, and tokens that begin and end texts are added.
// Back, tokens' texts go through decoders.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_STEPS_H
#define DSOPT_LIB_RUNTIME_TEXT_STEPS_H

#include "JsonFields.h"
#include "Pieces.h"
#include "dsopt/Runtime/Error.h"

#include <memory>
#include <optional>

namespace dsopt::runtime::text {

class Normalizer {
public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string &text) const = 0;
};

class PreTokenizer {
public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces &pieces) const = 0;
};

class Model {
public:
  virtual ~Model() = default;
  /// Appends the tokens of one piece.
  virtual void encode(std::string_view piece, std::vector<int32_t> &ids) const = 0;
  virtual std::optional<int32_t> find(std::string_view token) const = 0;
  /// A token's text, null where no token has this id.
  virtual const std::string *textOf(int32_t id) const = 0;
  /// The largest id and one.
  virtual int64_t size() const = 0;
};

class Decoder {
public:
  virtual ~Decoder() = default;
  /// Changes tokens' texts, which are joined afterwards.
  virtual void apply(std::vector<std::string> &tokens) const = 0;
};

/// Of what tokenizer.json says.
std::unique_ptr<Normalizer> makeNormalizer(const Json &json, const std::string &where);
std::unique_ptr<PreTokenizer> makePreTokenizer(const Json &json, const std::string &where);
std::unique_ptr<Model> makeModel(const Json &json, const std::string &where);
std::unique_ptr<Decoder> makeDecoder(const Json &json, const std::string &where);

/// Members of {"type":"Sequence", NAME:[...]}, each with where it is.
std::vector<std::pair<const Json *, std::string>> sequenceOf(Fields &fields, const char *name);

/// A pattern as files have it: {"String":..} or {"Regex":..}.
struct Pattern {
  std::string text; ///< where there is no regex
  std::shared_ptr<Regex> regex;
};
Pattern patternOf(Fields &fields, const char *name);

/// Replaces all that a pattern finds.
void replaceAll(std::string &text, const Pattern &pattern, const std::string &content);

/// The 256 characters that byte-level vocabularies have for bytes.
const std::string (&byteCharacters())[256];
/// The byte of such a character, -1 of another one.
int byteOf(char32_t code);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_STEPS_H
