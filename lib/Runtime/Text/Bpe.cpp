//===- Bpe.cpp - byte pair encoding by a list of merges -------------------===//

#include "Bpe.h"
#include "Utf8.h"

#include <cstdio>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

ByteTokens::ByteTokens(const Model &model) {
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    ids[byte] = model.find(name).value_or(-1);
  }
}

bool ByteTokens::append(std::string_view text, std::vector<int32_t> &out) const {
  for (char c : text)
    if (ids[static_cast<unsigned char>(c)] < 0)
      return false;
  for (char c : text)
    out.push_back(ids[static_cast<unsigned char>(c)]);
  return true;
}

namespace {
class Bpe : public Model {
public:
  explicit Bpe(Fields &fields);
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override {
    words.forWords(piece, [&](std::string_view word) {
      cache.append(word, ids, [&](std::vector<int32_t> &out) { encodeWord(word, out); });
    });
  }
  std::optional<int32_t> find(std::string_view token) const override { return vocabulary.find(token); }
  const std::string *textOf(int32_t id) const override { return vocabulary.textOf(id); }
  int64_t size() const override { return vocabulary.size(); }

private:
  void readMerges(const Json &list, const std::string &where);
  void encodeWord(std::string_view piece, std::vector<int32_t> &ids) const;
  /// Tokens of one character each, before anything is merged.
  void split(std::string_view piece, std::vector<int32_t> &symbols) const;

  Vocabulary vocabulary;
  PairTable pairs;
  std::string prefix, suffix; ///< of characters that do not begin a word, of the last one
  int32_t unknown = -1;
  bool fuses = false, ignoresMerges = false;
  std::unique_ptr<ByteTokens> fallback;
  std::array<int32_t, 0x180> firsts; ///< tokens of single characters, -1: none
  WordCuts words;
  WordCache cache;
};
} // namespace

Bpe::Bpe(Fields &fields) {
  if (const Json *dropout = fields.find("dropout"); dropout && *dropout != 0.0)
    fields.fail("dropout got " + shortly(*dropout) + ", which draws at random: expected none");
  prefix = fields.text("continuing_subword_prefix", "");
  suffix = fields.text("end_of_word_suffix", "");
  fuses = fields.flag("fuse_unk", false);
  ignoresMerges = fields.flag("ignore_merges", false);
  const Json *vocab = fields.find("vocab"), *merges = fields.find("merges");
  if (!vocab || !merges)
    fields.fail(vocab ? "lacks merges" : "lacks vocab");
  vocabulary.read(*vocab, fields.where + ": vocab");
  if (fields.flag("byte_fallback", false))
    fallback = std::make_unique<ByteTokens>(*this);
  if (std::string name = fields.text("unk_token", ""); !name.empty()) {
    auto id = vocabulary.find(name);
    if (!id)
      fields.fail("unk_token " + shortly(name) + " is no token");
    unknown = *id;
  }
  for (size_t code = 0; code < firsts.size(); ++code) {
    std::string text;
    append(text, static_cast<char32_t>(code));
    firsts[code] = vocabulary.find(text).value_or(-1);
  }
  readMerges(*merges, fields.where);
  if (prefix.empty() && suffix.empty())
    words = WordCuts(vocabulary);
}

void Bpe::readMerges(const Json &list, const std::string &where) {
  if (!list.is_array())
    throw Error(StatusInput, where + ": merges got " + shortly(list) + ", expected a list");
  uint32_t rank = 0;
  std::string made;
  for (const Json &merge : list) {
    auto fail = [&](const std::string &what) {
      throw Error(StatusInput, where + ": merge " + std::to_string(rank) + " " + what);
    };
    std::string_view first, second;
    if (merge.is_string()) {
      std::string_view both = merge.get_ref<const std::string &>();
      size_t blank = both.find(' ');
      if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
        fail("got " + shortly(merge) + ", expected two tokens with a blank between them");
      first = both.substr(0, blank);
      second = both.substr(blank + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      first = merge[0].get_ref<const std::string &>();
      second = merge[1].get_ref<const std::string &>();
    } else {
      fail("got " + shortly(merge) + ", expected two tokens");
    }
    made = first;
    made += second.substr(std::min(prefix.size(), second.size()));
    auto one = vocabulary.find(first), other = vocabulary.find(second), result = vocabulary.find(made);
    if (!one || !other || !result)
      fail("of " + shortly(first) + " and " + shortly(second) + ": " +
           shortly(!one     ? std::string(first)
                   : !other ? std::string(second)
                            : made) +
           " is no token");
    pairs.add(*one, *other, rank++, *result);
  }
}

void Bpe::split(std::string_view piece, std::vector<int32_t> &symbols) const {
  bool isPlain = prefix.empty() && suffix.empty(), wasUnknown = false;
  std::string text;
  for (size_t at = 0; at < piece.size();) {
    size_t begin = at;
    char32_t code = nextCharacter(piece, at);
    std::string_view character = piece.substr(begin, at - begin);
    int32_t id;
    if (isPlain) {
      id = code < firsts.size() ? firsts[code] : vocabulary.find(character).value_or(-1);
    } else {
      text.clear();
      if (begin)
        text += prefix;
      text += character;
      if (at == piece.size())
        text += suffix;
      character = text;
      id = vocabulary.find(text).value_or(-1);
    }
    if (id >= 0) {
      if (wasUnknown)
        symbols.push_back(unknown);
      wasUnknown = false;
      symbols.push_back(id);
      continue;
    }
    if (fallback && fallback->append(character, symbols))
      continue;
    // Without a token for what is unknown, it is left out.
    if (unknown < 0)
      continue;
    if (wasUnknown && !fuses)
      symbols.push_back(unknown);
    wasUnknown = true;
  }
  if (wasUnknown)
    symbols.push_back(unknown);
}

void Bpe::encodeWord(std::string_view piece, std::vector<int32_t> &ids) const {
  if (ignoresMerges)
    if (auto id = vocabulary.find(piece)) {
      ids.push_back(*id);
      return;
    }
  std::vector<int32_t> symbols;
  split(piece, symbols);
  mergePairs(symbols, pairs);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

std::unique_ptr<Model> text::makeBpe(Fields &fields) { return std::make_unique<Bpe>(fields); }
