//===- Compare.cpp - a run beside the log of another ----------------------===//

#include "Compare.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/JsonText.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

using namespace dsopt::runtime;
using Json = nlohmann::json;

/// A number of a log, where those that are not finite are words.
static double numberOf(const Json &value) {
  if (value.is_number())
    return value.get<double>();
  double infinity = std::numeric_limits<double>::infinity();
  return value == "inf" ? infinity : value == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

static bool isSame(float here, double there) {
  return here == static_cast<float>(there) || (std::isnan(here) && std::isnan(there));
}

static std::string both(const char *name, float here, double there) {
  return std::string(name) + " " + jsonNumber(here) + " here, " + jsonNumber(static_cast<float>(there)) +
         " there";
}

Comparison::Comparison(const std::string &path) : path(path) {
  std::ifstream file(path);
  if (!file)
    throw Error(StatusInput, "option -compare: cannot read " + path + ": " + std::strerror(errno));
  auto norms = [](const Json &line, const char *name, std::map<std::string, double> &target) {
    if (line.contains(name) && line[name].is_object())
      for (auto &[parameter, value] : line[name].items())
        target[parameter] = numberOf(value);
  };
  for (std::string text; std::getline(file, text);) {
    Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer())
      continue;
    int64_t step = line["step"];
    if (line.contains("eval_loss"))
      evaluations[step] = numberOf(line["eval_loss"]);
    if (!line.contains("loss"))
      continue;
    Numbers numbers;
    numbers.loss = numberOf(line["loss"]);
    numbers.hasNorm = line.contains("grad_norm");
    if (numbers.hasNorm)
      numbers.gradNorm = numberOf(line["grad_norm"]);
    norms(line, "grad_norms", numbers.gradNorms);
    norms(line, "param_norms", numbers.paramNorms);
    steps[step] = std::move(numbers);
  }
  if (steps.empty() && evaluations.empty())
    throw Error(StatusInput,
                "option -compare: " + path + " holds no step; expected what a run writes with -log");
}

void Comparison::step(const StepResult &result, const Program &program) {
  auto found = steps.find(result.step);
  if (found == steps.end()) {
    ++unknown;
    return;
  }
  ++compared;
  const Numbers &other = found->second;
  std::string differs;
  auto add = [&](const std::string &what) { differs += (differs.empty() ? "" : "; ") + what; };
  if (!isSame(result.loss, other.loss))
    add(both("loss", result.loss, other.loss));
  if (other.hasNorm && !isSame(result.gradNorm, other.gradNorm))
    add(both("gradient norm", result.gradNorm, other.gradNorm));
  auto parameters = [&](const char *name, const std::vector<float> &here,
                        const std::map<std::string, double> &there) {
    int64_t count = 0;
    std::string example;
    for (size_t i = 0; i < here.size() && i < program.parameters.size(); ++i) {
      auto value = there.find(program.parameters[i].name);
      if (value == there.end() || !program.parameters[i].trainable || isSame(here[i], value->second))
        continue;
      if (count++ == 0)
        example = "'" + value->first + "'";
    }
    if (count)
      add(std::string(name) + " of " + example +
          (count > 1 ? " and " + std::to_string(count - 1) + " more parameters" : ""));
  };
  parameters("gradient norms", result.gradNorms, other.gradNorms);
  parameters("parameter norms", result.paramNorms, other.paramNorms);
  double there = static_cast<float>(other.loss);
  double difference = std::fabs(result.loss - there) / std::max(std::fabs(there), 1e-30);
  if (std::isnan(difference))
    difference = isSame(result.loss, there) ? 0 : std::numeric_limits<double>::infinity();
  if (difference > largest) {
    largest = difference;
    largestStep = result.step;
  }
  if (differs.empty()) {
    ++same;
  } else if (first < 0) {
    first = result.step;
    firstText = differs;
  }
}

void Comparison::evaluation(int64_t step, float loss) {
  auto found = evaluations.find(step);
  if (found == evaluations.end())
    return;
  ++evaluated;
  sameEvaluations += isSame(loss, found->second);
}

std::string Comparison::text() const {
  std::string text = "compared with " + path + ": " + std::to_string(same) + " of " +
                     std::to_string(compared) + " steps have the same bits";
  if (evaluated)
    text += ", " + std::to_string(sameEvaluations) + " of " + std::to_string(evaluated) + " evaluations";
  if (unknown)
    text += "; " + std::to_string(unknown) + " steps are not in it";
  if (first >= 0)
    text += "; the first that differs is step " + std::to_string(first) + ": " + firstText;
  if (largestStep >= 0)
    text += "; losses differ by a relative " + jsonNumber(largest, 3) + " at most, in step " +
            std::to_string(largestStep);
  return text;
}

std::string Comparison::json() const {
  return "{\"with\":" + jsonString(path) + ",\"steps\":" + std::to_string(compared) +
         ",\"same\":" + std::to_string(same) + ",\"first\":" + std::to_string(first) +
         ",\"largest\":" + jsonNumber(largest) + ",\"evaluations\":" + std::to_string(evaluated) +
         ",\"same_evaluations\":" + std::to_string(sameEvaluations) + "}";
}
