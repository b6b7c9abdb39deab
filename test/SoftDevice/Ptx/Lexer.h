//===- Lexer.h - words of PTX text ------------------------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_PTX_LEXER_H
#define DSOPT_TEST_SOFTDEVICE_PTX_LEXER_H

#include "Syntax.h"

namespace softdevice {

struct Token {
  enum class Kind { Word, Number, Text, Mark, Body, End };
  Kind kind = Kind::End;
  std::string_view text; ///< a mark is one character; a text is without its quotes, a body has its braces
  int line = 0;
};

/// Words ("ld.global.f32", "%r1", ".reg", "$L__BB0_1"), numbers, quoted texts and marks; comments are
/// skipped. Ends with an End. `line` is the first one's. With `hasBodies` what functions have in braces is
/// one word each.
std::vector<Token> tokenize(std::string_view text, int line, bool hasBodies);

/// The bits of a number: decimal or hexadecimal, 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX, a decimal fraction (a
/// double); its type is F32 or F64 for floats, else None.
std::pair<uint64_t, Type> readNumber(const Token &token);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_PTX_LEXER_H
