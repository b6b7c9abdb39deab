//===- Unicode.cpp - what characters are ----------------------------------===//

#include "Unicode.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utf8proc.h>

using namespace dsopt::runtime;

namespace {
struct NewRange {
  char32_t first, last;
  utf8proc_category_t category;
};
} // namespace

/// A category by its two letters.
static constexpr utf8proc_category_t categoryOf(const char (&name)[3]) {
  constexpr char names[] = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";
  for (int i = 0; names[2 * i]; ++i)
    if (names[2 * i] == name[0] && names[2 * i + 1] == name[1])
      return static_cast<utf8proc_category_t>(i);
  return UTF8PROC_CATEGORY_CN;
}

static const NewRange kNewRanges[] = {
#define DSOPT_NEW(first, last, name) {first, last, categoryOf(#name)},
#include "NewCharacters.def"
};

/// The category of Unicode 16.
static utf8proc_category_t categoryOf(char32_t code) {
  auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  if (category != UTF8PROC_CATEGORY_CN)
    return category;
  auto *range = std::upper_bound(std::begin(kNewRanges), std::end(kNewRanges), code,
                                 [](char32_t code, const NewRange &range) { return code < range.first; });
  return range != std::begin(kNewRanges) && code <= range[-1].last ? range[-1].category : category;
}

namespace {
struct LaterRange {
  char32_t first, last;
  int version;
};
} // namespace

static constexpr LaterRange kLaterRanges[] = {
#define DSOPT_LATER(first, last, version) {first, last, version},
#include "LaterCharacters.def"
};

static bool isNew(char32_t code) {
  auto *range = std::upper_bound(std::begin(kNewRanges), std::end(kNewRanges), code,
                                 [](char32_t code, const NewRange &range) { return code < range.first; });
  return range != std::begin(kNewRanges) && code <= range[-1].last;
}

/// Whether a character has come after a version of Unicode, of those that it matters for.
static bool isLater(char32_t code, int version) {
  if (code < kLaterRanges[0].first)
    return false;
  auto *range = std::upper_bound(std::begin(kLaterRanges), std::end(kLaterRanges), code,
                                 [](char32_t code, const LaterRange &range) { return code < range.first; });
  if (range != std::begin(kLaterRanges) && code <= range[-1].last)
    return range[-1].version >= version;
  return isNew(code);
}

static bool isAscii(std::string_view text) {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80)
      return false;
  return true;
}

static void appendNormalized(std::string_view text, int options, std::string &out) {
  if (isAscii(text)) {
    out += text;
    return;
  }
  utf8proc_uint8_t *mapped = nullptr;
  auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                           static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                           static_cast<utf8proc_option_t>(options));
  if (size == UTF8PROC_ERROR_NOMEM)
    throw std::bad_alloc();
  if (size < 0)
    throw Error(StatusInput, std::string("normalization: ") + utf8proc_errmsg(size));
  out.append(reinterpret_cast<char *>(mapped), size);
  std::free(mapped);
}

std::string text::normalize(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::C || form == NormalForm::KC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::KC || form == NormalForm::KD)
    options |= UTF8PROC_COMPAT;
  // Later characters stay, and nothing combines across them.
  std::string result;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t here = at;
    if (!isLater(nextCharacter(text, at), 9))
      continue;
    appendNormalized(text.substr(begin, here - begin), options, result);
    result += text.substr(here, at - here);
    begin = at;
  }
  appendNormalized(text.substr(begin), options, result);
  return result;
}

/// Small letters that have come since utf8proc's version: Unicode 16 and 17.
static char32_t newLower(char32_t code) {
  if (code >= 0x10D50 && code <= 0x10D65)
    return code + 32;
  if (code >= 0x16EA0 && code <= 0x16EB8)
    return code + 27;
  if (code == 0xA7CB)
    return 0x264;
  if (code == 0xA7DC)
    return 0x19B;
  bool isBeforeIts = code == 0x1C89 || code == 0xA7CC || code == 0xA7CE || code == 0xA7D2 || code == 0xA7D4 ||
                     code == 0xA7DA;
  return isBeforeIts ? code + 1 : code;
}

std::string text::toLower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      char c = text[at++];
      result += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      continue;
    }
    char32_t code = nextCharacter(text, at);
    if (code == 0x130)
      result += "i\xCC\x87"; // the only one that becomes two
    else
      append(result, newLower(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
  return result;
}

std::string text::toUpper(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    char32_t code = nextCharacter(text, at);
    if (code == 0xDF)
      result += "SS";
    else
      append(result, utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
  }
  return result;
}

bool text::isWhiteSpace(char32_t code) {
  return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

bool text::isMark(char32_t code) {
  auto category = categoryOf(code);
  bool is = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
            category == UTF8PROC_CATEGORY_ME;
  return code == 0x1CF2 || code == 0x1CF3 || (is && !isLater(code, 9)); // these two were until Unicode 12
}

bool text::isNonspacingMark(char32_t code) {
  return code == 0x1734 ||
         (categoryOf(code) == UTF8PROC_CATEGORY_MN && !isLater(code, 8)); // it was until Unicode 14
}

bool text::isPunctuation(char32_t code) {
  if (code < 0x80)
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
           (code >= 123 && code <= 126);
  auto category = categoryOf(code);
  bool is = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  return code == 0x166D || code == 0x111C9 || (is && !isLater(code, 8)); // these two were in Unicode 8
}

bool text::isNumeric(char32_t code) {
  auto category = categoryOf(code);
  bool isOf17 = (code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6);
  return isOf17 || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool text::isControl(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r')
    return false;
  auto category = categoryOf(code);
  bool is = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
            category == UTF8PROC_CATEGORY_CO;
  return is && !isLater(code, 8);
}

bool text::isWord(char32_t code) {
  auto category = categoryOf(code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND) ||
         category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC || code == 0x200C ||
         code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

bool text::isChinese(char32_t code) {
  static constexpr char32_t ranges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                           {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                           {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (auto [first, last] : ranges)
    if (code >= first && code <= last)
      return true;
  return false;
}

size_t text::graphemeEnd(std::string_view text, size_t at) {
  utf8proc_int32_t state = 0;
  auto previous = static_cast<utf8proc_int32_t>(nextCharacter(text, at));
  while (at < text.size()) {
    size_t next = at;
    auto code = static_cast<utf8proc_int32_t>(nextCharacter(text, next));
    if (utf8proc_grapheme_break_stateful(previous, code, &state))
      break;
    previous = code;
    at = next;
  }
  return at;
}
