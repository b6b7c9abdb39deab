//===- TemplateScan.cpp - templates in tokens -----------------------------===//

#include "TemplateSyntax.h"
#include "Unicode.h"
#include "Utf8.h"

#include <algorithm>
#include <cctype>
#include <cstring>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
class Scanner {
public:
  explicit Scanner(const std::string &source) : source(source) {}
  std::vector<TemplateToken> run();

private:
  using Kind = TemplateToken::Kind;
  /// In one tag: chains of operators are as deep as they are long.
  static constexpr size_t kMostTokens = 2000;
  bool at(const char *text, size_t ahead = 0) const {
    return source.compare(place + ahead, std::strlen(text), text) == 0;
  }
  [[noreturn]] void fail(const std::string &what) const {
    failTemplate("line " + std::to_string(line) + ": " + what);
  }
  void skip(size_t count) {
    line += static_cast<int>(
        std::count(source.begin() + place, source.begin() + std::min(place + count, source.size()), '\n'));
    place += count;
  }
  void add(Kind kind, std::string text = "") { tokens.push_back({kind, std::move(text), line}); }
  /// The text before a tag, stripped as the tag asks.
  void addText(size_t end, bool isOutput);
  /// Behind a tag's end.
  void endTag(bool strips, bool trims);
  void scanTag(bool isOutput);
  bool scanRaw();
  void scanString(char quote);
  void skipSpace() {
    while (place < source.size() && std::isspace(static_cast<unsigned char>(source[place])))
      skip(1);
  }

  std::string source;
  size_t place = 0;
  int line = 1;
  bool startsLine = true;
  std::vector<TemplateToken> tokens;
};
} // namespace

static bool isSpace(char c) { return std::isspace(static_cast<unsigned char>(c)); }

void Scanner::addText(size_t end, bool isOutput) {
  std::string text = source.substr(place, end - place);
  char sign = end + 2 < source.size() ? source[end + 2] : '\0';
  if (sign == '-') {
    while (!text.empty() && isSpace(text.back()))
      text.pop_back();
  } else if (sign != '+' && !isOutput && end < source.size()) {
    size_t begin = text.rfind('\n') + 1;
    bool isBlank = std::all_of(text.begin() + begin, text.end(), isSpace);
    if (isBlank && (begin > 0 || startsLine))
      text.resize(begin);
  }
  if (!text.empty())
    add(Kind::Text, text);
  skip(end - place);
}

void Scanner::endTag(bool strips, bool trims) {
  size_t begin = place;
  if (strips)
    skipSpace();
  else if (trims && place < source.size() && source[place] == '\n')
    skip(1);
  startsLine = place > begin && source[place - 1] == '\n';
}

void Scanner::scanString(char quote) {
  std::string text;
  skip(1);
  for (;; skip(1)) {
    if (place >= source.size())
      fail("a text without its end");
    char c = source[place];
    if (c == quote)
      break;
    if (c != '\\') {
      text += c;
      continue;
    }
    skip(1);
    c = place < source.size() ? source[place] : '\0';
    static const std::pair<char, char> shorts[] = {{'n', '\n'},  {'t', '\t'}, {'r', '\r'}, {'\\', '\\'},
                                                   {'\'', '\''}, {'"', '"'},  {'a', '\a'}, {'b', '\b'},
                                                   {'f', '\f'},  {'v', '\v'}};
    auto *known =
        std::find_if(std::begin(shorts), std::end(shorts), [&](auto &one) { return one.first == c; });
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (known != std::end(shorts)) {
      text += known->second;
    } else if (c == '\n') {
      continue;
    } else if (digits) {
      std::string code = source.substr(std::min(place + 1, source.size()), digits);
      if (code.size() != digits || code.find_first_not_of("0123456789abcdefABCDEF") != code.npos)
        fail("\\" + std::string(1, c) + code + " is no character");
      auto number = static_cast<char32_t>(std::stoul(code, nullptr, 16));
      if (number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
        fail("\\" + std::string(1, c) + code + " is no character");
      append(text, number);
      skip(digits);
    } else if (c >= '0' && c <= '7') {
      size_t count = 1;
      while (count < 3 && source[place + count] >= '0' && source[place + count] <= '7')
        ++count;
      append(text, static_cast<char32_t>(std::stoul(source.substr(place, count), nullptr, 8)));
      skip(count - 1);
    } else {
      text += '\\';
      text += c;
    }
  }
  skip(1);
  add(Kind::String, text);
}

void Scanner::scanTag(bool isOutput) {
  const char *end = isOutput ? "}}" : "%}";
  add(isOutput ? Kind::BeginOutput : Kind::BeginBlock);
  skip(2);
  if (at("-") || at("+"))
    skip(1);
  int depth = 0;
  for (size_t first = tokens.size();;) {
    skipSpace();
    if (tokens.size() - first > kMostTokens)
      fail("more than " + std::to_string(kMostTokens) + " words and signs in one tag");
    if (place >= source.size())
      fail(std::string("expected ") + end);
    bool strips = source[place] == '-' && at(end, 1), keeps = source[place] == '+' && at(end, 1);
    if (depth == 0 && (at(end) || strips || keeps)) {
      skip(strips || keeps ? 3 : 2);
      add(isOutput ? Kind::EndOutput : Kind::EndBlock);
      return endTag(strips, !isOutput && !keeps);
    }
    char c = source[place];
    if (c == '\'' || c == '"') {
      scanString(c);
      continue;
    }
    auto isName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    if (std::isdigit(static_cast<unsigned char>(c))) {
      size_t begin = place;
      bool isReal = false;
      for (; place < source.size(); skip(1)) {
        bool isPoint = source[place] == '.' && place + 1 < source.size() &&
                       std::isdigit(static_cast<unsigned char>(source[place + 1]));
        bool isPower = (source[place] == 'e' || source[place] == 'E') && place + 1 < source.size() &&
                       (std::isdigit(static_cast<unsigned char>(source[place + 1])) ||
                        source[place + 1] == '-' || source[place + 1] == '+');
        if (isPower)
          skip(1);
        else if (!isPoint && !std::isdigit(static_cast<unsigned char>(source[place])) && source[place] != '_')
          break;
        isReal |= isPoint || isPower;
      }
      std::string digits = source.substr(begin, place - begin);
      digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
      add(isReal ? Kind::Real : Kind::Integer, digits);
      continue;
    }
    if (isName(c)) {
      size_t begin = place;
      while (place < source.size() && isName(source[place]))
        ++place;
      add(Kind::Name, source.substr(begin, place - begin));
      continue;
    }
    const char *found = nullptr;
    for (const char *sign : {"==", "!=", "<=", ">=", "//", "**", "<", ">", "+", "-", "*", "/", "%",
                             "~",  "|",  ".",  ",",  ":",  "(",  ")", "[", "]", "{", "}", "="})
      if (!found && at(sign))
        found = sign;
    if (!found)
      fail(std::string("unexpected '") + c + "'");
    depth += std::strchr("([{", *found) && !found[1] ? 1 : std::strchr(")]}", *found) && !found[1] ? -1 : 0;
    add(Kind::Sign, found);
    skip(std::strlen(found));
  }
}

/// {% raw %}..{% endraw %}
bool Scanner::scanRaw() {
  auto tagAt = [&](size_t from, const char *word, bool &stripsBefore, bool &stripsBehind) -> size_t {
    if (source.compare(from, 2, "{%") != 0)
      return 0;
    size_t at = from + 2;
    stripsBefore = at < source.size() && source[at] == '-';
    if (at < source.size() && (source[at] == '-' || source[at] == '+'))
      ++at;
    while (at < source.size() && isSpace(source[at]))
      ++at;
    if (source.compare(at, std::strlen(word), word) != 0)
      return 0;
    at += std::strlen(word);
    while (at < source.size() && isSpace(source[at]))
      ++at;
    stripsBehind = at < source.size() && source[at] == '-';
    at += stripsBehind;
    return source.compare(at, 2, "%}") == 0 ? at + 2 : 0;
  };
  bool before, behind, endBefore, endBehind;
  size_t begin = tagAt(place, "raw", before, behind);
  if (!begin)
    return false;
  skip(begin - place);
  endTag(behind, true);
  for (size_t end = place; end < source.size(); ++end)
    if (size_t after = tagAt(end, "endraw", endBefore, endBehind)) {
      addText(end, false);
      skip(after - place);
      endTag(endBehind, true);
      return true;
    }
  fail("raw without endraw");
}

std::vector<TemplateToken> Scanner::run() {
  std::string plain;
  for (size_t i = 0; i < source.size(); ++i)
    if (source[i] != '\r')
      plain += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      plain += '\n';
  source = std::move(plain);
  if (!source.empty() && source.back() == '\n')
    source.pop_back();
  while (place < source.size()) {
    size_t next = place;
    while ((next = source.find('{', next)) != source.npos && next + 1 < source.size() &&
           !std::strchr("{%#", source[next + 1]))
      ++next;
    if (next == source.npos || next + 1 >= source.size())
      next = source.size();
    bool isOutput = next < source.size() && source[next + 1] == '{';
    addText(next, isOutput);
    if (place == source.size())
      break;
    if (at("{#")) {
      size_t end = source.find("#}", place + 2);
      if (end == source.npos)
        fail("a comment without its end");
      char sign = source[end - 1];
      skip(end + 2 - place);
      endTag(sign == '-', sign != '+');
    } else if (isOutput || !scanRaw()) {
      scanTag(isOutput);
    }
  }
  add(Kind::End);
  return std::move(tokens);
}

std::vector<TemplateToken> text::scanTemplate(const std::string &source) { return Scanner(source).run(); }
