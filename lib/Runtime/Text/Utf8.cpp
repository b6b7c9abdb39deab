//===- Utf8.cpp - characters of UTF-8 -------------------------------------===//

#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <cstdio>
#include <cstring>

using namespace dsopt::runtime;

void text::append(std::string &text, char32_t code) {
  auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

size_t text::validPrefix(std::string_view text, bool *isCut) {
  if (isCut)
    *isCut = false;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word;
    if (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if (!(word & 0x8080808080808080u)) {
        at += sizeof word;
        continue;
      }
    }
    auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    if (lead < 0xC2 || lead > 0xF4)
      return at;
    // No overlong forms, no surrogates, nothing above U+10FFFF: they show in the second byte.
    unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    size_t length = lengthOf(text[at]);
    for (size_t i = 1; i < length; ++i) {
      if (at + i == text.size()) {
        if (isCut)
          *isCut = true;
        return at;
      }
      auto byte = static_cast<unsigned char>(text[at + i]);
      if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xBF))
        return at;
    }
    at += length;
  }
  return at;
}

void text::checkUtf8(std::string_view text, const std::string &what) {
  size_t valid = validPrefix(text);
  if (valid == text.size())
    return;
  char code[8];
  std::snprintf(code, sizeof code, "0x%02X", static_cast<unsigned char>(text[valid]));
  throw Error(StatusInput, what + ": byte " + std::to_string(valid) + " (" + code + ") is not UTF-8");
}
