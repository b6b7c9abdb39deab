//===- RegexSyntax.cpp - patterns in PCRE2's words ------------------------===//
//
// The three libraries differ in what \s, \w, \d and \p{..} hold (also by their
// versions of Unicode), in possessive intervals, in flags and in how classes nest.
//
//===----------------------------------------------------------------------===//

#include "Regex.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
struct NewRange {
  char32_t first, last;
  const char *category;
};

class Translation {
public:
  Translation(std::string_view pattern, RegexSyntax syntax) : pattern(pattern), syntax(syntax) {}
  std::string run();

private:
  [[noreturn]] void refuse(const std::string &what) const {
    throw Error(StatusInput, "the pattern " + std::string(pattern) + " has " + what + " at byte " +
                                 std::to_string(at) + ", which is not supported");
  }
  char peek(size_t ahead = 0) const { return at + ahead < pattern.size() ? pattern[at + ahead] : '\0'; }
  std::string escape(bool inClass);
  std::string code();
  std::string property(bool negated, bool inClass);
  std::string characterClass();
  void group();
  bool interval();
  std::string wordClass() const;

  std::string_view pattern;
  RegexSyntax syntax;
  size_t at = 0;
  std::string out;
  size_t atom = 0;            ///< where the last atom begins in `out`
  std::vector<size_t> opened; ///< where groups begin in `out`
};
} // namespace

static const NewRange kNewRanges[] = {
#define DSOPT_NEW(first, last, category) {first, last, #category},
#include "NewCharacters.def"
};

static std::string hex(char32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, "\\x{%x}", static_cast<unsigned>(code));
  return text;
}

/// New characters of categories that begin with one of `categories`, for a class.
static std::string newOf(const std::vector<std::string> &categories) {
  std::string ranges;
  char32_t first = 0, last = 0;
  auto flush = [&] {
    if (last)
      ranges += first == last ? hex(first) : hex(first) + "-" + hex(last);
  };
  for (const NewRange &range : kNewRanges) {
    auto isIn = [&](const std::string &name) { return std::string(range.category).rfind(name, 0) == 0; };
    if (std::none_of(categories.begin(), categories.end(), isIn))
      continue;
    if (last && range.first == last + 1) {
      last = range.last;
      continue;
    }
    flush();
    first = range.first;
    last = range.last;
  }
  flush();
  return ranges;
}

/// White space as Unicode has it; PCRE2's own has U+180E too.
static constexpr const char *kSpace =
    "\\x09-\\x0d \\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

std::string Translation::wordClass() const {
  std::string text = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}" + newOf({"L", "M", "Nl", "Nd", "Pc"});
  return text + (syntax == RegexSyntax::Oniguruma ? "\\xb2\\xb3\\xb9\\xbc-\\xbe" : "\\x{200c}\\x{200d}");
}

static std::string wrap(const std::string &members, bool negated, bool inClass) {
  return inClass ? members : (negated ? "[^" : "[") + members + "]";
}

/// Behind \p or \P.
std::string Translation::property(bool negated, bool inClass) {
  std::string name;
  if (peek() == '{') {
    size_t end = pattern.find('}', at);
    if (end == std::string_view::npos)
      refuse("a property without its brace");
    name = pattern.substr(at + 1, end - at - 1);
    at = end + 1;
  } else {
    name = std::string(1, peek());
    ++at;
  }
  if (!name.empty() && name[0] == '^') {
    negated = !negated;
    name.erase(0, 1);
  }
  static const std::map<std::string, std::string> longNames = {{"Letter", "L"},
                                                               {"Uppercase_Letter", "Lu"},
                                                               {"Lowercase_Letter", "Ll"},
                                                               {"Titlecase_Letter", "Lt"},
                                                               {"Modifier_Letter", "Lm"},
                                                               {"Other_Letter", "Lo"},
                                                               {"Mark", "M"},
                                                               {"Nonspacing_Mark", "Mn"},
                                                               {"Number", "N"},
                                                               {"Decimal_Number", "Nd"},
                                                               {"Punctuation", "P"},
                                                               {"Symbol", "S"},
                                                               {"Separator", "Z"},
                                                               {"Space_Separator", "Zs"},
                                                               {"Other", "C"},
                                                               {"Control", "Cc"},
                                                               {"Format", "Cf"}};
  if (auto known = longNames.find(name); known != longNames.end())
    name = known->second;
  static const std::string categories =
      " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co ";
  static const std::string scripts = " Han Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Hebrew Thai "
                                     "Devanagari Bengali Tamil Telugu Khmer Lao Myanmar Tibetan Armenian "
                                     "Georgian Ethiopic Bopomofo Common ";
  if (scripts.find(" " + name + " ") != std::string::npos)
    return std::string(negated ? "\\P{" : "\\p{") + name + "}";
  if (categories.find(" " + name + " ") == std::string::npos)
    refuse("the property " + name);
  std::string added = newOf({name});
  if (!negated)
    return wrap("\\p{" + name + "}" + added, false, inClass);
  if (!inClass)
    return wrap("\\p{" + name + "}" + added, true, false);
  // All other categories: a class cannot take characters out again. What no version has is in none.
  std::string others = "\\p{Cn}\\p{Cs}";
  for (const char *other :
       {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
        "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"})
    if (std::string(other).rfind(name, 0) != 0)
      others += std::string("\\p{") + other + "}";
  if (!added.empty())
    refuse("\\P{" + name + "} in a class");
  return others;
}

/// Behind \x, \u: a code point.
std::string Translation::code() {
  std::string digits;
  if (peek() == '{') {
    size_t end = pattern.find('}', at);
    if (end == std::string_view::npos)
      refuse("a code point without its brace");
    digits = pattern.substr(at + 1, end - at - 1);
    at = end + 1;
  } else {
    size_t count = pattern[at - 1] == 'u' ? 4 : 2;
    digits = pattern.substr(at, count);
    at += digits.size();
  }
  if (digits.empty() || digits.size() > 6 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos)
    refuse("a code point that is no number");
  return "\\x{" + digits + "}";
}

/// At a backslash.
std::string Translation::escape(bool inClass) {
  ++at;
  if (at == pattern.size())
    refuse("a backslash as its last character");
  char c = pattern[at++];
  switch (c) {
  case 'p':
  case 'P':
    return property(c == 'P', inClass);
  case 's':
    return wrap(kSpace, false, inClass);
  case 'S':
    return inClass ? "\\S\\x{180e}" : wrap(kSpace, true, false);
  case 'd':
  case 'D':
    if (c == 'D' && inClass)
      refuse("\\D in a class");
    return wrap("\\p{Nd}" + newOf({"Nd"}), c == 'D', inClass);
  case 'w':
  case 'W':
    if (c == 'W' && inClass)
      refuse("\\W in a class");
    return wrap(wordClass(), c == 'W', inClass);
  case 'b':
  case 'B': {
    if (inClass)
      refuse("\\b in a class");
    std::string word = "[" + wordClass() + "]";
    return c == 'b' ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                    : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
  }
  case 'v':
    return "\\x0b";
  case 'x':
  case 'u':
    return code();
  case 'n':
  case 'r':
  case 't':
  case 'f':
  case 'a':
  case 'e':
  case 'A':
  case 'z':
    return std::string("\\") + c;
  case 'Z':
    if (syntax == RegexSyntax::Oniguruma && !inClass)
      return "\\Z";
    break;
  default:
    if (c >= '1' && c <= '9' && !inClass && syntax == RegexSyntax::Oniguruma)
      return std::string("\\") + c;
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c)))
      return std::string("\\") + c;
    if (static_cast<unsigned char>(c) >= 0x80) // the character itself
      return std::string(1, c);
  }
  --at;
  refuse(std::string("\\") + c);
}

/// At an opening bracket.
std::string Translation::characterClass() {
  std::string text = "[";
  ++at;
  if (peek() == '^') {
    text += '^';
    ++at;
  }
  for (bool isFirst = true;; isFirst = false) {
    if (at == pattern.size())
      refuse("a class without its bracket");
    char c = peek();
    if (c == ']' && !isFirst)
      break;
    if (c == '[')
      refuse(peek(1) == ':' ? "a POSIX class" : "a class in a class");
    if ((c == '&' || (syntax == RegexSyntax::Rust && (c == '-' || c == '~'))) && peek(1) == c)
      refuse(std::string("the operator ") + c + c + " in a class");
    if (c == '\\') {
      text += escape(true);
      continue;
    }
    text += c;
    ++at;
  }
  ++at;
  return text + "]";
}

/// At an opening parenthesis.
void Translation::group() {
  opened.push_back(out.size());
  ++at;
  out += '(';
  if (peek() != '?')
    return;
  out += '?';
  ++at;
  for (const char *kind : {":", "=", "!", "<=", "<!", ">"})
    if (pattern.substr(at, std::strlen(kind)) == kind) {
      out += kind;
      at += std::strlen(kind);
      return;
    }
  if (peek() == '<' || (peek() == 'P' && peek(1) == '<')) {
    size_t end = pattern.find('>', at);
    if (end == std::string_view::npos)
      refuse("a group's name without its end");
    out += pattern.substr(at, end + 1 - at);
    at = end + 1;
    return;
  }
  // Ruby's m is what others call s.
  const char *flags = syntax == RegexSyntax::Oniguruma ? "imx-" : "imsx-";
  for (; peek() != ':' && peek() != ')'; ++at) {
    if (!peek() || !std::strchr(flags, peek()))
      refuse(std::string("(?") + (peek() ? std::string(1, peek()) : "") + "");
    out += syntax == RegexSyntax::Oniguruma && peek() == 'm' ? 's' : peek();
  }
  out += peek();
  if (peek() == ')')
    opened.pop_back();
  ++at;
}

/// At a brace: an interval, and what Ruby means by signs behind it.
bool Translation::interval() {
  size_t end = pattern.find('}', at);
  if (end == std::string_view::npos)
    return false;
  std::string inside(pattern.substr(at + 1, end - at - 1));
  size_t comma = inside.find(',');
  if (inside.empty() || inside == "," || inside.find_first_not_of("0123456789,") != inside.npos ||
      (comma != inside.npos && inside.find(',', comma + 1) != inside.npos))
    return false;
  if (comma == 0) {
    if (syntax == RegexSyntax::Rust)
      refuse("an interval without its lower end");
    inside = "0" + inside;
  }
  at = end + 1;
  out += "{" + inside + "}";
  bool again = peek() == '+' || (peek() == '?' && comma == inside.npos);
  if (syntax == RegexSyntax::Oniguruma && again) {
    out.insert(atom, "(?:");
    out += ')';
  }
  return true;
}

std::string Translation::run() {
  while (at < pattern.size()) {
    char c = pattern[at];
    if (c == '(') {
      group();
    } else if (c == '{' && interval()) {
      continue;
    } else if (c == ')') {
      if (!opened.empty()) {
        atom = opened.back();
        opened.pop_back();
      }
      out += c;
      ++at;
    } else if (c == '\\' || c == '[') {
      std::string text = c == '[' ? characterClass() : escape(false);
      atom = out.size();
      out += text;
      // A character of several bytes behind a backslash.
      while (at < pattern.size() && (static_cast<unsigned char>(pattern[at]) & 0xC0) == 0x80)
        out += pattern[at++];
    } else if (std::strchr("*+?|", c)) {
      out += c;
      ++at;
    } else {
      atom = out.size();
      size_t length = std::min(lengthOf(c), pattern.size() - at);
      out += pattern.substr(at, length);
      at += length;
    }
  }
  return out;
}

std::string text::translatePattern(std::string_view pattern, RegexSyntax syntax) {
  checkUtf8(pattern, "a pattern");
  return Translation(pattern, syntax).run();
}
