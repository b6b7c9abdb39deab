//===- Charsmap.h - SentencePiece's compiled normalization ------*- C++ -*-===//
//
// A size, a double array of the texts that are replaced, and their replacements,
// each with a zero behind it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_CHARSMAP_H
#define DSOPT_LIB_RUNTIME_TEXT_CHARSMAP_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime::text {

/// The bytes of Base64, with or without what fills it up; an Error of status 1 begins with `where`.
std::string decodeBase64(std::string_view text, const std::string &where);

class Charsmap {
public:
  Charsmap(std::string bytes, const std::string &where);
  bool empty() const { return units.empty(); }

  /// The longest text at the front that is replaced: its bytes (0: none) and its replacement.
  size_t longest(std::string_view text, std::string_view &replacement) const;

  /// As `tokenizers` does it: graphemes of fewer than 6 bytes by their shortest replaced prefix, as a whole;
  /// else their characters.
  void applyByGraphemes(std::string &text) const;

private:
  /// Calls `found(bytes, place of the replacement)` for each prefix, until it returns false.
  template <typename Found> void prefixes(std::string_view text, Found &&found) const;
  bool shortest(std::string_view text, std::string_view &replacement) const;

  std::string bytes;
  std::vector<uint32_t> units;
  std::string_view texts;
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_CHARSMAP_H
