//===- GenerationConfig.cpp - what a model says of its answers ------------===//

#include "Generate/GenerationConfig.h"

#include "dsopt/Runtime/Error.h"

#include <nlohmann/json.hpp>

using namespace dsopt::runtime;

namespace {
/// The members of the file, each of the type that it should have.
class Config {
public:
  explicit Config(const std::string &json)
      : members(nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false)) {
    if (!members.is_object())
      throw Error(StatusInput, "generation_config.json is no object in JSON");
  }
  bool flag(const char *name) const {
    const nlohmann::json *value = find(name);
    if (value && !value->is_boolean())
      wrong(name, "true or false");
    return value && value->get<bool>();
  }
  std::optional<double> number(const char *name) const {
    const nlohmann::json *value = find(name);
    if (value && !value->is_number())
      wrong(name, "a number");
    return value ? std::optional(value->get<double>()) : std::nullopt;
  }
  std::optional<int64_t> integer(const char *name) const {
    const nlohmann::json *value = find(name);
    if (value && !value->is_number_integer())
      wrong(name, "a whole number");
    return value ? std::optional(value->get<int64_t>()) : std::nullopt;
  }
  /// One token or several.
  std::vector<int64_t> tokens(const char *name) const {
    const nlohmann::json *value = find(name);
    if (!value)
      return {};
    std::vector<int64_t> result;
    for (const nlohmann::json &one : value->is_array() ? *value : nlohmann::json::array({*value})) {
      if (!one.is_number_integer())
        wrong(name, "tokens");
      result.push_back(one.get<int64_t>());
    }
    return result;
  }

private:
  const nlohmann::json *find(const char *name) const {
    auto found = members.find(name);
    return found == members.end() || found->is_null() ? nullptr : &*found;
  }
  [[noreturn]] static void wrong(const char *name, const char *expected) {
    throw Error(StatusInput, std::string("generation_config.json: ") + name + " is not " + expected);
  }
  nlohmann::json members;
};
} // namespace

void dsopt::runtime::applyGenerationConfig(const std::string &json, const ParsedOptions &options,
                                           SamplingOptions &sampling, std::optional<int64_t> &newTokens) {
  if (json.empty())
    return;
  Config config(json);
  if (sampling.endTokens.empty())
    sampling.endTokens = config.tokens("eos_token_id");
  if (!options.has("repetition-penalty"))
    sampling.repetitionPenalty = config.number("repetition_penalty").value_or(1);
  if (!newTokens)
    newTokens = config.integer("max_new_tokens");
  bool isAsked = false;
  for (const char *name : {"temperature", "top-k", "top-p", "min-p", "n", "seed"})
    isAsked |= options.has(name);
  if (isAsked || !config.flag("do_sample"))
    return;
  constexpr int64_t kTopK = 50; // transformers' own
  sampling.temperature = config.number("temperature").value_or(1);
  sampling.topK = config.integer("top_k").value_or(kTopK);
  sampling.topP = config.number("top_p").value_or(1);
  sampling.minP = config.number("min_p").value_or(0);
}
