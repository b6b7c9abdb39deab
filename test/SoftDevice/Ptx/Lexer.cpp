//===- Lexer.cpp - words of PTX text --------------------------------------===//

#include "Lexer.h"

#include <cctype>
#include <cstring>

namespace softdevice {

static bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}
static bool isWord(char c) {
  return isWordStart(c) || std::isdigit(static_cast<unsigned char>(c)) || c == ':';
}

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  size_t at = 0, size = text.size();
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
    } else if (std::strchr("{}()[]<>,;:=+-@!|*", c)) {
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
