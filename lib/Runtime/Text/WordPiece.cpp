//===- WordPiece.cpp - models that look words up --------------------------===//

#include "Unigram.h"
#include "Utf8.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

namespace {
/// The longest token first, then the longest that continues it.
class WordPiece : public Model {
public:
  WordPiece(Fields &fields, bool isWhole) : isWhole(isWhole) {
    const Json *vocab = fields.find("vocab");
    if (!vocab)
      fields.fail("lacks vocab");
    vocabulary.read(*vocab, fields.where + ": vocab");
    std::string name = fields.text("unk_token", isWhole ? "<unk>" : "[UNK]");
    unknown = vocabulary.find(name).value_or(-1);
    if (unknown < 0 && !isWhole)
      fields.fail("unk_token " + shortly(name) + " is no token");
    if (isWhole)
      return;
    prefix = fields.text("continuing_subword_prefix", "##");
    most = fields.find("max_input_chars_per_word") ? fields.integer("max_input_chars_per_word") : 100;
  }
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override {
    cache.append(piece, ids, [&](std::vector<int32_t> &out) { encodeWord(piece, out); });
  }
  std::optional<int32_t> find(std::string_view token) const override { return vocabulary.find(token); }
  const std::string *textOf(int32_t id) const override { return vocabulary.textOf(id); }
  int64_t size() const override { return vocabulary.size(); }

private:
  void encodeWord(std::string_view word, std::vector<int32_t> &ids) const;

  Vocabulary vocabulary;
  bool isWhole;
  std::string prefix;
  int64_t most = 0; ///< characters; longer words are unknown
  int32_t unknown = -1;
  WordCache cache;
};
} // namespace

void WordPiece::encodeWord(std::string_view word, std::vector<int32_t> &ids) const {
  if (isWhole) {
    int32_t id = vocabulary.find(word).value_or(unknown);
    if (id < 0)
      throw Error(StatusInput, "the tokenizer has no token for " + shortly(std::string(word)) +
                                   " and none for what is unknown");
    ids.push_back(id);
    return;
  }
  int64_t characters = 0;
  for (char c : word)
    characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  size_t before = ids.size();
  std::string text;
  for (size_t begin = 0; begin < word.size() && characters <= most;) {
    size_t end = word.size();
    std::optional<int32_t> id;
    text = begin ? prefix : "";
    text += word.substr(begin);
    for (size_t drop = 0; !id && end > begin;) {
      id = vocabulary.find(std::string_view(text).substr(0, text.size() - drop));
      if (id)
        break;
      do
        --end;
      while (end > begin && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80);
      drop = word.size() - end;
    }
    if (!id) {
      characters = most + 1;
      break;
    }
    ids.push_back(*id);
    begin = end;
  }
  if (characters > most) {
    ids.resize(before);
    ids.push_back(unknown);
  }
}

std::unique_ptr<Model> text::makeModel(const Json &json, const std::string &where) {
  Fields fields(json, where);
  std::string type = fields.text("type", "");
  // Files of before types were written.
  if (type.empty())
    type = fields.find("merges") ? "BPE" : json.contains("unk_id") ? "Unigram" : "WordPiece";
  Fields inside(json, where + ": " + type);
  inside.ignore({"type"});
  std::unique_ptr<Model> model;
  if (type == "BPE")
    model = makeBpe(inside);
  else if (type == "Unigram")
    model = makeUnigram(inside);
  else if (type == "WordPiece" || type == "WordLevel")
    model = std::make_unique<WordPiece>(inside, type == "WordLevel");
  else
    fields.fail("the model " + type + " is not supported");
  inside.finish();
  return model;
}
