//===- Tokenizer.cpp - text to ids and back -------------------------------===//

#include "dsopt/Runtime/Tokenizer.h"
#include "Parts.h"
#include "Utf8.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

struct Tokenizer::Impl {
  TokenizerParts parts;
  std::map<std::string, std::string> templates;

  void readParts(const TokenizerFiles &files, const Json &config);
  void readConfig(const Json &config, const std::string &where);
  void readNames(const Json &names, const std::string &where);
  void readTemplates(const TokenizerFiles &files, const Json &config);
  void addToken(const Json &json, int64_t id, const std::string &where);
};

static const std::string *fileOf(const TokenizerFiles &files, const std::string &name) {
  auto found = files.bytes.find(name);
  return found == files.bytes.end() ? nullptr : &found->second;
}

/// Whether there is one file, which has to be the tokenizer; settings alone are none.
static bool isAlone(const TokenizerFiles &files) {
  if (files.bytes.size() != 1)
    return false;
  const std::string &name = files.bytes.begin()->first;
  for (const char *setting : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                              "generation_config.json", "chat_template.jinja", "chat_template.json"})
    if (name == setting)
      return false;
  return true;
}

/// The only file with one of these endings, or the one of a usual name; null where there is none.
static const std::pair<const std::string, std::string> *findRanks(const TokenizerFiles &files) {
  const std::pair<const std::string, std::string> *result = nullptr;
  for (const auto &file : files.bytes) {
    const std::string &name = file.first;
    // mistral-common's have a version behind.
    if (name.find(".model") == name.npos && name.find(".tiktoken") == name.npos)
      continue;
    if (name == "tokenizer.model" || name == "spiece.model" || name == "sentencepiece.bpe.model")
      return &file;
    if (result)
      throw Error(StatusInput, files.where + " has " + result->first + " and " + name +
                                   ": give the one that is meant, -tokenizer=FILE");
    result = &file;
  }
  return result;
}

void Tokenizer::Impl::readParts(const TokenizerFiles &files, const Json &config) {
  std::string where = files.where;
  bool isOne = isAlone(files);
  auto place = [&](const std::string &name) { return isOne ? where : where + "/" + name; };
  const std::string *json = fileOf(files, "tokenizer.json");
  if (!json && isOne) {
    // A file alone may have any name: its content says what it is.
    const std::string &bytes = files.bytes.begin()->second;
    size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first != bytes.npos && bytes[first] == '{')
      json = &bytes;
  }
  if (json) {
    Json parsed = parseJson(*json, place("tokenizer.json"));
    bool isTekken = parsed.is_object() && parsed.contains("config") && parsed.contains("vocab");
    parts = isTekken ? readTekken(parsed, place("tokenizer.json"))
                     : readTokenizerJson(parsed, place("tokenizer.json"));
    return;
  }
  if (const std::string *tekken = fileOf(files, "tekken.json")) {
    parts = readTekken(parseJson(*tekken, place("tekken.json")), place("tekken.json"));
    return;
  }
  auto *ranks = isOne ? &*files.bytes.begin() : findRanks(files);
  if (ranks) {
    bool isRanks = isTiktoken(ranks->second);
    parts = isRanks ? readTiktoken(ranks->second, ranks->first, files.pattern, place(ranks->first))
                    : readSentencePiece(ranks->second, place(ranks->first));
    return;
  }
  std::string type = Fields(config, where + ": tokenizer_config.json").text("tokenizer_class", "");
  const std::string *vocab = fileOf(files, "vocab.json"), *merges = fileOf(files, "merges.txt"),
                    *words = fileOf(files, "vocab.txt");
  if (vocab && merges && type.rfind("GPT2Tokenizer", 0) == 0)
    parts = readTokenizerJson(makeBpeJson(*vocab, *merges, config, where), where);
  else if (words && type.rfind("BertTokenizer", 0) == 0)
    parts = readTokenizerJson(makeWordPieceJson(*words, config, where), where);
  else if ((vocab && merges) || words)
    throw Error(StatusInput, where + (words ? ": vocab.txt" : ": vocab.json and merges.txt") +
                                 " without tokenizer.json need a tokenizer_config.json of the class " +
                                 (words ? "BertTokenizer" : "GPT2Tokenizer") + ", got " +
                                 (type.empty() ? "none" : type) +
                                 ": save it with transformers' save_pretrained, which writes tokenizer.json");
  else
    throw Error(StatusInput, where +
                                 ": there is no tokenizer: expected tokenizer.json, tekken.json, a .model, a "
                                 ".tiktoken, vocab.json with merges.txt or vocab.txt");
}

/// A token of a configuration: its text, or an object with its content.
static std::optional<std::string> contentOf(const Json &json) {
  if (json.is_string())
    return json.get<std::string>();
  if (json.is_object() && json.contains("content") && json["content"].is_string())
    return json["content"].get<std::string>();
  return std::nullopt;
}

void Tokenizer::Impl::readNames(const Json &names, const std::string &where) {
  if (!names.is_object())
    throw Error(StatusInput, where + ": got " + shortly(names) + ", expected an object");
  for (const char *role :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    auto found = names.find(role);
    if (found == names.end() || found->is_null())
      continue;
    auto content = contentOf(*found);
    if (!content)
      throw Error(StatusInput, where + ": " + role + " got " + shortly(*found) + ", expected a token");
    parts.named[role] = *content;
  }
}

void Tokenizer::Impl::addToken(const Json &json, int64_t id, const std::string &where) {
  auto content = contentOf(json);
  if (!content || id < 0 || id >= kMostTokens)
    throw Error(StatusInput, where + ": the token " + std::to_string(id) + " got " + shortly(json));
  if (parts.added.find(static_cast<int32_t>(id)))
    return;
  const std::string *known = parts.model->textOf(static_cast<int32_t>(id));
  if (known && *known != *content)
    throw Error(StatusInput, where + ": the token " + std::to_string(id) + " is " + shortly(*content) +
                                 ", and the vocabulary has " + shortly(*known));
  AddedToken token;
  token.content = *content;
  token.id = static_cast<int32_t>(id);
  if (json.is_object()) {
    Fields fields(json, where + ": " + shortly(*content));
    token.singleWord = fields.flag("single_word", false);
    token.lstrip = fields.flag("lstrip", false);
    token.rstrip = fields.flag("rstrip", false);
    token.special = fields.flag("special", false);
    token.normalized = fields.flag("normalized", !token.special);
  } else {
    token.normalized = true;
  }
  parts.added.add(std::move(token));
}

void Tokenizer::Impl::readConfig(const Json &config, const std::string &where) {
  readNames(config, where);
  Fields fields(config, where);
  if (const Json *added = fields.find("added_tokens_decoder")) {
    if (!added->is_object())
      fields.fail("added_tokens_decoder got " + shortly(*added) + ", expected an object");
    for (const auto &[id, token] : added->items()) {
      if (id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != id.npos)
        fields.fail("added_tokens_decoder has " + shortly(id) + ", expected an id");
      addToken(token, std::stoll(id), where);
    }
  }
}

void Tokenizer::Impl::readTemplates(const TokenizerFiles &files, const Json &config) {
  std::string where = files.where + ": chat_template";
  auto take = [&](const Json &found) {
    if (found.is_string()) {
      templates["default"] = found.get<std::string>();
      return;
    }
    if (!found.is_array())
      throw Error(StatusInput, where + " got " + shortly(found) + ", expected a text or a list");
    for (const Json &one : found) {
      Fields fields(one, where);
      templates[fields.text("name")] = fields.text("template");
    }
  };
  if (auto found = config.find("chat_template"); found != config.end() && !found->is_null())
    take(*found);
  if (const std::string *file = fileOf(files, "chat_template.json")) {
    const Json json = parseJson(*file, where + ".json");
    if (json.is_object() && json.contains("chat_template"))
      take(json["chat_template"]);
  }
  if (const std::string *file = fileOf(files, "chat_template.jinja"))
    templates["default"] = *file;
}

Tokenizer::Tokenizer(const TokenizerFiles &files) : impl(std::make_unique<Impl>()) {
  if (files.bytes.empty())
    throw Error(StatusInput, files.where + ": there is no tokenizer");
  Json config = Json::object();
  std::string configName = files.where + "/tokenizer_config.json";
  const std::string *text = files.bytes.size() > 1 ? fileOf(files, "tokenizer_config.json") : nullptr;
  if (text)
    config = parseJson(*text, configName);
  Fields fields(config, configName);
  impl->readParts(files, config);
  if (const std::string *map = files.bytes.size() > 1 ? fileOf(files, "special_tokens_map.json") : nullptr)
    impl->readNames(parseJson(*map, files.where + "/special_tokens_map.json"),
                    files.where + "/special_tokens_map.json");
  impl->readConfig(config, configName);
  if (const std::string *more = files.bytes.size() > 1 ? fileOf(files, "added_tokens.json") : nullptr) {
    std::string name = files.where + "/added_tokens.json";
    Json added = parseJson(*more, name);
    if (!added.is_object())
      throw Error(StatusInput, name + ": got " + shortly(added) + ", expected an object");
    for (const auto &[content, id] : added.items())
      impl->addToken(content, id.is_number_integer() ? id.get<int64_t>() : -1, name);
  }
  impl->readTemplates(files, config);
  impl->parts.added.prepare(impl->parts.normalizer.get());
  // tokenizer.json says itself what is added; a .model's folder says it beside it.
  bool isSaid = fileOf(files, "tokenizer.json");
  bool begins = fields.text("tokenizer_class", "").rfind("LlamaTokenizer", 0) == 0;
  if (!isSaid && fields.flag("add_bos_token", begins) && begin())
    impl->parts.before.push_back(*begin());
  if (!isSaid && fields.flag("add_eos_token", false) && end())
    impl->parts.after.push_back(*end());
}

Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  checkUtf8(text, "the text");
  const TokenizerParts &parts = impl->parts;
  bool specials = special != SpecialTokens::Ignore;
  std::vector<int32_t> ids;
  if (special == SpecialTokens::Add)
    ids = parts.before;
  for (const AddedTokens::Part &outer : parts.added.cut(text, /*normalized=*/false, specials)) {
    if (outer.token) {
      ids.push_back(outer.token->id);
      continue;
    }
    std::string normalized(text.substr(outer.begin, outer.end - outer.begin));
    if (parts.normalizer)
      parts.normalizer->apply(normalized);
    for (const AddedTokens::Part &part : parts.added.cut(normalized, /*normalized=*/true, specials)) {
      if (part.token) {
        ids.push_back(part.token->id);
        continue;
      }
      Pieces pieces(normalized.substr(part.begin, part.end - part.begin),
                    outer.begin == 0 && part.begin == 0);
      if (parts.preTokenizer)
        parts.preTokenizer->apply(pieces);
      for (const Piece &piece : pieces.all())
        if (piece.begin < piece.end)
          parts.model->encode(pieces.textOf(piece), ids);
    }
  }
  if (special == SpecialTokens::Add)
    ids.insert(ids.end(), parts.after.begin(), parts.after.end());
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t> &ids, bool skipsSpecial) const {
  const TokenizerParts &parts = impl->parts;
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    const std::string *text = textOf(id);
    if (!text)
      throw Error(StatusInput,
                  "the id " + std::to_string(id) + " is no token's, of " + std::to_string(vocabularySize()));
    if (!skipsSpecial || !isSpecial(id))
      tokens.push_back(*text);
  }
  if (parts.decoder)
    parts.decoder->apply(tokens);
  std::string result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i && !parts.decoder && !parts.isJoined)
      result += ' ';
    result += tokens[i];
  }
  return result;
}

int64_t Tokenizer::vocabularySize() const {
  return std::max(impl->parts.model->size(), impl->parts.added.size());
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  auto added = impl->parts.added.find(token);
  return added ? added : impl->parts.model->find(token);
}

const std::string *Tokenizer::textOf(int32_t id) const {
  const AddedToken *added = impl->parts.added.find(id);
  return added ? &added->content : impl->parts.model->textOf(id);
}

bool Tokenizer::isSpecial(int32_t id) const {
  const AddedToken *added = impl->parts.added.find(id);
  return added && added->special;
}

const std::map<std::string, std::string> &Tokenizer::namedTokens() const { return impl->parts.named; }

std::optional<int32_t> Tokenizer::begin() const {
  auto name = impl->parts.named.find("bos_token");
  return name == impl->parts.named.end() ? std::nullopt : find(name->second);
}

std::optional<int32_t> Tokenizer::end() const {
  auto name = impl->parts.named.find("eos_token");
  return name == impl->parts.named.end() ? std::nullopt : find(name->second);
}

const std::map<std::string, std::string> &Tokenizer::chatTemplates() const { return impl->templates; }

std::string DecodeStream::add(int32_t id) {
  // What follows depends on the tokens right before: a few of them stay.
  constexpr size_t kContext = 8;
  window.push_back(id);
  std::string text = tokenizer.decode(window, skipsSpecial);
  bool isCut = false;
  size_t valid = said;
  // Bytes that begin no character are said as they are.
  for (std::string_view rest = std::string_view(text).substr(std::min(said, text.size())); !rest.empty();) {
    size_t whole = validPrefix(rest, &isCut);
    valid += whole;
    rest.remove_prefix(whole);
    if (rest.empty() || isCut)
      break;
    ++valid;
    rest.remove_prefix(1);
  }
  std::string result = text.size() > said ? text.substr(said, valid - said) : "";
  said = std::max(said, valid);
  if (!isCut && window.size() >= 2 * kContext) {
    window.erase(window.begin(), window.end() - kContext);
    said = tokenizer.decode(window, skipsSpecial).size();
  }
  return result;
}

std::string DecodeStream::finish() {
  std::string text = tokenizer.decode(window, skipsSpecial);
  std::string rest = text.size() > said ? text.substr(said) : "";
  window.clear();
  said = 0;
  return rest;
}
