//===- Regex.cpp - patterns of tokenizers ---------------------------------===//

#include "Regex.h"
#include "dsopt/Runtime/Error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

static std::string messageOfCode(int code) {
  unsigned char message[160];
  pcre2_get_error_message(code, message, sizeof message);
  return reinterpret_cast<char *>(message);
}

Regex::Regex(const std::string &pattern, RegexSyntax syntax) : source(pattern) {
  std::string translated = translatePattern(pattern, syntax);
  // Ruby's ^ and $ are a line's; Rust's $ is the end alone.
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  options |= syntax == RegexSyntax::Oniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
  auto *context = pcre2_compile_context_create(nullptr);
  if (!context)
    throw std::bad_alloc();
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error;
  PCRE2_SIZE offset;
  auto *compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options,
                                 &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!compiled)
    throw Error(StatusInput, "the pattern " + pattern + " does not compile: " + messageOfCode(error));
  code = compiled;
  isFast = pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() { pcre2_code_free(static_cast<pcre2_code *>(code)); }

Regex::Matcher::Matcher(const Regex &regex)
    : regex(regex),
      match(pcre2_match_data_create_from_pattern(static_cast<pcre2_code *>(regex.code), nullptr)) {
  if (!match)
    throw std::bad_alloc();
}

Regex::Matcher::~Matcher() { pcre2_match_data_free(static_cast<pcre2_match_data *>(match)); }

bool Regex::Matcher::find(std::string_view text, size_t from, size_t &begin, size_t &end) {
  auto *compiled = static_cast<pcre2_code *>(regex.code);
  auto *found = static_cast<pcre2_match_data *>(match);
  auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int count = PCRE2_ERROR_JIT_STACKLIMIT;
  if (regex.isFast)
    count = pcre2_jit_match(compiled, subject, text.size(), from, 0, found, nullptr);
  // Machine code has little room to go back in.
  if (count == PCRE2_ERROR_JIT_STACKLIMIT)
    count =
        pcre2_match(compiled, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, found, nullptr);
  if (count == PCRE2_ERROR_NOMATCH)
    return false;
  if (count < 0)
    throw Error(StatusInput,
                "the pattern " + regex.source + " gives up on this text: " + messageOfCode(count));
  auto *ends = pcre2_get_ovector_pointer(found);
  begin = ends[0];
  end = ends[1];
  return true;
}
