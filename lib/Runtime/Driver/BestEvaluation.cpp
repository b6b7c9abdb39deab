//===- BestEvaluation.cpp - the best evaluation of a run ------------------===//

#include "BestEvaluation.h"

#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/JsonText.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

using namespace dsopt::runtime;

/// Whether larger values are better, by how the name ends; none: unknown.
static std::optional<bool> isLargerBetter(std::string name) {
  auto endsWith = [&](std::string_view ending) {
    return name.size() >= ending.size() &&
           name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  };
  for (const char *ending : {"loss", "perplexity", "mse", "mae", "rmse", "error", "norm"})
    if (endsWith(ending))
      return false;
  for (const char *ending : {"accuracy", "f1", "precision", "recall", "auc", "r2"})
    if (endsWith(ending))
      return true;
  // top5
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())))
    name.pop_back();
  return endsWith("top") ? std::optional(true) : std::nullopt;
}

BestEvaluation::BestEvaluation(const Program &program, const RunSettings &settings) : settings(settings) {
  std::string asked = settings.bestMetric, way;
  if (size_t colon = asked.rfind(':'); colon != std::string::npos) {
    way = asked.substr(colon + 1);
    asked.resize(colon);
    if (way != "min" && way != "max")
      throw Error(StatusInput, "option -best-metric=" + settings.bestMetric +
                                   ": expected :min or :max at its end, got :" + way);
  }
  if (asked.rfind("eval_", 0) == 0)
    asked.erase(0, 5);
  auto found = std::find_if(program.metrics.begin(), program.metrics.end(),
                            [&](const Metric &metric) { return metric.name == asked; });
  place = asked == "loss" ? -1 : found - program.metrics.begin();
  if (asked != "loss" && found == program.metrics.end()) {
    std::string names = "loss";
    for (const Metric &metric : program.metrics)
      names += ", " + metric.name;
    throw Error(StatusInput, "option -best-metric: the program does not measure '" + asked +
                                 "', it measures " + names + "; -metric=" + asked + " compiles one in");
  }
  std::optional<bool> known = way.empty() ? isLargerBetter(asked) : std::optional(way == "max");
  if (!known)
    throw Error(StatusInput, "option -best-metric=" + asked +
                                 ": whether it is better when it is smaller or larger is not known; "
                                 "give -best-metric=" +
                                 asked + ":min or :max");
  isLarger = *known;
  name = "eval_" + asked;
}

double BestEvaluation::before() const {
  std::ifstream file(settings.save + "/best.json");
  nlohmann::json before = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  bool isOurs = settings.resumed && settings.keepBest && before.is_object() && before.contains("metric") &&
                before["metric"] == name && before.contains("value") && before["value"].is_number();
  return isOurs ? before["value"].get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void BestEvaluation::goOn(double before) {
  isKnown = std::isfinite(before);
  best = isKnown ? before : 0;
}

bool BestEvaluation::see(const Evaluation &evaluation) {
  double value = place < 0 ? evaluation.loss : evaluation.metrics[place];
  bool isBetter = std::isfinite(value) && (!isKnown || (isLarger ? value > best : value < best));
  waited = isBetter ? 0 : waited + 1;
  if (isBetter)
    best = value;
  isKnown |= isBetter;
  return isBetter;
}

std::string BestEvaluation::reasonToStop() const {
  if (!settings.stopAfter || waited < settings.stopAfter)
    return "";
  return name +
         (isKnown ? " has not improved on " + jsonNumber(static_cast<float>(best)) : " was no number") +
         " in " + std::to_string(waited) + (waited == 1 ? " evaluation" : " evaluations");
}

void BestEvaluation::record(int64_t step) const {
  std::string text = "{\"metric\": " + jsonString(name) +
                     ", \"value\": " + jsonNumber(static_cast<float>(best)) +
                     ", \"step\": " + std::to_string(step) + "}\n";
  AtomicFile file(settings.save + "/best.json");
  file.append(text.data(), text.size());
  file.commit();
}
