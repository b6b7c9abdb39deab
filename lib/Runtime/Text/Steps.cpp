//===- Steps.cpp - what steps of tokenizers share -------------------------===//

#include "Steps.h"
#include "Utf8.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

std::vector<std::pair<const Json *, std::string>> text::sequenceOf(Fields &fields, const char *name) {
  const Json *list = fields.find(name);
  if (!list || !list->is_array())
    fields.fail(std::string(name) + " got " + (list ? shortly(*list) : "nothing") + ", expected a list");
  std::vector<std::pair<const Json *, std::string>> all;
  for (const Json &one : *list)
    all.emplace_back(&one, fields.where + " " + std::to_string(all.size()));
  return all;
}

Pattern text::patternOf(Fields &fields, const char *name) {
  const Json *found = fields.find(name);
  // A text alone is what older files have.
  if (found && found->is_string())
    return {found->get<std::string>(), nullptr};
  if (!found)
    fields.fail(std::string("lacks ") + name);
  Fields inside(*found, fields.where + ": " + name);
  Pattern result;
  if (inside.find("Regex")) {
    try {
      result.regex = std::make_shared<Regex>(inside.text("Regex"), RegexSyntax::Oniguruma);
    } catch (const std::runtime_error &error) {
      inside.fail(error.what());
    }
  } else {
    result.text = inside.text("String");
  }
  inside.finish();
  return result;
}

void text::replaceAll(std::string &text, const Pattern &pattern, const std::string &content) {
  std::string result;
  size_t done = 0;
  if (pattern.regex) {
    Regex::Matcher matcher(*pattern.regex);
    size_t begin, end;
    for (size_t from = 0; from <= text.size() && matcher.find(text, from, begin, end);) {
      result.append(text, done, begin - done);
      result += content;
      done = end;
      from = begin < end ? end : end < text.size() ? end + lengthOf(text[end]) : end + 1;
    }
  } else if (!pattern.text.empty()) {
    for (size_t begin; (begin = text.find(pattern.text, done)) != text.npos;
         done = begin + pattern.text.size()) {
      result.append(text, done, begin - done);
      result += content;
    }
  }
  if (!done && result.empty())
    return;
  result.append(text, done, text.npos);
  text = std::move(result);
}

/// Bytes that are printed as they are stand for themselves, the others for characters from U+0100 on, in
/// order.
static bool standsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

const std::string (&text::byteCharacters())[256] {
  static const auto *all = [] {
    static std::string texts[256];
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte)
      append(texts[byte], standsForItself(byte) ? static_cast<char32_t>(byte) : next++);
    return &texts;
  }();
  return *all;
}

int text::byteOf(char32_t code) {
  static const auto *bytes = [] {
    static int16_t table[0x144];
    for (int16_t &entry : table)
      entry = -1;
    for (int byte = 0; byte < 256; ++byte) {
      size_t at = 0;
      table[nextCharacter(byteCharacters()[byte], at)] = static_cast<int16_t>(byte);
    }
    return &table;
  }();
  return code < 0x144 ? (*bytes)[code] : -1;
}
