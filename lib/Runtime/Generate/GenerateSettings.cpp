//===- GenerateSettings.cpp - what to go on from, and how ------------------===//

#include "Generate/GenerateSettings.h"

#include "Generate/Prompts.h"

#include <algorithm>
#include <cmath>
#include <sstream>

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

GenerateSettings dsopt::runtime::resolveGenerate(const Program &program, const ParsedOptions &options) {
  GenerateSettings settings;
  settings.answer.sampling = resolveSampling(options);
  settings.answer.ignoresEnd = options.has("ignore-eos");
  if (options.has("max-new-tokens"))
    settings.newTokens = options.integer("max-new-tokens");
  settings.answers = options.integer("n", 1);
  if (settings.answers > 1 && settings.answer.sampling.temperature == 0)
    throw wrong("option -n=" + std::to_string(settings.answers) +
                " asks for several answers, which at temperature 0 would be one and the same");
  if (settings.newTokens && settings.answer.sampling.minNewTokens > *settings.newTokens)
    throw wrong("option -min-new-tokens=" + std::to_string(settings.answer.sampling.minNewTokens) +
                ": expected at most the " + std::to_string(*settings.newTokens) + " of -max-new-tokens");
  settings.promptIds = options.text("prompt-ids");
  if (settings.promptIds.empty())
    throw wrong("there is no prompt: give -prompt-ids=FILE.npz");
  settings.saveOutputs = options.text("save-outputs");
  settings.saveLogits = options.has("save-logits");
  if (settings.saveLogits && settings.saveOutputs.empty())
    throw wrong("option -save-logits needs -save-outputs=FILE.npz, where they are written");
  settings.quiet = options.has("quiet");
  int64_t vocabulary = program.outputs[0].shape.back();
  auto check = [&](const char *option, int64_t token) {
    if (token >= vocabulary)
      throw wrong(std::string("option -") + option + ": the model has no token " + std::to_string(token) +
                  ", expected 0 to " + std::to_string(vocabulary - 1));
  };
  for (auto [token, bias] : settings.answer.sampling.bias)
    check("logit-bias", token);
  for (int64_t token : settings.answer.sampling.endTokens)
    check("stop-ids", token);
  return settings;
}

std::vector<Sequence> dsopt::runtime::makeSequences(const Program &program, GenerateSettings &settings,
                                                    const std::vector<std::vector<int64_t>> &prompts) {
  size_t longest = 0;
  for (const std::vector<int64_t> &prompt : prompts)
    longest = std::max(longest, prompt.size());
  int64_t room = program.context - static_cast<int64_t>(longest);
  settings.answer.newTokens = settings.newTokens.value_or(std::max<int64_t>(1, std::min(room, kNewTokens)));
  int64_t vocabulary = 0;
  for (const Input &input : program.inputs)
    vocabulary = std::max(vocabulary, input.bound);
  checkPrompts(prompts, vocabulary, settings.answer.newTokens, program.context);
  std::vector<Sequence> sequences;
  for (size_t number = 0; number < prompts.size(); ++number)
    for (int64_t answer = 0; answer < settings.answers; ++answer) {
      Sequence sequence;
      sequence.prompt = static_cast<int64_t>(number);
      sequence.answer = static_cast<int64_t>(sequences.size());
      sequence.tokens = prompts[number];
      sequence.given = static_cast<int64_t>(sequence.tokens.size());
      sequences.push_back(std::move(sequence));
    }
  return sequences;
}
