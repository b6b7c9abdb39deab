//===- Utf8.h - characters of UTF-8 -----------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_UTF8_H
#define DSOPT_LIB_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <string>
#include <string_view>

namespace dsopt::runtime::text {

/// Bytes of the character that begins with `lead`, in text that is known to be UTF-8.
inline size_t lengthOf(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character at `at`, which moves behind it, in text that is known to be UTF-8.
inline char32_t nextCharacter(std::string_view text, size_t &at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  size_t length = lengthOf(text[at]);
  char32_t code = length == 1   ? byte(0)
                  : length == 2 ? (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu)
                  : length == 3 ? (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu)
                                : (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
                                      (byte(3) & 0x3Fu);
  at += length;
  return code;
}

void append(std::string &text, char32_t code);

/// How many bytes from the front are whole characters of UTF-8; `isCut` says that the rest may be the
/// beginning of one.
size_t validPrefix(std::string_view text, bool *isCut = nullptr);

/// An Error of status 1 that names the first byte of `text` that is no UTF-8.
void checkUtf8(std::string_view text, const std::string &what);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_UTF8_H
