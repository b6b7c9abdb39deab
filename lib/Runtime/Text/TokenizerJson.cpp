//===- TokenizerJson.cpp - tokenizer.json ---------------------------------===//

#include "Parts.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

/// ["token", id]
static int32_t idOf(Fields &fields, const char *name) {
  const Json *pair = fields.find(name);
  if (!pair || !pair->is_array() || pair->size() != 2 || !(*pair)[1].is_number_integer())
    fields.fail(std::string(name) + " got " + (pair ? shortly(*pair) : "nothing") +
                ", expected a token and its id");
  int64_t id = (*pair)[1].get<int64_t>();
  if (id < 0 || id >= kMostTokens)
    fields.fail(std::string(name) + " has the id " + std::to_string(id));
  return static_cast<int32_t>(id);
}

/// {"single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}], "special_tokens":{"<s>":{"ids":[1]}}}
static void readTemplate(Fields &fields, TokenizerParts &parts) {
  const Json *single = fields.find("single"), *tokens = fields.find("special_tokens");
  fields.ignore({"pair"});
  if (!single || !single->is_array())
    fields.fail("single got " + (single ? shortly(*single) : "nothing") + ", expected a list");
  std::vector<int32_t> before, after;
  bool hasText = false;
  for (const Json &piece : *single) {
    if (piece.is_object() && piece.contains("Sequence")) {
      if (hasText)
        fields.fail("single has its text twice");
      hasText = true;
      continue;
    }
    if (!piece.is_object() || !piece.contains("SpecialToken"))
      fields.fail("single has " + shortly(piece) + ", expected a Sequence or a SpecialToken");
    std::string name = Fields(piece["SpecialToken"], fields.where).text("id");
    if (!tokens || !tokens->is_object() || !tokens->contains(name))
      fields.fail("special_tokens lacks " + name);
    Fields token((*tokens)[name], fields.where + ": " + name);
    const Json *ids = token.find("ids");
    if (!ids || !ids->is_array())
      token.fail("lacks ids");
    for (const Json &id : *ids) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostTokens)
        token.fail("ids has " + shortly(id));
      (hasText ? after : before).push_back(id.get<int32_t>());
    }
  }
  if (!hasText)
    fields.fail("single lacks its text");
  // In a sequence, what comes later is further outside.
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
  parts.after.insert(parts.after.end(), after.begin(), after.end());
}

static void readPostProcessor(const Json &json, const std::string &where, TokenizerParts &parts) {
  std::string type = Fields(json, where).text("type");
  Fields fields(json, where + ": " + type);
  fields.ignore({"type"});
  if (type == "Sequence") {
    for (auto &[one, place] : sequenceOf(fields, "processors"))
      readPostProcessor(*one, place, parts);
  } else if (type == "TemplateProcessing") {
    readTemplate(fields, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.before.insert(parts.before.begin(), idOf(fields, "cls"));
    parts.after.push_back(idOf(fields, "sep"));
    fields.ignore({"trim_offsets", "add_prefix_space"});
  } else if (type == "ByteLevel") {
    fields.ignore({"trim_offsets", "add_prefix_space", "use_regex"});
  } else {
    Fields(json, where).fail("the post-processor " + type + " is not supported");
  }
  fields.finish();
}

static void readAdded(const Json &list, const std::string &where, AddedTokens &added) {
  if (!list.is_array())
    throw Error(StatusInput, where + ": added_tokens got " + shortly(list) + ", expected a list");
  size_t number = 0;
  for (const Json &one : list) {
    Fields fields(one, where + ": added token " + std::to_string(number++));
    AddedToken token;
    token.content = fields.text("content");
    int64_t id = fields.integer("id");
    if (id < 0 || id >= kMostTokens)
      fields.fail("its id is " + std::to_string(id));
    token.id = static_cast<int32_t>(id);
    token.singleWord = fields.flag("single_word", false);
    token.lstrip = fields.flag("lstrip", false);
    token.rstrip = fields.flag("rstrip", false);
    token.special = fields.flag("special", false);
    token.normalized = fields.flag("normalized", !token.special);
    fields.finish();
    added.add(std::move(token));
  }
}

TokenizerParts text::readTokenizerJson(const Json &json, const std::string &where) {
  Fields fields(json, where);
  // Cutting and filling up are what a caller asks for, with these as proposals.
  fields.ignore({"version", "truncation", "padding"});
  TokenizerParts parts;
  const Json *model = fields.find("model");
  if (!model)
    fields.fail("lacks model");
  parts.model = makeModel(*model, where + ": model");
  if (const Json *one = fields.find("normalizer"))
    parts.normalizer = makeNormalizer(*one, where + ": normalizer");
  if (const Json *one = fields.find("pre_tokenizer"))
    parts.preTokenizer = makePreTokenizer(*one, where + ": pre_tokenizer");
  if (const Json *one = fields.find("decoder"))
    parts.decoder = makeDecoder(*one, where + ": decoder");
  if (const Json *one = fields.find("post_processor"))
    readPostProcessor(*one, where + ": post_processor", parts);
  if (const Json *list = fields.find("added_tokens"))
    readAdded(*list, where, parts.added);
  fields.finish();
  return parts;
}
