//===- Parts.h - a tokenizer as its files say it ----------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_TEXT_PARTS_H
#define DSOPT_LIB_RUNTIME_TEXT_PARTS_H

#include "AddedTokens.h"
#include "dsopt/Runtime/Tokenizer.h"

namespace dsopt::runtime::text {

/// What a reader of files fills.
struct TokenizerParts {
  std::unique_ptr<Normalizer> normalizer;     ///< none: texts as they are
  std::unique_ptr<PreTokenizer> preTokenizer; ///< none: texts are one piece
  std::unique_ptr<Model> model;
  std::unique_ptr<Decoder> decoder; ///< none where `isJoined`, else tokens with blanks between them
  bool isJoined = false;
  AddedTokens added;
  std::vector<int32_t> before, after; ///< added to texts
  std::map<std::string, std::string> named;
};

TokenizerParts readTokenizerJson(const Json &json, const std::string &where);
TokenizerParts readSentencePiece(std::string_view bytes, const std::string &where);
/// `name` is the file's, of which a known pattern follows; `pattern` is what was asked for.
TokenizerParts readTiktoken(std::string_view bytes, const std::string &name, const std::string &pattern,
                            const std::string &where);
bool isTiktoken(std::string_view bytes);
TokenizerParts readTekken(const Json &json, const std::string &where);

/// A tokenizer.json of vocab.json and merges.txt, or of vocab.txt.
Json makeBpeJson(std::string_view vocab, std::string_view merges, const Json &config,
                 const std::string &where);
Json makeWordPieceJson(std::string_view vocab, const Json &config, const std::string &where);

} // namespace dsopt::runtime::text

#endif // DSOPT_LIB_RUNTIME_TEXT_PARTS_H
