//===- PreTokenizers.cpp - texts in pieces --------------------------------===//

#include "Steps.h"
#include "Unicode.h"
#include "Utf8.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
class FunctionPreTokenizer : public PreTokenizer {
public:
  explicit FunctionPreTokenizer(std::function<void(Pieces &)> function) : function(std::move(function)) {}
  void apply(Pieces &pieces) const override { function(pieces); }

private:
  std::function<void(Pieces &)> function;
};

class SequencePreTokenizer : public PreTokenizer {
public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> all) : all(std::move(all)) {}
  void apply(Pieces &pieces) const override {
    for (auto &one : all)
      one->apply(pieces);
  }

private:
  std::vector<std::unique_ptr<PreTokenizer>> all;
};
} // namespace

using Function = std::function<void(Pieces &)>;

/// What GPT-2 splits at.
static constexpr const char *kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

static Function makeByteLevel(Fields &fields) {
  bool prefix = fields.flag("add_prefix_space", true);
  fields.ignore({"trim_offsets"});
  std::shared_ptr<Regex> regex;
  if (fields.flag("use_regex", true))
    regex = std::make_shared<Regex>(kByteLevelPattern, RegexSyntax::Oniguruma);
  return [=](Pieces &pieces) {
    if (prefix)
      pieces.rewrite([](std::string_view piece, bool, std::string &out) {
        if (piece.empty() || piece[0] != ' ')
          out += ' ';
        out += piece;
      });
    if (regex)
      pieces.split(*regex, SplitBehavior::Isolated);
    auto &characters = byteCharacters();
    pieces.rewrite([&](std::string_view piece, bool, std::string &out) {
      for (char c : piece)
        out += characters[static_cast<unsigned char>(c)];
    });
  };
}

static Function makeMetaspace(Fields &fields) {
  std::string sign = fields.text("replacement", "\xE2\x96\x81");
  fields.ignore({"str_rep"});
  bool legacy = fields.flag("add_prefix_space", true);
  std::string scheme = fields.text("prepend_scheme", legacy ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    fields.fail("prepend_scheme got " + scheme + ", expected always, first or never");
  bool splits = fields.flag("split", true);
  return [=](Pieces &pieces) {
    pieces.rewrite([&](std::string_view piece, bool startsText, std::string &out) {
      bool starts = piece.substr(0, 1) == " " || piece.substr(0, sign.size()) == sign;
      if (!starts && (scheme == "always" || (scheme == "first" && startsText)))
        out += sign;
      for (char c : piece)
        if (c == ' ')
          out += sign;
        else
          out += c;
    });
    if (splits)
      pieces.split(sign, SplitBehavior::MergedWithNext);
  };
}

static Function makeSplit(Fields &fields) {
  Pattern pattern = patternOf(fields, "pattern");
  SplitBehavior behavior = splitBehavior(fields.text("behavior"), fields.where);
  bool invert = fields.flag("invert", false);
  return [=](Pieces &pieces) {
    if (pattern.regex)
      pieces.split(*pattern.regex, behavior, invert);
    else
      pieces.split(pattern.text, behavior, invert);
  };
}

static Function makeFixedLength(Fields &fields) {
  int64_t length = fields.integer("length");
  if (length < 1)
    fields.fail("length got " + std::to_string(length) + ", expected 1 or more");
  return [=](Pieces &pieces) {
    pieces.split(
        [&](std::string_view whole, size_t from, size_t &begin, size_t &end) {
          begin = end = from;
          for (int64_t i = 0; i < length && end < whole.size(); ++i)
            end += lengthOf(whole[end]);
          return begin < end;
        },
        SplitBehavior::Isolated);
  };
}

/// Of one type; none where there is no such type.
static Function makeFunction(const std::string &type, Fields &fields) {
  if (type == "ByteLevel")
    return makeByteLevel(fields);
  if (type == "Metaspace")
    return makeMetaspace(fields);
  if (type == "Split")
    return makeSplit(fields);
  if (type == "FixedLength")
    return makeFixedLength(fields);
  if (type == "Whitespace") {
    auto regex = std::make_shared<Regex>(R"(\w+|[^\w\s]+)", RegexSyntax::Rust);
    return [=](Pieces &pieces) { pieces.split(*regex, SplitBehavior::Removed, /*invert=*/true); };
  }
  if (type == "WhitespaceSplit")
    return [](Pieces &pieces) { pieces.split(isWhiteSpace, SplitBehavior::Removed); };
  if (type == "BertPreTokenizer")
    return [](Pieces &pieces) {
      pieces.split(isWhiteSpace, SplitBehavior::Removed);
      pieces.split(isPunctuation, SplitBehavior::Isolated);
    };
  if (type == "Punctuation") {
    SplitBehavior behavior = splitBehavior(fields.text("behavior", "Isolated"), fields.where);
    return [=](Pieces &pieces) { pieces.split(isPunctuation, behavior); };
  }
  if (type == "Digits") {
    SplitBehavior behavior =
        fields.flag("individual_digits", false) ? SplitBehavior::Isolated : SplitBehavior::Contiguous;
    return [=](Pieces &pieces) { pieces.split(isNumeric, behavior); };
  }
  if (type == "CharDelimiterSplit") {
    std::string delimiter = fields.text("delimiter");
    return [=](Pieces &pieces) { pieces.split(delimiter, SplitBehavior::Removed); };
  }
  return nullptr;
}

std::unique_ptr<PreTokenizer> text::makePreTokenizer(const Json &json, const std::string &where) {
  std::string type = Fields(json, where).text("type");
  Fields fields(json, where + ": " + type);
  fields.ignore({"type"});
  std::unique_ptr<PreTokenizer> result;
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> all;
    for (auto &[one, place] : sequenceOf(fields, "pretokenizers"))
      all.push_back(makePreTokenizer(*one, place));
    result = std::make_unique<SequencePreTokenizer>(std::move(all));
  } else if (Function function = makeFunction(type, fields)) {
    result = std::make_unique<FunctionPreTokenizer>(std::move(function));
  } else {
    Fields(json, where).fail("the pre-tokenizer " + type + " is not supported");
  }
  fields.finish();
  return result;
}
