//===- Decoders.cpp - from tokens back to text ----------------------------===//

#include "Steps.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

using Texts = std::vector<std::string>;

namespace {
class FunctionDecoder : public Decoder {
public:
  explicit FunctionDecoder(std::function<void(Texts &)> function) : function(std::move(function)) {}
  void apply(Texts &tokens) const override { function(tokens); }

private:
  std::function<void(Texts &)> function;
};

class SequenceDecoder : public Decoder {
public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> all) : all(std::move(all)) {}
  void apply(Texts &tokens) const override {
    for (auto &one : all)
      one->apply(tokens);
  }

private:
  std::vector<std::unique_ptr<Decoder>> all;
};
} // namespace

/// A token that has a character of no byte stands for its own.
static void decodeBytes(Texts &tokens) {
  for (std::string &token : tokens) {
    std::string bytes;
    bool areBytes = true;
    for (size_t at = 0; at < token.size() && areBytes;) {
      int byte = byteOf(nextCharacter(token, at));
      areBytes = byte >= 0;
      bytes += static_cast<char>(byte);
    }
    if (areBytes)
      token = std::move(bytes);
  }
}

/// The byte of a token <0xAB>, -1 of another one.
static int byteOfName(const std::string &token) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>' || digit(token[3]) < 0 ||
      digit(token[4]) < 0)
    return -1;
  return digit(token[3]) * 16 + digit(token[4]);
}

/// English as it was before it was cut at punctuation.
static void tidy(std::string &text) {
  static const std::pair<const char *, const char *> pairs[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto &[from, to] : pairs)
    replaceAll(text, {from, nullptr}, to);
}

static void decodeWordPiece(Texts &tokens, const std::string &prefix, bool cleans) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string &token = tokens[i];
    if (i && token.compare(0, prefix.size(), prefix) == 0)
      token.erase(0, prefix.size());
    else if (i)
      token.insert(0, " ");
    if (cleans)
      tidy(token);
  }
}

static void decodeCtc(Texts &tokens, const std::string &pad, const std::string &delimiter, bool cleans) {
  Texts result;
  const std::string *last = nullptr;
  for (const std::string &token : tokens) {
    if (last && *last == token)
      continue;
    last = &token;
    std::string text = token;
    replaceAll(text, {pad, nullptr}, "");
    if (cleans) {
      tidy(text);
      replaceAll(text, {delimiter, nullptr}, " ");
    }
    if (!text.empty())
      result.push_back(text);
  }
  tokens = std::move(result);
}

static void stripContent(std::string &token, const std::string &content, int64_t start, int64_t stop) {
  size_t begin = 0, end = token.size(), width = content.size();
  for (; start > 0 && end - begin >= width && token.compare(begin, width, content) == 0; --start)
    begin += width;
  for (; stop > 0 && end - begin >= width && token.compare(end - width, width, content) == 0; --stop)
    end -= width;
  token = token.substr(begin, end - begin);
}

static void fuse(Texts &tokens) {
  std::string all;
  for (const std::string &token : tokens)
    all += token;
  tokens = {all};
}

static std::function<void(Texts &)> makeMetaspace(Fields &fields) {
  std::string sign = fields.text("replacement", "\xE2\x96\x81");
  fields.ignore({"str_rep", "split"});
  bool prefix = fields.flag("add_prefix_space", true);
  bool drops = fields.text("prepend_scheme", prefix ? "always" : "never") != "never";
  return [=](Texts &tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replaceAll(tokens[i], {sign, nullptr}, i || !drops ? " " : "");
  };
}

static std::function<void(Texts &)> makeFunction(const std::string &type, Fields &fields) {
  if (type == "ByteLevel") {
    fields.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
    return decodeBytes;
  }
  if (type == "ByteFallback")
    return [](Texts &tokens) {
      for (std::string &token : tokens)
        if (int byte = byteOfName(token); byte >= 0)
          token = std::string(1, static_cast<char>(byte));
    };
  if (type == "Metaspace")
    return makeMetaspace(fields);
  if (type == "WordPiece") {
    std::string prefix = fields.text("prefix", "##");
    bool cleans = fields.flag("cleanup", true);
    return [=](Texts &tokens) { decodeWordPiece(tokens, prefix, cleans); };
  }
  if (type == "Fuse")
    return fuse;
  if (type == "Strip") {
    std::string content = fields.text("content");
    int64_t start = fields.integer("start"), stop = fields.integer("stop");
    if (content.empty())
      fields.fail("content got nothing, expected a character");
    return [=](Texts &tokens) {
      for (std::string &token : tokens)
        stripContent(token, content, start, stop);
    };
  }
  if (type == "Replace") {
    Pattern pattern = patternOf(fields, "pattern");
    std::string content = fields.text("content");
    return [=](Texts &tokens) {
      for (std::string &token : tokens)
        replaceAll(token, pattern, content);
    };
  }
  if (type == "BPEDecoder") {
    std::string suffix = fields.text("suffix", "</w>");
    return [=](Texts &tokens) {
      for (std::string &token : tokens)
        replaceAll(token, {suffix, nullptr}, &token == &tokens.back() ? "" : " ");
    };
  }
  if (type == "CTC") {
    std::string pad = fields.text("pad_token", "<pad>"), delimiter = fields.text("word_delimiter_token", "|");
    bool cleans = fields.flag("cleanup", true);
    return [=](Texts &tokens) { decodeCtc(tokens, pad, delimiter, cleans); };
  }
  return nullptr;
}

std::unique_ptr<Decoder> text::makeDecoder(const Json &json, const std::string &where) {
  std::string type = Fields(json, where).text("type");
  Fields fields(json, where + ": " + type);
  fields.ignore({"type"});
  std::unique_ptr<Decoder> result;
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> all;
    for (auto &[one, place] : sequenceOf(fields, "decoders"))
      all.push_back(makeDecoder(*one, place));
    result = std::make_unique<SequenceDecoder>(std::move(all));
  } else if (auto function = makeFunction(type, fields)) {
    result = std::make_unique<FunctionDecoder>(std::move(function));
  } else {
    Fields(json, where).fail("the decoder " + type + " is not supported");
  }
  fields.finish();
  return result;
}
