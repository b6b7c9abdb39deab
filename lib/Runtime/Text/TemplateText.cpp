//===- TemplateText.cpp - what filters and methods share ------------------===//

#include "TemplateText.h"
#include "Utf8.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

const Value *Given::find(size_t place, const char *name) const {
  if (place < arguments.positional.size())
    return &arguments.positional[place];
  for (auto &[known, value] : arguments.named)
    if (known == name)
      return &value;
  return nullptr;
}

const Value &Given::get(size_t place, const char *name) const {
  const Value *found = find(place, name);
  if (!found)
    failTemplate(of + " lacks its argument " + name);
  return *found;
}

Value Given::get(size_t place, const char *name, const Value &otherwise) const {
  const Value *found = find(place, name);
  return found ? *found : otherwise;
}

std::string Given::text(size_t place, const char *name) const {
  const Value &found = get(place, name);
  if (!found.is(Value::String))
    failTemplate(of + " needs a text for " + name + ", got " + found.typeName());
  return found.text();
}

std::optional<std::string> Given::textOrNone(size_t place, const char *name) const {
  const Value *found = find(place, name);
  if (!found || found->is(Value::None))
    return std::nullopt;
  return text(place, name);
}

int64_t Given::integer(size_t place, const char *name, int64_t otherwise) const {
  const Value *found = find(place, name);
  if (!found || found->is(Value::None))
    return otherwise;
  if (!found->isInteger())
    failTemplate(of + " needs an integer for " + name + ", got " + found->typeName());
  return found->integer();
}

bool Given::flag(size_t place, const char *name, bool otherwise) const {
  const Value *found = find(place, name);
  return found ? found->truth() : otherwise;
}

/// Python's white space has four separators more.
static bool isBlank(char32_t code) { return isWhiteSpace(code) || (code >= 0x1C && code <= 0x1F); }

std::string text::strip(const std::string &text, const std::optional<std::string> &characters, bool left,
                        bool right) {
  std::vector<char32_t> set;
  for (size_t at = 0; characters && at < characters->size();)
    set.push_back(nextCharacter(*characters, at));
  auto isOut = [&](char32_t code) {
    return characters ? std::find(set.begin(), set.end(), code) != set.end() : isBlank(code);
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!isOut(nextCharacter(text, next)))
      break;
    begin = next;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
      --last;
    size_t at = last;
    if (!isOut(nextCharacter(text, at)))
      break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::string text::capitalize(const std::string &text) {
  if (text.empty())
    return text;
  size_t first = lengthOf(text[0]);
  return toUpper(text.substr(0, first)) + toLower(text.substr(first));
}

std::string text::titleOf(const std::string &text) {
  std::string result;
  bool isInside = false;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    char32_t code = nextCharacter(text, at);
    std::string one = text.substr(begin, at - begin);
    result += isInside ? toLower(one) : toUpper(one);
    isInside = isWord(code) && code != '_' && !isNumeric(code);
  }
  return result;
}

ValueList text::split(const std::string &text, const std::optional<std::string> &separator, int64_t most) {
  ValueList result;
  if (separator) {
    if (separator->empty())
      failTemplate("split got an empty text");
    size_t begin = 0, end;
    while (most-- != 0 && (end = text.find(*separator, begin)) != text.npos) {
      result.emplace_back(text.substr(begin, end - begin));
      begin = end + separator->size();
    }
    result.emplace_back(text.substr(begin));
    return result;
  }
  for (std::string rest = strip(text, std::nullopt, true, false); !rest.empty();
       rest = strip(rest, std::nullopt, true, false)) {
    if (most-- == 0) {
      result.emplace_back(strip(rest, std::nullopt, false, true));
      break;
    }
    size_t end = 0;
    for (size_t at = 0; at < rest.size(); end = at)
      if (isBlank(nextCharacter(rest, at)))
        break;
    result.emplace_back(rest.substr(0, end));
    rest.erase(0, end);
  }
  return result;
}

ValueList text::splitLines(const std::string &text) {
  ValueList result;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    char32_t code = nextCharacter(text, at);
    if (code != '\n' && code != '\r' && code != 0xB && code != 0xC && !(code >= 0x1C && code <= 0x1E) &&
        code != 0x85 && code != 0x2028 && code != 0x2029)
      continue;
    if (code == '\r' && at < text.size() && text[at] == '\n')
      ++at;
    result.emplace_back(text.substr(begin, end - begin));
    begin = at;
  }
  if (begin < text.size())
    result.emplace_back(text.substr(begin));
  return result;
}

std::string text::replaced(const std::string &text, const std::string &from, const std::string &to,
                           int64_t most) {
  std::string result;
  size_t done = 0;
  if (from.empty()) {
    for (size_t at = 0; most != 0 && at <= text.size(); --most) {
      result += to;
      if (at == text.size()) {
        done = at;
        break;
      }
      nextCharacter(text, at);
      result.append(text, done, at - done);
      done = at;
    }
    return result + text.substr(done);
  }
  for (size_t at; most != 0 && (at = text.find(from, done)) != text.npos; --most) {
    result.append(text, done, at - done);
    result += to;
    done = at + from.size();
  }
  return result + text.substr(done);
}

bool text::hasEnd(const std::string &text, const Value &part, bool atEnd) {
  if (part.is(Value::List)) {
    for (const Value &one : part.list())
      if (hasEnd(text, one, atEnd))
        return true;
    return false;
  }
  if (!part.is(Value::String))
    failTemplate(std::string("startswith and endswith need a text, got ") + part.typeName());
  const std::string &end = part.text();
  return end.size() <= text.size() &&
         text.compare(atEnd ? text.size() - end.size() : 0, end.size(), end) == 0;
}
