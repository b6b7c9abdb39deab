//===- SlowFiles.cpp - vocab.json with merges.txt, and vocab.txt ----------===//
//
// Older folders have no tokenizer.json, and their class says the rest: they become
// the tokenizer.json that transformers makes of them.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "dsopt/Runtime/Error.h"

#include <map>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// Calls `use(line)` for each line.
template <typename Use> static void forLines(std::string_view bytes, Use &&use) {
  for (size_t at = 0; at < bytes.size();) {
    size_t end = std::min(bytes.find('\n', at), bytes.size());
    std::string_view line = bytes.substr(at, end - at);
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    use(line);
    at = end + 1;
  }
}

Json text::makeBpeJson(std::string_view vocab, std::string_view merges, const Json &config,
                       const std::string &where) {
  Fields fields(config, where + ": tokenizer_config.json");
  bool prefix = fields.flag("add_prefix_space", false);
  Json list = Json::array();
  forLines(merges, [&](std::string_view line) {
    if (!line.empty() && line.rfind("#version", 0) != 0)
      list.push_back(std::string(line));
  });
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", prefix}};
  return {{"model", {{"type", "BPE"}, {"vocab", parseJson(vocab, where + ": vocab.json")}, {"merges", list}}},
          {"pre_tokenizer", bytes},
          {"decoder", bytes}};
}

Json text::makeWordPieceJson(std::string_view vocab, const Json &config, const std::string &where) {
  Fields fields(config, where + ": tokenizer_config.json");
  Json tokens = Json::object();
  std::map<std::string, int64_t> ids;
  forLines(vocab, [&](std::string_view line) {
    auto id = static_cast<int64_t>(ids.size());
    if (!ids.emplace(line, id).second)
      throw Error(StatusInput, where + ": vocab.txt has " + shortly(std::string(line)) + " twice");
    tokens[std::string(line)] = id;
  });
  auto nameOf = [&](const char *role, const char *otherwise) {
    const Json *found = fields.find(role);
    return found && found->is_string() ? found->get<std::string>() : otherwise;
  };
  Json normalizer = {{"type", "BertNormalizer"},
                     {"lowercase", fields.flag("do_lower_case", true)},
                     {"handle_chinese_chars", fields.flag("tokenize_chinese_chars", true)}};
  if (const Json *accents = fields.find("strip_accents"))
    normalizer["strip_accents"] = *accents;
  Json added = Json::array();
  for (auto [role, otherwise] :
       {std::pair("unk_token", "[UNK]"), std::pair("sep_token", "[SEP]"), std::pair("pad_token", "[PAD]"),
        std::pair("cls_token", "[CLS]"), std::pair("mask_token", "[MASK]")}) {
    std::string name = nameOf(role, otherwise);
    if (ids.count(name))
      added.push_back({{"id", ids[name]}, {"content", name}, {"special", true}, {"normalized", false}});
  }
  Json result = {
      {"model", {{"type", "WordPiece"}, {"vocab", tokens}, {"unk_token", nameOf("unk_token", "[UNK]")}}},
      {"normalizer", normalizer},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"decoder", {{"type", "WordPiece"}}},
      {"added_tokens", added}};
  std::string begin = nameOf("cls_token", "[CLS]"), end = nameOf("sep_token", "[SEP]");
  if (ids.count(begin) && ids.count(end))
    result["post_processor"] = {{"type", "BertProcessing"},
                                {"cls", Json::array({begin, ids[begin]})},
                                {"sep", Json::array({end, ids[end]})}};
  return result;
}
