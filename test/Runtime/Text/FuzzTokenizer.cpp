//===- FuzzTokenizer.cpp - tokenizers' files of every kind ----------------===//
//
// The first byte says which kind. What is read encodes a text, and what comes of it is
// decoded as a whole and token by token.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "dsopt/Runtime/Tokenizer.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

static const char *const kNames[] = {"tokenizer.json", "own.model", "gpt2.tiktoken", "tekken.json"};

std::vector<std::string> dsopt::test::fuzzSeeds() {
  std::string bpe =
      R"({"added_tokens":[{"id":9,"content":"<s>","special":true,"lstrip":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"BertNormalizer"}]},)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\p{L}+|[^\\s\\p{N}]"},"behavior":"MergedWithNext"},{"type":"Metaspace"}]},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[9]}}},)"
      R"("decoder":{"type":"Sequence","decoders":[{"type":"Metaspace"},{"type":"Strip","content":"a","start":1,"stop":1},{"type":"CTC"}]},)"
      R"("model":{"type":"BPE","unk_token":"a","fuse_unk":true,"byte_fallback":true,"vocab":{"a":0,"b":1,"ab":2,"<0x41>":3,"▁":4},"merges":["a b"]}})";
  std::string unigram =
      R"({"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"type":"Unigram","unk_id":0,"vocab":[["a",-1.0],["b",-2.5],["ab",-3.0]]}})";
  std::string words =
      R"({"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece"},"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"a":1,"##b":2}}})";
  std::string pieces = std::string("\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02", 16) +
                       std::string("\n\x0a\n\x01"
                                   "a\x15\0\0\x80\xbf\x18\x01",
                                   12) +
                       std::string("\x12\x02\x18\x01", 4) + std::string("\x1a\x04\x18\x01\x20\x01", 6);
  std::string merged = pieces;
  merged[merged.size() - 7] = 2;
  std::string ranks;
  return {"0" + bpe,
          "0" + unigram,
          "0" + words,
          "1" + pieces,
          "1" + merged,
          "2YQ== 0\nYg== 1\nYWI= 2\n",
          "3{\"config\":{\"pattern\":\"a+\",\"default_vocab_size\":300,\"default_num_special_tokens\":4},"
          "\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"}]}"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view rest = viewOf(data, size);
  if (rest.empty())
    return 0;
  std::string name = kNames[rest[0] & 3];
  TokenizerFiles files = {"fuzz", {{name, std::string(rest.substr(1))}}, ""};
  try {
    Tokenizer tokenizer(files);
    for (const char *text : {"ab a  b<s>x", "ünï 日本 \xF0\x9F\x91\x8D 12\n\n"}) {
      std::vector<int32_t> ids = tokenizer.encode(text);
      tokenizer.decode(ids, false);
      DecodeStream stream(tokenizer);
      for (int32_t id : ids)
        stream.add(id);
      stream.finish();
    }
  } catch (const Error &) {
  }
  return 0;
}
