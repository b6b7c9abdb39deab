//===- Regex.h - patterns of tokenizers -------------------------*- C++ -*-===//
//
// Tokenizers' patterns are written for other libraries than PCRE2. They are
// translated, so that classes hold the same characters and signs mean the same;
// what PCRE2 has no words for is an Error that names it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_REGEX_H
#define DSOPT_LIB_RUNTIME_TEXT_REGEX_H

#include <memory>
#include <string>
#include <string_view>

namespace dsopt::runtime::text {

/// What a pattern was written for: tokenizer.json's for Oniguruma (Ruby's syntax), tiktoken's for Rust's.
enum class RegexSyntax { Oniguruma, Rust };

/// What PCRE2 is given for `pattern`.
std::string translatePattern(std::string_view pattern, RegexSyntax syntax);

class Regex {
public:
  Regex(const std::string &pattern, RegexSyntax syntax);
  ~Regex();

  /// Searches in one text after the other, with one piece of memory for what is found.
  class Matcher {
  public:
    explicit Matcher(const Regex &regex);
    ~Matcher();
    Matcher(const Matcher &) = delete;
    /// The next match at or behind `from`; one of no characters too.
    bool find(std::string_view text, size_t from, size_t &begin, size_t &end);

  private:
    const Regex &regex;
    void *match;
  };

private:
  std::string source;
  void *code = nullptr;
  bool isFast = false; ///< compiled to machine code
};

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_REGEX_H
