//===- Unicode.h - what characters are --------------------------*- C++ -*-===//
//
// utf8proc knows categories, cases and normal forms; what Unicode says of white
// space and what tokenizers call Chinese are lists. `tokenizers`, whose ids these
// are for, has tables of several versions of Unicode: each question is answered as
// it does.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_UNICODE_H
#define DSOPT_LIB_RUNTIME_TEXT_UNICODE_H

#include <string>
#include <string_view>

namespace dsopt::runtime::text {

enum class NormalForm { C, D, KC, KD };

/// `text` (UTF-8) in a normal form.
std::string normalize(std::string_view text, NormalForm form);
/// Each character in lower case by itself: a final sigma is no other one.
std::string toLower(std::string_view text);
std::string toUpper(std::string_view text);

bool isWhiteSpace(char32_t code);
bool isMark(char32_t code);           ///< Mn, Mc, Me
bool isNonspacingMark(char32_t code); ///< Mn
bool isPunctuation(char32_t code);    ///< P*, and what ASCII has for punctuation
bool isNumeric(char32_t code);        ///< Nd, Nl, No
bool isControl(char32_t code);        ///< C* but tabulator, line feed and carriage return
bool isWord(char32_t code);           ///< a letter, a mark, a digit, a connector
bool isChinese(char32_t code);        ///< an ideograph, as BERT has them

/// The end of the grapheme cluster that begins at `at`.
size_t graphemeEnd(std::string_view text, size_t at);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_UNICODE_H
