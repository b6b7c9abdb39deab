//===- Prompts.cpp - texts that are asked for on a command line -----------===//

#include "dsopt/Runtime/Prompts.h"
#include "Data/MappedFile.h"
#include "JsonFields.h"
#include "dsopt/Runtime/ChatTemplate.h"
#include "dsopt/Runtime/Error.h"

#include <filesystem>
#include <iostream>
#include <iterator>

using namespace dsopt::runtime;
using namespace dsopt::runtime::text;

TokenizerFiles dsopt::runtime::tokenizerFiles(const ParsedOptions &options, const std::string &model) {
  std::string path = options.text("tokenizer", model);
  if (path.empty())
    throw Error(StatusInput, "no tokenizer is given: a model with one beside it, or -tokenizer=FILE|DIR");
  bool isModel = std::filesystem::path(path).extension() == ".onnx";
  if (isModel) {
    std::filesystem::path folder = std::filesystem::path(path).parent_path();
    path = folder.empty() ? "." : folder.string();
  }
  TokenizerFiles files = TokenizerFiles::read(path);
  files.pattern = options.text("tokenizer-pattern");
  return files;
}

TokenizerFiles dsopt::runtime::answerFiles(const ParsedOptions &options, TokenizerFiles own) {
  bool isGiven = options.has("tokenizer");
  TokenizerFiles files = isGiven ? tokenizerFiles(options, "") : std::move(own);
  if (auto config = own.bytes.find("generation_config.json"); isGiven && config != own.bytes.end())
    files.bytes.insert(*config);
  if (options.has("tokenizer-pattern"))
    files.pattern = options.text("tokenizer-pattern");
  return files;
}

static std::string readWhole(const std::string &path) {
  MappedFile file(path, "a file of text");
  return std::string(reinterpret_cast<const char *>(file.data()), file.size());
}

static std::string readWhole(std::istream &stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

/// One line of -prompts: "text", {"prompt":"text"} or {"messages":[..]}.
static void usePrompt(const std::string &line, const std::string &place, const Tokenizer &tokenizer,
                      const std::function<void(const std::string &, bool)> &use) {
  Json parsed = parseJson(line, place);
  if (parsed.is_string())
    return use(parsed.get<std::string>(), false);
  Fields fields(parsed, place);
  if (!fields.find("messages")) {
    std::string text = fields.text("prompt");
    fields.finish();
    return use(text, false);
  }
  // Templates see members in the order that they were written in.
  auto json = nlohmann::ordered_json::parse(line);
  auto found = tokenizer.chatTemplates().find("default");
  if (found == tokenizer.chatTemplates().end())
    throw Error(StatusInput, place + " has messages, and the tokenizer has no chat template");
  ChatTemplate::Settings settings;
  settings.tokens = tokenizer.namedTokens();
  settings.addGenerationPrompt = fields.flag("add_generation_prompt", true);
  if (fields.find("tools"))
    settings.tools = json["tools"].dump();
  auto variables = json;
  for (const char *known : {"messages", "tools", "add_generation_prompt"})
    variables.erase(known);
  settings.variables = variables.dump();
  use(ChatTemplate(found->second).render(json["messages"].dump(), settings), true);
}

void dsopt::runtime::forPrompts(const ParsedOptions &options, const Tokenizer &tokenizer,
                                const std::function<void(const std::string &, bool)> &use) {
  if (options.has("prompt") && options.has("prompts"))
    throw Error(StatusInput, "-prompt and -prompts exclude each other");
  if (options.has("prompt")) {
    std::string prompt = options.text("prompt");
    return use(prompt == "-"                         ? readWhole(std::cin)
               : !prompt.empty() && prompt[0] == '@' ? readWhole(prompt.substr(1))
                                                     : prompt,
               false);
  }
  std::string path = options.text("prompts");
  if (path.empty()) {
    for (std::string line; std::getline(std::cin, line);)
      use(line, false);
    return;
  }
  std::string lines = readWhole(path);
  size_t number = 0;
  for (size_t at = 0, end; at < lines.size(); at = end + 1) {
    end = std::min(lines.find('\n', at), lines.size());
    usePrompt(lines.substr(at, end - at), path + ": line " + std::to_string(++number), tokenizer, use);
  }
}
