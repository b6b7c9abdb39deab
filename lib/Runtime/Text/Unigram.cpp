//===- Unigram.cpp - the likeliest of all ways to cut a text --------------===//

#include "Unigram.h"
#include "Utf8.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// What an unknown character costs beyond the worst token.
static constexpr double kUnknownPenalty = 10;

namespace {
template <typename Score> class Unigram : public Model {
public:
  Unigram(Vocabulary vocabulary, UnigramRules rules, const std::string &where);
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override {
    if (rules.isSentencePiece)
      encodeWord(piece, ids);
    else
      cache.append(piece, ids, [&](std::vector<int32_t> &out) { encodeWord(piece, out); });
  }
  std::optional<int32_t> find(std::string_view token) const override { return vocabulary.find(token); }
  const std::string *textOf(int32_t id) const override { return vocabulary.textOf(id); }
  int64_t size() const override { return vocabulary.size(); }

private:
  struct Cut {
    size_t begin = SIZE_MAX;
    int32_t id = -1;
    Score score = 0;
  };
  void encodeWord(std::string_view piece, std::vector<int32_t> &ids) const;
  Score scoreOf(int32_t id, size_t bytes) const {
    return !rules.isWhole.empty() && rules.isWhole[id] ? static_cast<Score>(bytes * most - 0.1)
                                                       : static_cast<Score>(rules.scores[id]);
  }
  void appendUnknown(std::string_view text, std::vector<int32_t> &ids) const;

  Vocabulary vocabulary;
  UnigramRules rules;
  TokenTree tree;
  Score least = 0, most = 0;
  std::unique_ptr<ByteTokens> fallback;
  WordCache cache;
};
} // namespace

template <typename Score>
Unigram<Score>::Unigram(Vocabulary given, UnigramRules givenRules, const std::string &where)
    : vocabulary(std::move(given)), rules(std::move(givenRules)) {
  least = std::numeric_limits<Score>::max();
  most = std::numeric_limits<Score>::lowest();
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!rules.isUsed.empty() && !rules.isUsed[id])
      continue;
    const std::string *text = vocabulary.textOf(id);
    if (!text)
      continue;
    if (text->empty() && rules.isSentencePiece)
      throw Error(StatusInput, where + ": the token " + std::to_string(id) + " has no text");
    tree.add(*text, id);
    bool isWhole = !rules.isWhole.empty() && rules.isWhole[id];
    if (!isWhole) {
      least = std::min(least, static_cast<Score>(rules.scores[id]));
      most = std::max(most, static_cast<Score>(rules.scores[id]));
    }
  }
  if (rules.byteFallback)
    fallback = std::make_unique<ByteTokens>(*this);
}

template <typename Score>
void Unigram<Score>::appendUnknown(std::string_view text, std::vector<int32_t> &ids) const {
  if (!rules.isSentencePiece)
    if (auto id = vocabulary.find(text)) {
      ids.push_back(*id);
      return;
    }
  if (fallback && fallback->append(text, ids))
    return;
  if (rules.unknown < 0)
    throw Error(StatusInput, "the tokenizer has no token for " + shortly(std::string(text)) +
                                 " and none for what is unknown");
  ids.push_back(rules.unknown);
}

template <typename Score>
void Unigram<Score>::encodeWord(std::string_view piece, std::vector<int32_t> &ids) const {
  std::vector<Cut> cuts(piece.size() + 1);
  const Score unknownScore = least - static_cast<Score>(kUnknownPenalty);
  for (size_t at = 0; at < piece.size();) {
    size_t length = lengthOf(piece[at]);
    Score here = cuts[at].score;
    bool hasOne = false;
    auto offer = [&](size_t bytes, int32_t id, Score score) {
      Cut &cut = cuts[at + bytes];
      Score candidate = score + here;
      if (cut.begin == SIZE_MAX || candidate > cut.score)
        cut = {at, id, candidate};
    };
    tree.prefixes(piece.substr(at), [&](size_t bytes, int32_t id) {
      offer(bytes, id, scoreOf(id, bytes));
      hasOne |= bytes == length;
    });
    if (!hasOne)
      offer(length, rules.unknown, unknownScore);
    at += length;
  }
  struct Part {
    size_t begin, end;
    int32_t id;
  };
  std::vector<Part> parts;
  for (size_t end = piece.size(); end > 0; end = cuts[end].begin)
    parts.push_back({cuts[end].begin, end, cuts[end].id});
  // Unknown neighbours are one text.
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].id != rules.unknown) {
      ids.push_back(parts[i].id);
      continue;
    }
    size_t begin = parts[i].begin;
    while (i > 0 && parts[i - 1].id == rules.unknown)
      --i;
    appendUnknown(piece.substr(begin, parts[i].end - begin), ids);
  }
}

std::unique_ptr<Model> text::makeUnigram(Vocabulary vocabulary, UnigramRules rules,
                                         const std::string &where) {
  if (rules.isSentencePiece)
    return std::make_unique<Unigram<float>>(std::move(vocabulary), std::move(rules), where);
  return std::make_unique<Unigram<double>>(std::move(vocabulary), std::move(rules), where);
}

std::unique_ptr<Model> text::makeUnigram(Fields &fields) {
  const Json *list = fields.find("vocab");
  if (!list || !list->is_array())
    fields.fail("vocab got " + (list ? shortly(*list) : "nothing") +
                ", expected a list of tokens and scores");
  Vocabulary vocabulary;
  UnigramRules rules;
  for (const Json &entry : *list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number() ||
        !std::isfinite(entry[1].get<double>()))
      fields.fail("vocab: entry " + std::to_string(rules.scores.size()) + " got " + shortly(entry) +
                  ", expected a token and its score");
    vocabulary.add(entry[0].get<std::string>(), static_cast<int64_t>(rules.scores.size()), fields.where);
    rules.scores.push_back(entry[1].get<double>());
  }
  if (fields.find("unk_id")) {
    int64_t id = fields.integer("unk_id");
    if (id < 0 || id >= vocabulary.size())
      fields.fail("unk_id is " + std::to_string(id) + ", of " + std::to_string(vocabulary.size()) +
                  " tokens");
    rules.unknown = static_cast<int32_t>(id);
  }
  rules.byteFallback = fields.flag("byte_fallback", false);
  return makeUnigram(std::move(vocabulary), std::move(rules), fields.where);
}
