//===- GenerateSettings.cpp - what to go on from, and how ------------------===//

#include "Generate/GenerateSettings.h"

#include "Generate/GenerationConfig.h"
#include "dsopt/Runtime/ChatTemplate.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/Prompts.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <unistd.h>

using namespace dsopt::runtime;

/// Of an answer, where nothing is said and there is room.
static constexpr int64_t kNewTokens = 256;

static Error wrong(const std::string &text) { return Error(StatusInput, text); }

/// A number within bounds.
static double within(const ParsedOptions &options, const std::string &name, double least, double most,
                     const char *expected) {
  double value = options.number(name);
  if (!(value >= least && value <= most))
    throw wrong("option -" + name + "=" + options.text(name) + ": expected " + expected);
  return value;
}

static int64_t parseToken(const std::string &option, const std::string &text) {
  int64_t token = 0;
  if (!parseSize(text, 1000, token))
    throw wrong("option -" + option + ": '" + text + "' is no token, expected its number");
  return token;
}

/// The parts between commas of what an option was given, each time.
static std::vector<std::string> partsOf(const ParsedOptions &options, const std::string &name) {
  std::vector<std::string> parts;
  for (const std::string &given : options.list(name)) {
    std::istringstream stream(given);
    for (std::string part; std::getline(stream, part, ',');)
      parts.push_back(part);
  }
  return parts;
}

static SamplingOptions resolveSampling(const ParsedOptions &options) {
  constexpr double kMost = 1e30;
  SamplingOptions sampling;
  // Any of these asks for draws, for which the others have their neutral values.
  for (const char *name : {"temperature", "top-k", "top-p", "min-p", "n", "seed"})
    if (options.has(name))
      sampling.temperature = 1;
  if (options.has("temperature"))
    sampling.temperature = within(options, "temperature", 0, kMost, "0 (the likeliest token) or more");
  sampling.topK = options.integer("top-k");
  sampling.topP = options.has("top-p") ? within(options, "top-p", 1e-30, 1, "more than 0, at most 1") : 1;
  sampling.minP = options.has("min-p") ? within(options, "min-p", 0, 1, "0 to 1") : 0;
  if (options.has("repetition-penalty"))
    sampling.repetitionPenalty = within(options, "repetition-penalty", 1e-30, kMost, "more than 0");
  if (options.has("presence-penalty"))
    sampling.presencePenalty = within(options, "presence-penalty", -kMost, kMost, "a number");
  if (options.has("frequency-penalty"))
    sampling.frequencyPenalty = within(options, "frequency-penalty", -kMost, kMost, "a number");
  sampling.seed = options.integer("seed");
  sampling.minNewTokens = options.integer("min-new-tokens");
  for (const std::string &one : partsOf(options, "logit-bias")) {
    size_t colon = one.find(':');
    char *end = nullptr;
    double bias = colon == std::string::npos ? 0 : std::strtod(one.c_str() + colon + 1, &end);
    if (colon == std::string::npos || end == one.c_str() + colon + 1 || *end || !std::isfinite(bias))
      throw wrong("option -logit-bias: '" + one + "', expected TOKEN:NUMBER");
    sampling.bias.emplace_back(parseToken("logit-bias", one.substr(0, colon)), bias);
  }
  for (const std::string &one : partsOf(options, "stop-ids"))
    sampling.endTokens.push_back(parseToken("stop-ids", one));
  return sampling;
}

/// What the program carries, else what lies beside the model: all of it, or generation_config.json alone.
static TokenizerFiles ownFiles(const Program &program, bool all) {
  if (!program.texts.empty())
    return TokenizerFiles::unpack(program.texts, "the tokenizer in this program");
  std::string beside = program.model_folder.empty() ? "." : program.model_folder;
  std::string path = all ? beside : beside + "/generation_config.json";
  if (access(path.c_str(), F_OK) == 0)
    return TokenizerFiles::read(path);
  TokenizerFiles none;
  none.where = beside;
  return none;
}

/// What tokens are below; 0: nothing says so.
static int64_t boundOfTokens(const Program &program) {
  int64_t bound = 0;
  for (const Input &input : program.inputs)
    bound = std::max(bound, input.bound);
  return bound;
}

static std::shared_ptr<const Tokenizer> openTokenizer(const Program &program, const TokenizerFiles &files) {
  auto tokenizer = std::make_shared<Tokenizer>(files);
  int64_t rows = boundOfTokens(program);
  if (rows && tokenizer->vocabularySize() > rows)
    throw wrong("the tokenizer has " + std::to_string(tokenizer->vocabularySize()) +
                " tokens, expected at most the " + std::to_string(rows) + " of the model's embedding");
  return tokenizer;
}

static std::vector<int64_t> tokensOf(const Tokenizer &tokenizer, const std::string &text, bool isChat) {
  std::vector<int32_t> ids = tokenizer.encode(text, isChat ? SpecialTokens::Recognize : SpecialTokens::Add);
  return {ids.begin(), ids.end()};
}

std::string dsopt::runtime::chatTurn(const std::string &role, const std::string &text) {
  return "{\"role\":" + jsonString(role) + ",\"content\":" + jsonString(text) + "}";
}

Prompt dsopt::runtime::promptOfChat(const GenerateSettings &settings, const std::string &turns) {
  const Tokenizer &tokenizer = *settings.tokenizer;
  auto found = tokenizer.chatTemplates().find("default");
  if (found == tokenizer.chatTemplates().end())
    throw wrong("option -chat: the tokenizer has no chat template");
  ChatTemplate::Settings with;
  with.tokens = tokenizer.namedTokens();
  std::string text = ChatTemplate(found->second).render("[" + turns + "]", with);
  return {tokensOf(tokenizer, text, /*isChat=*/true), text};
}

/// Prompts as text, or as tokens, by whichever option gives them.
static void readPrompts(const ParsedOptions &options, GenerateSettings &settings) {
  if (options.has("prompt-ids")) {
    settings.prompts = readPromptIds(options.text("prompt-ids"));
    return;
  }
  std::string system = settings.system.empty() ? "" : chatTurn("system", settings.system) + ",";
  forPrompts(options, *settings.tokenizer, [&](const std::string &text, bool isChat) {
    if (settings.isChat && !isChat)
      settings.prompts.push_back(promptOfChat(settings, system + chatTurn("user", text)));
    else
      settings.prompts.push_back({tokensOf(*settings.tokenizer, text, isChat), text});
  });
  if (settings.prompts.empty())
    throw wrong(
        "there is no prompt: give -prompt=TEXT, -prompts=FILE.jsonl or -prompt-ids=FILE.npz, or lines on "
        "standard input");
}

/// Options that contradict each other.
static void checkAgreement(const ParsedOptions &options, const GenerateSettings &settings) {
  const SamplingOptions &sampling = settings.answer.sampling;
  if (settings.answers > 1 && sampling.temperature == 0)
    throw wrong("option -n=" + std::to_string(settings.answers) +
                " asks for several answers, which at temperature 0 would be one and the same");
  if (settings.newTokens && sampling.minNewTokens > *settings.newTokens)
    throw wrong("option -min-new-tokens=" + std::to_string(sampling.minNewTokens) +
                ": expected at most the " + std::to_string(*settings.newTokens) + " of -max-new-tokens");
  if (options.has("prompt-ids"))
    for (const char *name : {"prompt", "prompts", "chat"})
      if (options.has(name))
        throw wrong(std::string("options -prompt-ids and -") + name +
                    " exclude each other: one gives tokens, the other text");
  if (options.has("system") && !settings.isChat)
    throw wrong("option -system is what a conversation begins with: it needs -chat");
  if (settings.saveLogits && settings.saveOutputs.empty())
    throw wrong("option -save-logits needs -save-outputs=FILE.npz, where they are written");
  if (settings.isInteractive && !settings.saveOutputs.empty())
    throw wrong("option -save-outputs needs prompts that are known from the start: -prompt, -prompts or "
                "-prompt-ids");
}

/// Tokens that options and files name are the model's.
static void checkTokens(const Program &program, const SamplingOptions &sampling) {
  int64_t vocabulary = program.outputs[0].shape.back();
  auto check = [&](const std::string &what, int64_t token) {
    if (token < 0 || token >= vocabulary)
      throw wrong(what + ": the model has no token " + std::to_string(token) + ", expected 0 to " +
                  std::to_string(vocabulary - 1));
  };
  for (auto [token, bias] : sampling.bias)
    check("option -logit-bias", token);
  for (int64_t token : sampling.endTokens)
    check("end tokens (-stop-ids, generation_config.json)", token);
}

GenerateSettings dsopt::runtime::resolveGenerate(const Program &program, const ParsedOptions &options,
                                                 bool reads) {
  GenerateSettings settings;
  SamplingOptions &sampling = settings.answer.sampling;
  sampling = resolveSampling(options);
  settings.answer.ignoresEnd = options.has("ignore-eos");
  if (options.has("max-new-tokens"))
    settings.newTokens = options.integer("max-new-tokens");
  settings.answers = options.integer("n", 1);
  settings.isChat = options.has("chat");
  settings.system = options.text("system");
  settings.stops = options.list("stop");
  settings.echoes = options.has("echo");
  if (options.has("logprobs"))
    settings.logprobs = options.integer("logprobs");
  settings.saveOutputs = options.text("save-outputs");
  settings.saveLogits = options.has("save-logits");
  settings.quiet = options.has("quiet");
  bool isText = !options.has("prompt-ids");
  settings.isInteractive =
      isText && !options.has("prompt") && !options.has("prompts") && isatty(STDIN_FILENO);
  checkAgreement(options, settings);
  bool isNeeded = isText || !settings.stops.empty() || settings.echoes, isGiven = options.has("tokenizer");
  TokenizerFiles files = answerFiles(options, ownFiles(program, isNeeded && !isGiven));
  if (isNeeded || isGiven)
    settings.tokenizer = openTokenizer(program, files);
  applyGenerationConfig(files.bytes["generation_config.json"], options, sampling, settings.newTokens);
  if (settings.tokenizer && sampling.endTokens.empty() && settings.tokenizer->end())
    sampling.endTokens.push_back(*settings.tokenizer->end());
  checkTokens(program, sampling);
  if (reads && !settings.isInteractive)
    readPrompts(options, settings);
  return settings;
}

std::vector<Sequence> dsopt::runtime::makeSequences(const Program &program, GenerateSettings &settings) {
  size_t longest = 0;
  for (const Prompt &prompt : settings.prompts)
    longest = std::max(longest, prompt.tokens.size());
  int64_t room = program.context - static_cast<int64_t>(longest);
  settings.answer.newTokens = settings.newTokens.value_or(std::max<int64_t>(1, std::min(room, kNewTokens)));
  checkPrompts(settings.prompts, boundOfTokens(program), settings.answer.newTokens, program.context);
  std::vector<Sequence> sequences;
  for (size_t number = 0; number < settings.prompts.size(); ++number)
    for (int64_t answer = 0; answer < settings.answers; ++answer) {
      Sequence sequence;
      sequence.prompt = static_cast<int64_t>(number);
      sequence.answer = static_cast<int64_t>(sequences.size());
      sequence.tokens = settings.prompts[number].tokens;
      sequence.given = static_cast<int64_t>(sequence.tokens.size());
      sequences.push_back(std::move(sequence));
    }
  return sequences;
}
