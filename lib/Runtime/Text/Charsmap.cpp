//===- Charsmap.cpp - SentencePiece's compiled normalization --------------===//

#include "Charsmap.h"
#include "Unicode.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <cstring>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

std::string text::decodeBase64(std::string_view text, const std::string &where) {
  auto valueOf = [](char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
  };
  while (!text.empty() && text.back() == '=')
    text.remove_suffix(1);
  std::string result;
  result.reserve(text.size() * 3 / 4 + 3);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = valueOf(c);
    if (value < 0)
      throw Error(StatusInput, where + ": got " + std::string(text.substr(0, 40)) + ", expected Base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      result += static_cast<char>(bits >> count & 0xFF);
    }
  }
  if (count == 6)
    throw Error(StatusInput, where + ": Base64 ends in the middle of a byte");
  return result;
}

Charsmap::Charsmap(std::string given, const std::string &where) : bytes(std::move(given)) {
  if (bytes.empty())
    return;
  uint32_t size = 0;
  if (bytes.size() >= 4)
    std::memcpy(&size, bytes.data(), 4);
  if (bytes.size() < 4 || size > bytes.size() - 4 || size % 4 || !size)
    throw Error(StatusInput, where + ": the character map of " + std::to_string(bytes.size()) +
                                 " bytes says that its tree has " + std::to_string(size));
  units.resize(size / 4);
  std::memcpy(units.data(), bytes.data() + 4, size);
  texts = std::string_view(bytes).substr(4 + size);
  if (texts.empty() || texts.back() != '\0')
    throw Error(StatusInput, where + ": the character map's last text has no end");
}

/// Fields of a unit of a Darts-clone double array.
static bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t labelOf(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
static uint32_t offsetOf(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

template <typename Found> void Charsmap::prefixes(std::string_view text, Found &&found) const {
  if (units.empty())
    return;
  uint32_t node = offsetOf(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if (!byte)
      return;
    node ^= byte;
    if (node >= units.size() || labelOf(units[node]) != byte)
      return;
    bool isEnd = hasLeaf(units[node]);
    node ^= offsetOf(units[node]);
    if (node >= units.size())
      return;
    if (isEnd && !found(i + 1, units[node] & ((1u << 31) - 1)))
      return;
  }
}

size_t Charsmap::longest(std::string_view text, std::string_view &replacement) const {
  size_t best = 0;
  uint32_t place = 0;
  prefixes(text, [&](size_t size, uint32_t at) {
    best = size;
    place = at;
    return true;
  });
  if (best && place >= texts.size())
    return 0;
  if (best)
    replacement = texts.data() + place;
  return best;
}

bool Charsmap::shortest(std::string_view text, std::string_view &replacement) const {
  bool is = false;
  prefixes(text, [&](size_t, uint32_t at) {
    is = at < texts.size();
    if (is)
      replacement = texts.data() + at;
    return false;
  });
  return is;
}

void Charsmap::applyByGraphemes(std::string &text) const {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t end = graphemeEnd(text, at);
    std::string_view grapheme = std::string_view(text).substr(at, end - at), replacement;
    if (grapheme.size() < 6 && shortest(grapheme, replacement)) {
      result += replacement;
      at = end;
      continue;
    }
    while (at < end) {
      size_t length = lengthOf(text[at]);
      std::string_view one = std::string_view(text).substr(at, length);
      result += shortest(one, replacement) ? replacement : one;
      at += length;
    }
  }
  text = std::move(result);
}
