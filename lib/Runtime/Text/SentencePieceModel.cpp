//===- SentencePieceModel.cpp - SentencePiece's .model --------------------===//
//
// sentencepiece_model.proto: pieces (1), trainer_spec (2), normalizer_spec (3),
// denormalizer_spec (5).
//
//===----------------------------------------------------------------------===//

#include "Charsmap.h"
#include "Parts.h"
#include "ProtoReader.h"
#include "Unigram.h"
#include "Utf8.h"

#include <cmath>
#include <cstdio>

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

static constexpr std::string_view kSpace = "\xE2\x96\x81";

namespace {
enum PieceKind { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

/// What the file says, with SentencePiece's defaults.
struct Spec {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<int> kinds;
  int64_t modelType = 1;
  bool byteFallback = false, spaceIsSuffix = false;
  std::string unknownSurface = " \xE2\x81\x87 ";
  std::string charsmap;
  bool dummyPrefix = true, removesSpaces = true, escapesSpaces = true;
  int64_t beginId = 1, endId = 2, padId = -1;
};

class SentencePieceNormalizer : public Normalizer {
public:
  SentencePieceNormalizer(const Spec &spec, const std::string &where)
      : map(spec.charsmap, where), dummyPrefix(spec.dummyPrefix), removesSpaces(spec.removesSpaces),
        spaceIsSuffix(spec.spaceIsSuffix), space(spec.escapesSpaces ? kSpace : " ") {
    for (size_t id = 0; id < spec.texts.size(); ++id)
      if (spec.kinds[id] == UserDefined)
        whole.add(spec.texts[id], static_cast<int32_t>(id));
  }
  void apply(std::string &text) const override;

private:
  /// How many bytes at the front become `out`.
  size_t front(std::string_view text, std::string_view &out) const;

  Charsmap map;
  TokenTree whole;
  bool dummyPrefix, removesSpaces, spaceIsSuffix;
  std::string space;
};

class SentencePieceDecoder : public Decoder {
public:
  SentencePieceDecoder(const Spec &spec)
      : strips(spec.dummyPrefix || spec.removesSpaces), stripsAll(spec.removesSpaces),
        surface(spec.unknownSurface) {
    for (size_t id = 0; id < spec.texts.size(); ++id)
      if (spec.kinds[id] == Unknown)
        unknown = spec.texts[id];
    byteFallback = spec.byteFallback;
  }
  void apply(std::vector<std::string> &tokens) const override;

private:
  bool strips, stripsAll, byteFallback;
  std::string unknown, surface;
};
} // namespace

size_t SentencePieceNormalizer::front(std::string_view text, std::string_view &out) const {
  int32_t id;
  if (size_t length = whole.longest(text, id)) {
    out = text.substr(0, length);
    return length;
  }
  if (size_t length = map.longest(text, out))
    return length;
  out = text.substr(0, lengthOf(text[0]));
  return out.size();
}

void SentencePieceNormalizer::apply(std::string &text) const {
  std::string_view rest = text, out;
  while (removesSpaces && !rest.empty()) {
    size_t length = front(rest, out);
    if (out != " ")
      break;
    rest.remove_prefix(length);
  }
  std::string result;
  result.reserve(rest.size() + rest.size() / 2);
  if (rest.empty()) {
    text.clear();
    return;
  }
  if (dummyPrefix && !spaceIsSuffix)
    result += space;
  bool wasSpace = removesSpaces;
  while (!rest.empty()) {
    size_t length = front(rest, out);
    while (wasSpace && !out.empty() && out[0] == ' ')
      out.remove_prefix(1);
    if (!out.empty()) {
      for (char c : out)
        if (c == ' ')
          result += space;
        else
          result += c;
      wasSpace = out.back() == ' ';
    }
    rest.remove_prefix(length);
    wasSpace &= removesSpaces;
  }
  while (removesSpaces && result.size() >= space.size() &&
         result.compare(result.size() - space.size(), space.size(), space) == 0)
    result.resize(result.size() - space.size());
  if (dummyPrefix && spaceIsSuffix)
    result += space;
  text = std::move(result);
}

void SentencePieceDecoder::apply(std::vector<std::string> &tokens) const {
  bool hasText = false;
  for (std::string &token : tokens) {
    unsigned byte;
    char end;
    if (token == unknown) {
      token = surface;
    } else if (byteFallback && token.size() == 6 &&
               std::sscanf(token.c_str(), "<0x%02X%c", &byte, &end) == 2 && end == '>') {
      token = std::string(1, static_cast<char>(byte));
    } else {
      bool hasSpace = token.compare(0, kSpace.size(), kSpace) == 0;
      if (!hasText && strips && hasSpace) {
        token.erase(0, kSpace.size());
        hasText = !stripsAll;
      }
      replaceAll(token, {std::string(kSpace), nullptr}, " ");
    }
    hasText |= !token.empty();
  }
}

static void readPiece(std::string_view bytes, const std::string &where, Spec &spec) {
  ProtoReader reader(bytes, where);
  std::string text;
  float score = 0;
  int kind = Normal;
  while (reader.next())
    if (reader.field == 1)
      text = reader.inside;
    else if (reader.field == 2)
      score = reader.real();
    else if (reader.field == 3)
      kind = static_cast<int>(reader.number);
  std::string name = "piece " + std::to_string(spec.texts.size());
  if (kind < Normal || kind > Byte)
    throw Error(StatusInput, where + ": " + name + " is of the kind " + std::to_string(kind));
  if (!std::isfinite(score))
    throw Error(StatusInput, where + ": " + name + " has no finite score");
  checkUtf8(text, where + ": " + name);
  spec.texts.push_back(std::move(text));
  spec.scores.push_back(score);
  spec.kinds.push_back(kind);
}

static void readTrainer(std::string_view bytes, const std::string &where, Spec &spec) {
  ProtoReader reader(bytes, where);
  while (reader.next())
    switch (reader.field) {
    case 3:
      spec.modelType = static_cast<int64_t>(reader.number);
      break;
    case 24:
      spec.spaceIsSuffix = reader.number;
      break;
    case 35:
      spec.byteFallback = reader.number;
      break;
    case 41:
      spec.beginId = static_cast<int32_t>(reader.number);
      break;
    case 42:
      spec.endId = static_cast<int32_t>(reader.number);
      break;
    case 43:
      spec.padId = static_cast<int32_t>(reader.number);
      break;
    case 44:
      spec.unknownSurface = reader.inside;
      break;
    }
}

static void readNormalizer(std::string_view bytes, const std::string &where, Spec &spec) {
  ProtoReader reader(bytes, where);
  while (reader.next())
    switch (reader.field) {
    case 2:
      spec.charsmap = reader.inside;
      break;
    case 3:
      spec.dummyPrefix = reader.number;
      break;
    case 4:
      spec.removesSpaces = reader.number;
      break;
    case 5:
      spec.escapesSpaces = reader.number;
      break;
    }
}

static Spec readSpec(std::string_view bytes, const std::string &where) {
  Spec spec;
  ProtoReader reader(bytes, where);
  while (reader.next())
    if (reader.field == 1)
      readPiece(reader.inside, where, spec);
    else if (reader.field == 2)
      readTrainer(reader.inside, where, spec);
    else if (reader.field == 3)
      readNormalizer(reader.inside, where, spec);
    else if (reader.field == 5) {
      ProtoReader inside(reader.inside, where);
      while (inside.next())
        if (inside.field == 2 && !inside.inside.empty())
          throw Error(StatusInput,
                      where +
                          ": it changes texts that are decoded (denormalizer_spec), which is not supported");
    }
  if (spec.texts.empty())
    throw Error(StatusInput, where + ": has no pieces");
  return spec;
}

/// Equal scores have equal ranks, the best 0.
static std::vector<uint32_t> ranksOf(const std::vector<float> &scores) {
  std::vector<float> order(scores);
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<uint32_t> ranks;
  for (float score : scores)
    ranks.push_back(static_cast<uint32_t>(
        std::lower_bound(order.begin(), order.end(), score, std::greater<>()) - order.begin()));
  return ranks;
}

static std::unique_ptr<Model> makeModelOf(const Spec &spec, Vocabulary vocabulary, int32_t unknown,
                                          const std::string &where) {
  auto count = static_cast<int32_t>(spec.texts.size());
  if (spec.modelType == 1) {
    UnigramRules rules;
    rules.scores.assign(spec.scores.begin(), spec.scores.end());
    for (int kind : spec.kinds) {
      rules.isUsed.push_back(kind == Normal || kind == UserDefined);
      rules.isWhole.push_back(kind == UserDefined);
    }
    rules.unknown = unknown;
    rules.byteFallback = spec.byteFallback;
    rules.isSentencePiece = true;
    return makeUnigram(std::move(vocabulary), std::move(rules), where);
  }
  RankedBpe::Rules rules;
  rules.ranks = ranksOf(spec.scores);
  for (int32_t id = 0; id < count; ++id) {
    if (spec.kinds[id] == Unused)
      throw Error(StatusInput, where + ": piece " + std::to_string(id) +
                                   " is not used, which is not supported for byte pair encoding");
    rules.isMerged.push_back(spec.kinds[id] == Normal || spec.kinds[id] == UserDefined);
    if (spec.kinds[id] == UserDefined)
      rules.whole.add(spec.texts[id], id);
  }
  rules.unknown = unknown;
  rules.byteFallback = spec.byteFallback;
  return std::make_unique<RankedBpe>(std::move(vocabulary), std::move(rules));
}

TokenizerParts text::readSentencePiece(std::string_view bytes, const std::string &where) {
  Spec spec = readSpec(bytes, where);
  if (spec.modelType != 1 && spec.modelType != 2) {
    const char *name = spec.modelType == 3 ? "word" : spec.modelType == 4 ? "char" : "another";
    throw Error(StatusInput, where + ": the model type " + name + " (" + std::to_string(spec.modelType) +
                                 ") is not supported, unigram and bpe are");
  }
  TokenizerParts parts;
  Vocabulary vocabulary;
  int32_t unknown = -1;
  auto count = static_cast<int32_t>(spec.texts.size());
  for (int32_t id = 0; id < count; ++id) {
    vocabulary.add(spec.texts[id], id, where);
    if (spec.kinds[id] == Unknown)
      unknown = id;
    if (spec.kinds[id] == Control && !spec.texts[id].empty()) {
      AddedToken token;
      token.content = spec.texts[id];
      token.id = id;
      token.special = true;
      parts.added.add(std::move(token));
    }
  }
  if (unknown < 0)
    throw Error(StatusInput, where + ": has no piece for what is unknown");
  parts.model = makeModelOf(spec, std::move(vocabulary), unknown, where);
  parts.normalizer = std::make_unique<SentencePieceNormalizer>(spec, where);
  parts.decoder = std::make_unique<SentencePieceDecoder>(spec);
  auto name = [&](const char *role, int64_t id) {
    if (id >= 0 && id < count && spec.kinds[id] == Control)
      parts.named[role] = spec.texts[id];
  };
  name("bos_token", spec.beginId);
  name("eos_token", spec.endId);
  name("pad_token", spec.padId);
  parts.named["unk_token"] = spec.texts[unknown];
  return parts;
}
