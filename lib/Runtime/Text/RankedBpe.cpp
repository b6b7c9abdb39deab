//===- RankedBpe.cpp - byte pair encoding by what results are worth -------===//

#include "Bpe.h"
#include "Utf8.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

RankedBpe::RankedBpe(Vocabulary given, Rules givenRules)
    : vocabulary(std::move(given)), rules(std::move(givenRules)) {
  if (!rules.fromBytes)
    words = WordCuts(vocabulary);
  if (rules.byteFallback)
    fallback = std::make_unique<ByteTokens>(*this);
  for (int byte = 0; byte < 256; ++byte)
    bytes[byte] = vocabulary.find(std::string(1, static_cast<char>(byte))).value_or(-1);
  auto number = [&](std::string_view text, bool isOne) -> int32_t {
    auto id = vocabulary.find(text);
    if (id && rules.isMerged[*id])
      return *id;
    if (!isOne)
      return -1;
    // A character may be no token and yet be merged into one.
    if (auto part = parts.find(text))
      return static_cast<int32_t>(vocabulary.size() + *part);
    parts.add(std::string(text), parts.size(), "characters");
    return static_cast<int32_t>(vocabulary.size() + parts.size() - 1);
  };
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string *token = vocabulary.textOf(id);
    if (!token || !rules.isMerged[id] || *vocabulary.find(*token) != id)
      continue;
    std::string_view text = *token;
    auto next = [&](size_t at) {
      return rules.fromBytes ? at + 1 : std::min(at + lengthOf(text[at]), text.size());
    };
    for (size_t middle = text.empty() ? 0 : next(0); middle && middle < text.size(); middle = next(middle)) {
      int32_t first = number(text.substr(0, middle), middle == next(0)),
              second = number(text.substr(middle), next(middle) == text.size());
      if (first >= 0 && second >= 0)
        pairs.add(first, second, rules.ranks[id], id);
    }
  }
}

int32_t RankedBpe::symbolOf(std::string_view text) const {
  if (rules.fromBytes)
    return bytes[static_cast<unsigned char>(text[0])];
  auto id = vocabulary.find(text);
  if (id && rules.isMerged[*id])
    return *id;
  auto part = parts.find(text);
  return part ? static_cast<int32_t>(vocabulary.size() + *part) : -1;
}

void RankedBpe::append(int32_t symbol, std::string_view text, bool &wasUnknown,
                       std::vector<int32_t> &ids) const {
  bool isKnown = symbol >= 0 && symbol < vocabulary.size();
  if (isKnown)
    ids.push_back(symbol);
  else if (fallback && fallback->append(text, ids))
    isKnown = true;
  else if (!wasUnknown)
    ids.push_back(rules.unknown);
  wasUnknown = !isKnown;
}

void RankedBpe::encodeWord(std::string_view piece, std::vector<int32_t> &ids) const {
  if (rules.fromBytes) {
    if (auto id = vocabulary.find(piece)) {
      ids.push_back(*id);
      return;
    }
    std::vector<int32_t> symbols(piece.size());
    for (size_t i = 0; i < piece.size(); ++i)
      symbols[i] = bytes[static_cast<unsigned char>(piece[i])];
    mergePairs(symbols, pairs);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    return;
  }
  // Between what stands as it is, characters are merged. Those that nothing is made of are numbered by
  // themselves: texts that are looked for again once they are put out.
  std::vector<int32_t> symbols;
  std::vector<std::string_view> strangers;
  bool wasUnknown = false;
  const auto firstStranger = static_cast<int32_t>(vocabulary.size() + parts.size());
  auto flush = [&] {
    mergePairs(symbols, pairs);
    for (int32_t symbol : symbols)
      if (symbol >= firstStranger)
        append(-1, strangers[symbol - firstStranger], wasUnknown, ids);
      else if (symbol >= vocabulary.size())
        append(symbol, *parts.textOf(static_cast<int32_t>(symbol - vocabulary.size())), wasUnknown, ids);
      else
        append(symbol, {}, wasUnknown, ids);
    symbols.clear();
    strangers.clear();
  };
  for (size_t at = 0; at < piece.size();) {
    int32_t whole;
    if (size_t length = rules.whole.longest(piece.substr(at), whole)) {
      flush();
      append(whole, {}, wasUnknown, ids);
      at += length;
      continue;
    }
    std::string_view character = piece.substr(at, lengthOf(piece[at]));
    int32_t symbol = symbolOf(character);
    if (symbol < 0) {
      symbol = firstStranger + static_cast<int32_t>(strangers.size());
      strangers.push_back(character);
    }
    symbols.push_back(symbol);
    at += character.size();
  }
  flush();
}

void RankedBpe::encode(std::string_view piece, std::vector<int32_t> &ids) const {
  words.forWords(piece, [&](std::string_view word) {
    cache.append(word, ids, [&](std::vector<int32_t> &out) { encodeWord(word, out); });
  });
}
