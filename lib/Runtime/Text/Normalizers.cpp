//===- Normalizers.cpp - texts as vocabularies have them ------------------===//

#include "Charsmap.h"
#include "Steps.h"
#include "Unicode.h"
#include "Utf8.h"

#include <map>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
class NormalFormNormalizer : public Normalizer {
public:
  explicit NormalFormNormalizer(NormalForm form) : form(form) {}
  void apply(std::string &text) const override { text = normalize(text, form); }

private:
  NormalForm form;
};

/// One that a function says all of.
class FunctionNormalizer : public Normalizer {
public:
  explicit FunctionNormalizer(std::function<void(std::string &)> function) : function(std::move(function)) {}
  void apply(std::string &text) const override { function(text); }

private:
  std::function<void(std::string &)> function;
};

class SequenceNormalizer : public Normalizer {
public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> all) : all(std::move(all)) {}
  void apply(std::string &text) const override {
    for (auto &one : all)
      one->apply(text);
  }

private:
  std::vector<std::unique_ptr<Normalizer>> all;
};
} // namespace

/// Each character is replaced by what `map(code, out)` appends.
template <typename Map> static void mapCharacters(std::string &text, Map &&map) {
  std::string result;
  result.reserve(text.size() + text.size() / 4);
  for (size_t at = 0; at < text.size();) {
    char32_t code = nextCharacter(text, at);
    map(code, result);
  }
  text = std::move(result);
}

static void removeIf(std::string &text, bool (*isOut)(char32_t)) {
  mapCharacters(text, [&](char32_t code, std::string &out) {
    if (!isOut(code))
      append(out, code);
  });
}

static void strip(std::string &text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t at = 0; left && at < text.size();) {
    begin = at;
    if (!isWhiteSpace(nextCharacter(text, at)))
      break;
    begin = at;
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80)
      --last;
    size_t at = last;
    if (!isWhiteSpace(nextCharacter(text, at)))
      break;
    end = last;
  }
  text = text.substr(begin, end - begin);
}

static void cleanForBert(std::string &text) {
  mapCharacters(text, [](char32_t code, std::string &out) {
    if (code == 0 || code == 0xFFFD || isControl(code))
      return;
    append(out, isWhiteSpace(code) ? U' ' : code);
  });
}

static void spaceChinese(std::string &text) {
  mapCharacters(text, [](char32_t code, std::string &out) {
    bool is = isChinese(code);
    if (is)
      out += ' ';
    append(out, code);
    if (is)
      out += ' ';
  });
}

/// NMT's rules: controls go, all kinds of blanks become one.
static void cleanForTranslation(std::string &text) {
  mapCharacters(text, [](char32_t code, std::string &out) {
    if ((code >= 1 && code <= 8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F ||
        code == 0x8F || code == 0x9F)
      return;
    bool isBlank = code == 9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
                   (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                   code == 0xFEFF || code == 0xFFFD;
    append(out, isBlank ? U' ' : code);
  });
}

static std::unique_ptr<Normalizer> makeBert(Fields &fields) {
  bool clean = fields.flag("clean_text", true), chinese = fields.flag("handle_chinese_chars", true),
       lower = fields.flag("lowercase", true), accents = fields.flag("strip_accents", lower);
  return std::make_unique<FunctionNormalizer>([=](std::string &text) {
    if (clean)
      cleanForBert(text);
    if (chinese)
      spaceChinese(text);
    if (accents) {
      text = normalize(text, NormalForm::D);
      removeIf(text, isNonspacingMark);
    }
    if (lower)
      text = toLower(text);
  });
}

std::unique_ptr<Normalizer> text::makeNormalizer(const Json &json, const std::string &where) {
  std::string type = Fields(json, where).text("type");
  Fields fields(json, where + ": " + type);
  fields.ignore({"type"});
  auto of = [](std::function<void(std::string &)> function) -> std::unique_ptr<Normalizer> {
    return std::make_unique<FunctionNormalizer>(std::move(function));
  };
  static const std::map<std::string, NormalForm> forms = {
      {"NFC", NormalForm::C}, {"NFD", NormalForm::D}, {"NFKC", NormalForm::KC}, {"NFKD", NormalForm::KD}};
  std::unique_ptr<Normalizer> result;
  if (auto form = forms.find(type); form != forms.end()) {
    result = std::make_unique<NormalFormNormalizer>(form->second);
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> all;
    for (auto &[one, place] : sequenceOf(fields, "normalizers"))
      all.push_back(makeNormalizer(*one, place));
    result = std::make_unique<SequenceNormalizer>(std::move(all));
  } else if (type == "Lowercase") {
    result = of([](std::string &text) { text = toLower(text); });
  } else if (type == "StripAccents") {
    result = of([](std::string &text) { removeIf(text, isMark); });
  } else if (type == "Strip") {
    bool left = fields.flag("strip_left", true), right = fields.flag("strip_right", true);
    result = of([=](std::string &text) { strip(text, left, right); });
  } else if (type == "BertNormalizer") {
    result = makeBert(fields);
  } else if (type == "Nmt") {
    result = of(cleanForTranslation);
  } else if (type == "Replace") {
    Pattern pattern = patternOf(fields, "pattern");
    std::string content = fields.text("content");
    result = of([=](std::string &text) { replaceAll(text, pattern, content); });
  } else if (type == "Prepend") {
    std::string prefix = fields.text("prepend");
    result = of([=](std::string &text) {
      if (!text.empty())
        text.insert(0, prefix);
    });
  } else if (type == "Precompiled") {
    auto map = std::make_shared<Charsmap>(decodeBase64(fields.text("precompiled_charsmap"), fields.where),
                                          fields.where);
    result = of([=](std::string &text) { map->applyByGraphemes(text); });
  } else if (type == "ByteLevel") {
    result = of([](std::string &text) {
      std::string mapped;
      for (char c : text)
        mapped += byteCharacters()[static_cast<unsigned char>(c)];
      text = std::move(mapped);
    });
  } else {
    Fields(json, where).fail("the normalizer " + type + " is not supported");
  }
  fields.finish();
  return result;
}
