//===- Lexer.cpp - words of PTX text --------------------------------------===//

#include "Lexer.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace softdevice {

static bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
static bool isWord(char c) {
  return isWordStart(c) || std::isdigit(static_cast<unsigned char>(c)) || c == ':';
}

/// Behind the brace that closes the one here.
static size_t endOfBody(std::string_view text, size_t at, int line) {
  int depth = 0;
  for (; (at = text.find_first_of("{}/", at)) != text.npos; ++at) {
    if (text.substr(at, 2) == "//")
      at = std::min(text.find('\n', at), text.size() - 1);
    else if (text.substr(at, 2) == "/*")
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 1;
    else if (text[at] == '{')
      ++depth;
    else if (text[at] == '}' && --depth == 0)
      return at + 1;
  }
  throw SyntaxError(line, "a function does not end");
}

std::vector<Token> tokenize(std::string_view text, int line, bool hasBodies) {
  std::vector<Token> tokens;
  size_t at = 0, size = text.size();
  // Whether the next brace opens a function.
  bool isFunction = false;
  auto take = [&](Token::Kind kind, size_t end) {
    tokens.push_back({kind, text.substr(at, end - at), line});
    at = end;
  };
  while (at < size) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), size);
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      if (end == text.npos)
        throw SyntaxError(line, "a comment does not end");
      for (; at < end + 2; ++at)
        line += text[at] == '\n';
    } else if (c == '"') {
      size_t end = text.find('"', at + 1);
      if (end == text.npos)
        throw SyntaxError(line, "a text does not end");
      tokens.push_back({Token::Kind::Text, text.substr(at + 1, end - at - 1), line});
      at = end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      size_t end = at + 1;
      while (end < size && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.'))
        ++end;
      take(Token::Kind::Number, end);
    } else if (isWordStart(c)) {
      // `a::b` is one word; `label:` is two.
      size_t end = at + 1;
      while (end < size && isWord(text[end]) && (text[end] != ':' || text.substr(end, 2) == "::"))
        end += text[end] == ':' ? 2 : 1;
      take(Token::Kind::Word, end);
      isFunction |= hasBodies && (tokens.back().text == ".entry" || tokens.back().text == ".func");
    } else if (isFunction && c == '{') {
      size_t begin = at;
      int first = line;
      at = endOfBody(text, at, line);
      line += std::count(text.begin() + begin, text.begin() + at, '\n');
      tokens.push_back({Token::Kind::Body, text.substr(begin, at - begin), first});
      isFunction = false;
    } else if (std::strchr("{}()[]<>,;:=+-@!|*", c)) {
      isFunction &= c != ';';
      take(Token::Kind::Mark, at + 1);
    } else {
      throw SyntaxError(line, std::string("unexpected '") + c + "'");
    }
  }
  tokens.push_back({Token::Kind::End, "", line});
  return tokens;
}

std::pair<uint64_t, Type> readNumber(const Token &token) {
  std::string text(token.text);
  char *end = nullptr;
  if (text.size() > 2 && text[0] == '0' && std::strchr("fFdD", text[1])) {
    bool isSingle = text[1] == 'f' || text[1] == 'F';
    uint64_t bits = std::strtoull(text.c_str() + 2, &end, 16);
    if (*end || text.size() != (isSingle ? 10u : 18u))
      throw SyntaxError(token.line, "'" + text + "' is no number");
    return {bits, isSingle ? Type::F32 : Type::F64};
  }
  bool isHexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  if (!isHexadecimal && text.find('.') != text.npos) {
    double value = std::strtod(text.c_str(), &end);
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (*end)
      throw SyntaxError(token.line, "'" + text + "' is no number");
    return {bits, Type::F64};
  }
  uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (*end == 'U')
    ++end;
  if (*end)
    throw SyntaxError(token.line, "'" + text + "' is no number");
  return {value, Type::None};
}

} // namespace softdevice
