//===- TokenizerTest.cpp - text to ids and back ---------------------------===//

#include "dsopt/Runtime/Tokenizer.h"
#include "dsopt/Runtime/Error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace dsopt::runtime;
using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

static TokenizerFiles fileOf(const std::string &bytes, const std::string &name = "tokenizer.json") {
  return {"here", {{name, bytes}}, ""};
}

/// Letters, and what the merges make of them.
static Json letters(std::vector<std::string> more, std::vector<std::string> merges) {
  Json vocab = Json::object();
  for (char c = 'a'; c <= 'z'; ++c)
    vocab[std::string(1, c)] = c - 'a';
  for (const std::string &token : more)
    vocab[token] = vocab.size();
  return {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

/// What loading says is wrong.
static std::string errorOf(const TokenizerFiles &files) {
  try {
    Tokenizer tokenizer(files);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
  return "";
}

TEST(Tokenizer, MergesTheBestPairFirst) {
  // "bc" comes before "ab", and what is merged is merged again.
  Tokenizer tokenizer(fileOf(letters({"bc", "ab", "abc", "aa"}, {"b c", "a b", "a bc", "a a"}).dump()));
  EXPECT_EQ(tokenizer.encode("abc"), Ids{28});
  EXPECT_EQ(tokenizer.encode("aabc"), (Ids{0, 28}));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{29, 0}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  // More than what is looked through each time.
  std::string text;
  Ids expected;
  for (int i = 0; i < 100; ++i) {
    text += "abcz";
    expected.insert(expected.end(), {28, 25});
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
  EXPECT_EQ(tokenizer.vocabularySize(), 30);
}

TEST(Tokenizer, EqualRanksAreTakenFromTheLeft) {
  Tokenizer tokenizer(fileOf(letters({"aa"}, {"a a"}).dump()));
  for (int count : {2, 3, 31, 32, 33, 40, 101}) {
    Ids expected(count / 2, 26);
    if (count % 2)
      expected.push_back(0);
    EXPECT_EQ(tokenizer.encode(std::string(count, 'a')), expected) << count;
  }
}

TEST(Tokenizer, SpecialTokensAreAddedFoundOrLeft) {
  Json json = letters({"<s>"}, {});
  json["added_tokens"] = {{{"id", 26}, {"content", "<s>"}, {"special", true}},
                          {{"id", 30}, {"content", "ab"}, {"special", false}}};
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                            {"special_tokens", {{"<s>", {{"ids", {26}}}}}}};
  Tokenizer tokenizer(fileOf(json.dump()));
  EXPECT_EQ(tokenizer.encode("c<s>ab"), (Ids{26, 2, 26, 30}));
  EXPECT_EQ(tokenizer.encode("c<s>ab", SpecialTokens::Recognize), (Ids{2, 26, 30}));
  EXPECT_EQ(tokenizer.encode("c<s>ab", SpecialTokens::Ignore), (Ids{2, 18, 30})); // < and > are no tokens
  EXPECT_EQ(tokenizer.decode({26, 2, 30}), "c ab");
  EXPECT_EQ(tokenizer.decode({26, 2, 30}, false), "<s> c ab");
  EXPECT_TRUE(tokenizer.isSpecial(26));
  EXPECT_FALSE(tokenizer.isSpecial(30));
  EXPECT_EQ(tokenizer.vocabularySize(), 31);
  EXPECT_EQ(tokenizer.find("ab"), 30);
  EXPECT_EQ(tokenizer.textOf(27), nullptr);
}

TEST(Tokenizer, AddedTokensTakeSpaceAndMindWords) {
  Json json = letters({" "}, {});
  json["added_tokens"] = {
      {{"id", 40}, {"content", "xx"}, {"lstrip", true}, {"rstrip", true}, {"normalized", false}},
      {{"id", 41}, {"content", "yy"}, {"single_word", true}, {"normalized", false}}};
  Tokenizer tokenizer(fileOf(json.dump()));
  EXPECT_EQ(tokenizer.encode("a  xx  b"), (Ids{0, 40, 1}));
  EXPECT_EQ(tokenizer.encode("yy a"), (Ids{41, 26, 0}));
  EXPECT_EQ(tokenizer.encode("yya"), (Ids{24, 24, 0}));
  EXPECT_EQ(tokenizer.encode("ayy"), (Ids{0, 24, 24}));
}

/// Bytes alone.
static Json bytesJson() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab[name] = byte;
  }
  return {
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}, {"byte_fallback", true}}},
      {"decoder", {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}}};
}

TEST(Tokenizer, ATokenMayEndInsideACharacter) {
  Tokenizer tokenizer(fileOf(bytesJson().dump()));
  std::string text = "aé€👍z", streamed;
  Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), text.size());
  DecodeStream stream(tokenizer);
  std::vector<std::string> parts;
  for (int32_t id : ids)
    parts.push_back(stream.add(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "é", "", "", "€", "", "", "", "👍", "z"}));
  EXPECT_EQ(stream.finish(), "");
  // What never becomes a character is said once that is clear, or at the end.
  DecodeStream broken(tokenizer);
  EXPECT_EQ(broken.add(0xE2), "");
  EXPECT_EQ(broken.add('a'), "\xE2"
                             "a");
  EXPECT_EQ(broken.add(0x80), "\x80");
  EXPECT_EQ(broken.add(0xF0), "");
  EXPECT_EQ(broken.finish(), "\xF0");
}

TEST(Tokenizer, AStreamSaysWhatDecodeSays) {
  Json json = letters({"\xE2\x96\x81", "\xE2\x96\x81"
                                       "a"},
                      {"\xE2\x96\x81 a"});
  json["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", "always"}};
  json["decoder"] = json["pre_tokenizer"];
  Tokenizer tokenizer(fileOf(json.dump()));
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += i % 7 ? "a b" : " a  ";
  Ids ids = tokenizer.encode(text);
  DecodeStream stream(tokenizer);
  std::string streamed;
  for (int32_t id : ids)
    streamed += stream.add(id);
  EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
}

TEST(Tokenizer, ReadsRanks) {
  std::string ranks;
  auto base64 = [](const std::string &bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (size_t i = 0; i < bytes.size(); i += 3) {
      uint32_t bits = 0;
      for (size_t j = 0; j < 3; ++j)
        bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
      for (size_t j = 0; j < 4; ++j)
        out += i + j <= bytes.size() ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return out;
  };
  for (int byte = 0; byte < 256; ++byte)
    ranks += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
  ranks += base64("ab") + " 256\n" + base64(" a") + " 257\n" + base64(" ab") + " 258\n";
  Tokenizer tokenizer(fileOf(ranks, "r50k_base.tiktoken"));
  EXPECT_EQ(tokenizer.encode("ab ab ac"), (Ids{256, 258, 257, 'c'}));
  EXPECT_EQ(tokenizer.encode("<|endoftext|>"), Ids{50256});
  EXPECT_EQ(tokenizer.end(), 50256);
  EXPECT_EQ(tokenizer.decode({258, 0xE2}), " ab\xE2");
  EXPECT_EQ(errorOf(fileOf(ranks, "own.tiktoken")).find("here does not say what texts are split at"), 0u);
  TokenizerFiles own = fileOf(ranks, "own.tiktoken");
  own.pattern = "[a-z]+";
  EXPECT_EQ(Tokenizer(own).encode("ab ab"), (Ids{256, ' ', 256}));
  own.pattern = "[a-z";
  EXPECT_NE(errorOf(own).find("a class without its bracket"), std::string::npos);
  EXPECT_NE(errorOf(fileOf(ranks + "YWI= x\n", "gpt2.tiktoken")).find("line 260 got"), std::string::npos);
  EXPECT_NE(errorOf(fileOf("YQ== 0\n", "gpt2.tiktoken")).find("no token for the byte 0"), std::string::npos);
}

TEST(Tokenizer, ReadsAFolder) {
  TokenizerFiles files = {
      "folder",
      {{"vocab.json", R"({"a":0,"b":1,"ab":2,"<e>":3})"}, {"merges.txt", "#version: 0.2\na b\n"}},
      ""};
  EXPECT_NE(errorOf(files).find("need a tokenizer_config.json of the class GPT2Tokenizer"),
            std::string::npos);
  files.bytes["tokenizer_config.json"] =
      R"({"tokenizer_class":"GPT2Tokenizer","eos_token":"<e>","chat_template":"x","added_tokens_decoder":{"3":{"content":"<e>","special":true}}})";
  files.bytes["generation_config.json"] = R"({"top_k":5})";
  Tokenizer tokenizer(files);
  EXPECT_EQ(tokenizer.encode("aba<e>"), (Ids{2, 0, 3}));
  EXPECT_EQ(tokenizer.end(), 3);
  EXPECT_EQ(tokenizer.begin(), std::nullopt);
  EXPECT_EQ(tokenizer.chatTemplates().at("default"), "x");
  std::string packed = files.pack();
  TokenizerFiles back = TokenizerFiles::unpack(packed, "the program");
  EXPECT_EQ(back.bytes, files.bytes);
  EXPECT_EQ(back.where, "the program");
  for (size_t size : {size_t(0), size_t(7), packed.size() - 1})
    EXPECT_THROW(TokenizerFiles::unpack(std::string_view(packed).substr(0, size), "it"), Error) << size;
  files.bytes["chat_template.jinja"] = "y";
  files.bytes["special_tokens_map.json"] = R"({"bos_token":{"content":"ab"}})";
  Tokenizer second(files);
  EXPECT_EQ(second.chatTemplates().at("default"), "y");
  EXPECT_EQ(second.begin(), 2);

  TokenizerFiles words = {"folder",
                          {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##able\n"},
                           {"tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})"}},
                          ""};
  EXPECT_EQ(Tokenizer(words).encode("UNABLE x [SEP]"), (Ids{2, 4, 5, 1, 3, 3}));
}

TEST(Tokenizer, RefusesByName) {
  auto changed = [](std::function<void(Json &)> change) {
    Json json = letters({"ab"}, {"a b"});
    change(json);
    return errorOf(fileOf(json.dump()));
  };
  EXPECT_EQ(changed([](Json &) {}), "");
  EXPECT_EQ(changed([](Json &j) { j["model"]["merges"] = {"a b", "a ü"}; }),
            "here: model: BPE: merge 1 of \"a\" and \"ü\": \"ü\" is no token");
  EXPECT_EQ(changed([](Json &j) { j["model"]["merges"] = {"ab"}; }),
            "here: model: BPE: merge 0 got \"ab\", expected two tokens with a blank between them");
  EXPECT_EQ(changed([](Json &j) { j["model"]["vocab"]["x1"] = 0; }),
            "here: model: BPE: vocab: \"a\" and \"x1\" have the id 0");
  EXPECT_EQ(changed([](Json &j) { j["model"]["vocab"]["x1"] = -1; }),
            "here: model: BPE: vocab: the id of \"x1\" is -1, expected 0 to 16777215");
  EXPECT_EQ(changed([](Json &j) { j["model"]["type"] = "Magic"; }),
            "here: model: the model Magic is not supported");
  EXPECT_EQ(changed([](Json &j) { j["model"]["dropout"] = 0.5; }),
            "here: model: BPE: dropout got 0.5, which draws at random: expected none");
  EXPECT_EQ(changed([](Json &j) { j["model"]["magic"] = 1; }),
            "here: model: BPE: has magic, which is not supported");
  EXPECT_EQ(changed([](Json &j) { j["normalizer"] = {{"type", "Magic"}}; }),
            "here: normalizer: the normalizer Magic is not supported");
  EXPECT_EQ(changed([](Json &j) { j["pre_tokenizer"] = {{"type", "UnicodeScripts"}}; }),
            "here: pre_tokenizer: the pre-tokenizer UnicodeScripts is not supported");
  EXPECT_EQ(changed([](Json &j) { j["decoder"] = {{"type", "Magic"}}; }),
            "here: decoder: the decoder Magic is not supported");
  EXPECT_EQ(changed([](Json &j) { j["post_processor"] = {{"type", "Magic"}}; }),
            "here: post_processor: the post-processor Magic is not supported");
  EXPECT_EQ(
      changed([](Json &j) {
        j["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "a("}}}, {"behavior", "Isolated"}};
      }),
      "here: pre_tokenizer: Split: pattern: the pattern a( does not compile: missing closing parenthesis");
  EXPECT_EQ(changed([](Json &j) {
              j["pre_tokenizer"] = {
                  {"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "Sideways"}};
            }),
            "here: pre_tokenizer: Split: behavior got Sideways, expected Removed, Isolated, "
            "MergedWithPrevious, MergedWithNext or Contiguous");
  EXPECT_EQ(
      changed([](Json &j) { j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}; }),
      "here: normalizer: Precompiled: the character map of 3 bytes says that its tree has 0");
  EXPECT_EQ(changed([](Json &j) { j.erase("model"); }), "here: lacks model");
  EXPECT_EQ(changed([](Json &j) { j["surprise"] = 1; }), "here: has surprise, which is not supported");
  EXPECT_EQ(errorOf(fileOf("{\"model\": ")).find("here: parse error at line 1"), 0u);
  EXPECT_EQ(errorOf(fileOf(std::string(100, '[') + "{", "tokenizer.json")),
            "here: more than 64 objects and lists in each other");
  EXPECT_EQ(errorOf(fileOf("{\"a\": \"\xFF\"}")).find("here: parse error"), 0u);
  EXPECT_EQ(errorOf({"here", {}, ""}), "here: there is no tokenizer");
}

TEST(Tokenizer, RefusesWhatIsNoText) {
  Tokenizer tokenizer(fileOf(bytesJson().dump()));
  auto errorOfText = [&](const std::string &text) {
    try {
      tokenizer.encode(text);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(errorOfText("ab\xFF"), "the text: byte 2 (0xFF) is not UTF-8");
  EXPECT_EQ(errorOfText("\xE2\x82"), "the text: byte 0 (0xE2) is not UTF-8");
  EXPECT_EQ(errorOfText("a\xC0\x80"), "the text: byte 1 (0xC0) is not UTF-8");
  EXPECT_EQ(errorOfText("12345678\xED\xA0\x80"), "the text: byte 8 (0xED) is not UTF-8");
  EXPECT_EQ(errorOfText("\xF4\x90\x80\x80"), "the text: byte 0 (0xF4) is not UTF-8");
  EXPECT_THROW(tokenizer.decode({256}), Error);
  EXPECT_THROW(tokenizer.decode({-1}), Error);
}

/// A message of protobuf.
static std::string field(int number, const std::string &bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
static std::string number(int field, int value) {
  std::string key =
      field < 16 ? std::string(1, static_cast<char>(field << 3))
                 : std::string{static_cast<char>((field << 3 & 0x7F) | 0x80), static_cast<char>(field >> 4)};
  return key + static_cast<char>(value);
}
static std::string piece(const std::string &text, float score, int kind) {
  std::string bits(4, '\0');
  std::memcpy(bits.data(), &score, 4);
  return field(1, field(1, text) + "\x15" + bits + number(3, kind));
}

TEST(Tokenizer, ReadsPieces) {
  const std::string sign = "\xE2\x96\x81";
  std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece(sign, -1, 1) +
                       piece("a", -2, 1) + piece("b", -2, 1) + piece("ab", -2.5, 1) +
                       piece(sign + "ab", -3, 1) + piece("<x>", 0, 4);
  Tokenizer unigram(fileOf(pieces + field(2, number(3, 1)), "own.model"));
  EXPECT_EQ(unigram.encode("ab  a"), (Ids{7, 3, 4}));
  EXPECT_EQ(unigram.encode("a<x>cd"), (Ids{3, 4, 8, 0}));
  EXPECT_EQ(unigram.encode("</s>"), Ids{2});
  EXPECT_EQ(unigram.encode("</s>", SpecialTokens::Ignore), (Ids{3, 0}));
  EXPECT_EQ(unigram.decode({7, 3, 4, 0}), "ab a \xE2\x81\x87 ");
  EXPECT_EQ(unigram.begin(), 1);
  Tokenizer merges(fileOf(pieces + field(2, number(3, 2)), "own.model"));
  EXPECT_EQ(merges.encode("ab aab"), (Ids{7, 3, 4, 6}));
  EXPECT_EQ(merges.encode("ab<x>cdab"), (Ids{7, 8, 0, 6}));
  EXPECT_NE(errorOf(fileOf(pieces + field(2, number(3, 4)), "own.model"))
                .find("the model type char (4) is not supported"),
            std::string::npos);
  EXPECT_NE(errorOf(fileOf(pieces + piece("c", 0, 5) + field(2, number(3, 2)), "own.model"))
                .find("piece 9 is not used"),
            std::string::npos);
  EXPECT_NE(errorOf(fileOf(pieces + piece("a", 0, 1), "own.model")).find("has two ids, 4 and 9"),
            std::string::npos);
  EXPECT_NE(errorOf(fileOf(pieces.substr(0, pieces.size() - 2), "own.model")).find("is cut after"),
            std::string::npos);
  EXPECT_NE(errorOf(fileOf(piece("a", 0, 1), "own.model")).find("no piece for what is unknown"),
            std::string::npos);
  EXPECT_NE(errorOf(fileOf("\x07", "own.model")).find("begins no field"), std::string::npos);
}
