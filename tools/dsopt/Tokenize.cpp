//===- Tokenize.cpp - `dsopt tokenize` ------------------------------------===//

#include "Tokenize.h"

#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Prompts.h"
#include "dsopt/Runtime/Tokenizer.h"
#include "llvm/Support/JSON.h"

#include <iostream>

using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;
using runtime::SpecialTokens;
using runtime::Tokenizer;

static SpecialTokens specialTokens(const ParsedOptions &options) {
  std::string text = options.text("special-tokens");
  return text == "ignore"      ? SpecialTokens::Ignore
         : text == "recognize" ? SpecialTokens::Recognize
                               : SpecialTokens::Add;
}

/// `text` in quotes; bytes that are no UTF-8 are shown as U+FFFD.
static void printQuoted(const std::string &text, llvm::raw_ostream &out) {
  llvm::json::OStream(out).value(llvm::json::fixUTF8(text));
}

static void printIds(const std::vector<int32_t> &ids, llvm::raw_ostream &out) {
  llvm::interleave(ids, out, " ");
  out << "\n";
}

/// Each token as the vocabulary has it, with its id.
static void printPieces(const Tokenizer &tokenizer, const std::vector<int32_t> &ids, llvm::raw_ostream &out) {
  llvm::interleave(
      ids,
      [&](int32_t id) {
        printQuoted(*tokenizer.textOf(id), out);
        out << ":" << id;
      },
      [&] { out << " "; });
  out << "\n";
}

/// Each line of standard input is ids with blanks between them.
static void decodeLines(const ParsedOptions &options, const Tokenizer &tokenizer, llvm::raw_ostream &out) {
  bool skips = options.text("special-tokens") == "ignore";
  size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    std::vector<int32_t> ids;
    llvm::SmallVector<llvm::StringRef> words;
    llvm::StringRef(line).split(words, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef word : words)
      if (word.getAsInteger(10, ids.emplace_back()))
        throw Error(1, "line " + std::to_string(number) + " got '" + word.str() + "', expected ids");
    std::string text = tokenizer.decode(ids, skips);
    if (options.text("decode") == "json")
      printQuoted(text, out);
    else
      out << text;
    out << "\n";
  }
}

int dsopt::tokenize(const ParsedOptions &options, llvm::raw_ostream &out) {
  if (options.positionals.size() > 1)
    throw Error(1,
                "got " + std::to_string(options.positionals.size()) + " models or tokenizers, expected one");
  std::string model = options.positionals.empty() ? "" : options.positionals[0];
  if (options.has("decode") && (options.has("prompt") || options.has("prompts") || options.has("pieces")))
    throw Error(1, "-decode reads ids from standard input, without -prompt, -prompts and -pieces");
  Tokenizer tokenizer(runtime::tokenizerFiles(options, model));
  if (options.has("decode")) {
    decodeLines(options, tokenizer, out);
    return 0;
  }
  SpecialTokens special = specialTokens(options);
  runtime::forPrompts(options, tokenizer, [&](const std::string &text, bool isChat) {
    bool isAdded = isChat && special == SpecialTokens::Add;
    std::vector<int32_t> ids = tokenizer.encode(text, isAdded ? SpecialTokens::Recognize : special);
    if (options.has("pieces"))
      printPieces(tokenizer, ids, out);
    else
      printIds(ids, out);
  });
  return 0;
}
