//===- Tiktoken.cpp - ranks of byte strings -------------------------------===//
//
// Lines of a byte string in Base64 and its rank. They do not say what texts are
// split at and which special tokens there are: both follow from well-known names.
//
//===----------------------------------------------------------------------===//

#include "Bpe.h"
#include "Charsmap.h"
#include "Parts.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
class SplitPreTokenizer : public PreTokenizer {
public:
  explicit SplitPreTokenizer(const std::string &pattern) : regex(pattern, RegexSyntax::Rust) {}
  void apply(Pieces &pieces) const override { pieces.split(regex, SplitBehavior::Isolated); }

private:
  Regex regex;
};

struct Known {
  const char *name, *pattern;
  std::vector<std::pair<std::string, int32_t>> specials;
};
} // namespace

static constexpr const char *kGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
static constexpr const char *kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
static constexpr const char *kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
static constexpr const char *kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// By the file's name without its ending.
static const std::vector<Known> &knownFiles() {
  static const std::vector<Known> all = [] {
    Known qwen{"qwen", kQwen, {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}};
    for (int i = 0; i < 205; ++i)
      qwen.specials.push_back({"<|extra_" + std::to_string(i) + "|>", 151646 + i});
    return std::vector<Known>{
        {"gpt2", kGpt2, {{"<|endoftext|>", 50256}}},
        {"r50k_base", kGpt2, {{"<|endoftext|>", 50256}}},
        {"p50k_base", kGpt2, {{"<|endoftext|>", 50256}}},
        {"cl100k_base",
         kCl100k,
         {{"<|endoftext|>", 100257},
          {"<|fim_prefix|>", 100258},
          {"<|fim_middle|>", 100259},
          {"<|fim_suffix|>", 100260},
          {"<|endofprompt|>", 100276}}},
        {"o200k_base", kO200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
        qwen};
  }();
  return all;
}

/// One line at `at`, which moves behind it.
static std::string_view lineAt(std::string_view bytes, size_t &at) {
  size_t end = std::min(bytes.find('\n', at), bytes.size());
  std::string_view line = bytes.substr(at, end - at);
  at = end + 1;
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return line;
}

bool text::isTiktoken(std::string_view bytes) {
  size_t at = 0;
  std::string_view line = lineAt(bytes.substr(0, 4096), at);
  size_t blank = line.find(' ');
  auto isBase64 = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/' || c == '=';
  };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  return blank != line.npos && blank > 0 && blank + 1 < line.size() &&
         std::all_of(line.begin(), line.begin() + blank, isBase64) &&
         std::all_of(line.begin() + blank + 1, line.end(), isDigit);
}

/// A rank in decimal digits, -1 of anything else.
static int64_t rankOf(std::string_view digits) {
  int64_t rank = digits.empty() ? -1 : 0;
  for (char c : digits) {
    if (c < '0' || c > '9' || rank >= kMostTokens)
      return -1;
    rank = rank * 10 + (c - '0');
  }
  return rank;
}

/// What tiktoken and tekken have in common: `vocabulary` of byte strings, whose ids are their ranks.
static void finishRanked(TokenizerParts &parts, Vocabulary vocabulary, const std::string &pattern,
                         const std::string &where) {
  for (int byte = 0; byte < 256; ++byte)
    if (!vocabulary.find(std::string(1, static_cast<char>(byte))))
      throw Error(StatusInput, where + ": has no token for the byte " + std::to_string(byte));
  RankedBpe::Rules rules;
  for (int64_t id = 0; id < vocabulary.size(); ++id)
    rules.ranks.push_back(static_cast<uint32_t>(id));
  rules.isMerged.assign(vocabulary.size(), true);
  rules.fromBytes = true;
  parts.model = std::make_unique<RankedBpe>(std::move(vocabulary), std::move(rules));
  try {
    parts.preTokenizer = std::make_unique<SplitPreTokenizer>(pattern);
  } catch (const Error &error) {
    throw Error(error.status, where + ": " + error.what());
  }
  parts.isJoined = true;
}

static void addSpecial(TokenizerParts &parts, const std::string &content, int32_t id) {
  AddedToken token;
  token.content = content;
  token.id = id;
  token.special = true;
  parts.added.add(std::move(token));
}

TokenizerParts text::readTiktoken(std::string_view bytes, const std::string &name, const std::string &pattern,
                                  const std::string &where) {
  std::string stem = name.substr(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  const Known *known = nullptr;
  std::string names;
  for (const Known &one : knownFiles()) {
    if (one.name == (pattern.empty() ? stem : pattern))
      known = &one;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  if (!known && pattern.empty())
    throw Error(StatusInput, where + " does not say what texts are split at, and its name is none of " +
                                 names + ": give -tokenizer-pattern=NAME or -tokenizer-pattern=PATTERN");
  Vocabulary vocabulary;
  int64_t number = 0;
  for (size_t at = 0; at < bytes.size();) {
    std::string_view line = lineAt(bytes, at);
    std::string place = where + ": line " + std::to_string(++number);
    if (line.empty())
      continue;
    size_t blank = line.find(' ');
    int64_t rank = blank == line.npos ? -1 : rankOf(line.substr(blank + 1));
    if (rank < 0)
      throw Error(StatusInput, place + " got " + shortly(std::string(line)) + ", expected Base64 and a rank");
    vocabulary.add(decodeBase64(line.substr(0, blank), place), rank, place);
  }
  TokenizerParts parts;
  if (known)
    for (auto &[content, id] : known->specials)
      addSpecial(parts, content, id);
  if (known)
    parts.named["eos_token"] = known->specials[0].first;
  finishRanked(parts, std::move(vocabulary), known ? known->pattern : pattern, where);
  return parts;
}

namespace {
/// Ids are ranks behind the special tokens.
class ShiftedModel : public Model {
public:
  ShiftedModel(std::unique_ptr<Model> inner, int32_t shift) : inner(std::move(inner)), shift(shift) {}
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override {
    size_t before = ids.size();
    inner->encode(piece, ids);
    for (size_t i = before; i < ids.size(); ++i)
      ids[i] += shift;
  }
  std::optional<int32_t> find(std::string_view token) const override {
    auto id = inner->find(token);
    return id ? std::optional(*id + shift) : std::nullopt;
  }
  const std::string *textOf(int32_t id) const override { return inner->textOf(id - shift); }
  int64_t size() const override { return inner->size() + shift; }

private:
  std::unique_ptr<Model> inner;
  int32_t shift;
};
} // namespace

/// Before files listed them.
static const char *const kTekkenSpecials[] = {"<unk>",
                                              "<s>",
                                              "</s>",
                                              "[INST]",
                                              "[/INST]",
                                              "[AVAILABLE_TOOLS]",
                                              "[/AVAILABLE_TOOLS]",
                                              "[TOOL_RESULTS]",
                                              "[/TOOL_RESULTS]",
                                              "[TOOL_CALLS]",
                                              "[IMG]",
                                              "<pad>",
                                              "[IMG_BREAK]",
                                              "[IMG_END]",
                                              "[PREFIX]",
                                              "[MIDDLE]",
                                              "[SUFFIX]",
                                              "[SYSTEM_PROMPT]",
                                              "[/SYSTEM_PROMPT]",
                                              "[TOOL_CONTENT]"};

TokenizerParts text::readTekken(const Json &json, const std::string &where) {
  Fields fields(json, where);
  const Json *settings = fields.find("config"), *vocab = fields.find("vocab"),
             *list = fields.find("special_tokens");
  if (!settings || !vocab || !vocab->is_array())
    fields.fail(settings ? "lacks vocab" : "lacks config");
  Fields config(*settings, where + ": config");
  int64_t size = config.integer("default_vocab_size"),
          specials = config.integer("default_num_special_tokens");
  if (specials < 3 || size <= specials || size > kMostTokens)
    config.fail("has " + std::to_string(size) + " tokens, of which " + std::to_string(specials) +
                " are special");
  TokenizerParts parts;
  Vocabulary vocabulary;
  for (const Json &one : *vocab) {
    Fields token(one, where + ": vocab");
    int64_t rank = token.integer("rank");
    // Files have more than their models.
    if (rank < size - specials)
      vocabulary.add(decodeBase64(token.text("token_bytes"), token.where), rank, where);
  }
  std::vector<std::string> names(specials);
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = "<SPECIAL_" + std::to_string(i) + ">";
  if (!list)
    for (size_t i = 0; i < std::size(kTekkenSpecials) && i < names.size(); ++i)
      names[i] = kTekkenSpecials[i];
  else if (!list->is_array())
    fields.fail("special_tokens got " + shortly(*list) + ", expected a list");
  else
    for (const Json &one : *list) {
      Fields token(one, where + ": special_tokens");
      int64_t rank = token.integer("rank");
      if (rank < 0 || rank >= specials)
        token.fail("rank got " + std::to_string(rank) + ", of " + std::to_string(specials));
      names[rank] = token.text("token_str");
    }
  for (size_t i = 0; i < names.size(); ++i)
    addSpecial(parts, names[i], static_cast<int32_t>(i));
  for (auto [role, name] : {std::pair("bos_token", "<s>"), std::pair("eos_token", "</s>"),
                            std::pair("unk_token", "<unk>"), std::pair("pad_token", "<pad>")})
    if (parts.added.find(name))
      parts.named[role] = name;
  finishRanked(parts, std::move(vocabulary), config.text("pattern"), where);
  parts.model = std::make_unique<ShiftedModel>(std::move(parts.model), static_cast<int32_t>(specials));
  return parts;
}
