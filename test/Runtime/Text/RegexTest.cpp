//===- RegexTest.cpp - patterns in PCRE2's words --------------------------===//

#include "Text/Regex.h"
#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// What a pattern finds in a text, one after the other.
static std::vector<std::string> found(const std::string &pattern, const std::string &text,
                                      RegexSyntax syntax = RegexSyntax::Oniguruma) {
  Regex regex(pattern, syntax);
  Regex::Matcher matcher(regex);
  std::vector<std::string> result;
  size_t begin, end;
  for (size_t from = 0; from <= text.size() && matcher.find(text, from, begin, end);
       from = std::max(end, from + 1))
    result.push_back(text.substr(begin, end - begin));
  return result;
}
using Texts = std::vector<std::string>;

TEST(Regex, ClassesHoldWhatOthersHaveInThem) {
  // PCRE2 takes U+180E for white space, and knows no character of Unicode 15 and 16.
  EXPECT_EQ(found(R"(\s)", "a\xE1\xA0\x8E\xC2\x85\xE3\x80\x80"), (Texts{"\xC2\x85", "\xE3\x80\x80"}));
  EXPECT_EQ(found(R"([\s])", "\xE1\xA0\x8E "), (Texts{" "}));
  EXPECT_EQ(found(R"([^\S\n]+)", "\xE1\xA0\x8E \n"), (Texts{" "}));
  EXPECT_EQ(found(R"(\S+)", "\xE1\xA0\x8E "), (Texts{"\xE1\xA0\x8E"}));
  const std::string letter = "\xF0\xB1\x8D\x90", digit = "\xF0\x90\xB5\x80"; // U+31350, U+10D40
  EXPECT_EQ(found(R"(\p{L}+)", letter + "a1"), (Texts{letter + "a"}));
  EXPECT_EQ(found(R"([^\p{L}\p{N}]+)", letter + digit + "!"), (Texts{"!"}));
  EXPECT_EQ(found(R"(\P{L})", letter + "!"), (Texts{"!"}));
  EXPECT_EQ(found(R"(\p{^L})", letter + "!"), (Texts{"!"}));
  EXPECT_EQ(found(R"(\p{N}|\d)", digit), (Texts{digit}));
  EXPECT_EQ(found(R"(\w+)", "a_\xC2\xB2"), (Texts{"a_\xC2\xB2"}));
  EXPECT_EQ(found(R"(\w+)", "a_\xC2\xB2", RegexSyntax::Rust), (Texts{"a_"}));
}

TEST(Regex, SignsMeanWhatTheyMeanThere) {
  EXPECT_EQ(found(R"(a{1,2}+b)", "aaaab"), (Texts{"aaaab"}));
  EXPECT_EQ(found(R"((?:xa){1,2}+b)", "xaxaxab"), (Texts{"xaxaxab"}));
  EXPECT_EQ(found(R"(a{1,2}+ab)", "aab", RegexSyntax::Rust), Texts());
  EXPECT_EQ(found(R"(a{,2}b)", "aab"), (Texts{"aab"}));
  EXPECT_EQ(found(R"(^b$)", "a\nb\nc"), (Texts{"b"}));
  EXPECT_EQ(found(R"(b$)", "b\n", RegexSyntax::Rust), Texts());
  EXPECT_EQ(found(R"((?m:a.b))", "a\nb"), (Texts{"a\nb"}));
  EXPECT_EQ(found(R"((?i:'s|'t))", "'S'\xC5\xBF"), (Texts{"'S", "'\xC5\xBF"}));
  EXPECT_EQ(found(R"(\u0041\x{42}\x43)", "ABC"), (Texts{"ABC"}));
  EXPECT_EQ(found(R"(a(?=b)|b(?!c))", "abbc"), (Texts{"a", "b"}));
  EXPECT_EQ(found(R"(\ba)", "aa a"), (Texts{"a", "a"}));
}

TEST(Regex, RefusesByName) {
  for (auto [pattern, message] :
       {std::pair(R"([a[b]])", "a class in a class"), std::pair(R"([[:alpha:]])", "a POSIX class"),
        std::pair(R"([a&&b])", "the operator && in a class"), std::pair(R"(\h)", "\\h"),
        std::pair(R"(\K)", "\\K"), std::pair(R"([\P{L}])", "\\P{L} in a class"),
        std::pair(R"(\p{Greek_Extended})", "the property Greek_Extended"), std::pair(R"((?~a))", "(?~"),
        std::pair(R"([a)", "a class without its bracket"),
        std::pair("a\\", "a backslash as its last character"),
        std::pair(R"(\x{zz})", "a code point that is no number"),
        std::pair(R"((a)", "missing closing parenthesis"), std::pair(R"(*a)", "quantifier")})
    try {
      Regex regex(pattern, RegexSyntax::Oniguruma);
      ADD_FAILURE() << pattern;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  EXPECT_THROW(found("(?:a+a+)+[0-9]", std::string(60, 'a')), Error);
}

TEST(Regex, GoesFarWithoutAStack) {
  EXPECT_EQ(found(R"((?:a|b)+c)", std::string(200000, 'a') + "c").size(), 1u);
}
