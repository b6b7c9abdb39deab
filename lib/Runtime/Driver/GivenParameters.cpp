//===- GivenParameters.cpp - what a run gives of its parameters -----------===//

#include "GivenParameters.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <algorithm>

using namespace dsopt::runtime;

/// Writes all of these parameters but constants.
static std::unique_ptr<ParameterSink> weightsWriter(Run &run, const std::string &file,
                                                    std::vector<Parameter> weights) {
  auto isConstant = [](const Parameter &one) { return one.constant; };
  weights.erase(std::remove_if(weights.begin(), weights.end(), isConstant), weights.end());
  return makeSafetensorsWriter(file, weights, originalNames(run.object.model(), run.object.modelBytes()));
}

std::string dsopt::runtime::giveParameters(Run &run, Session &session, bool writes) {
  const RunSettings &settings = run.settings;
  if (settings.log.empty() && settings.saveWeights.empty() && settings.saveOnnx.empty())
    return "";
  std::vector<Parameter> given = inSourceTypes(run.program().parameters);
  std::vector<std::unique_ptr<ParameterSink>> sinks;
  ParameterSink *model = nullptr; // wants constants, too
  WeightsHash *hash = nullptr;
  if (writes && !settings.log.empty()) {
    auto sink = std::make_unique<WeightsHash>();
    hash = sink.get();
    sinks.push_back(std::move(sink));
  }
  if (writes && !settings.saveWeights.empty())
    sinks.push_back(inSourceTypes(weightsWriter(run, settings.saveWeights, given)));
  if (writes && !settings.saveOnnx.empty()) {
    sinks.push_back(
        inSourceTypes(makeOnnxWriter(settings.saveOnnx, run.object.model(), run.object.modelBytes(), given)));
    model = sinks.back().get();
  }
  session.visitParameters([&](const Parameter &parameter, const char *value) {
    for (auto &sink : sinks)
      if (!parameter.constant || sink.get() == model)
        sink->parameter(parameter, value);
  });
  for (auto &sink : sinks)
    sink->finish();
  return hash ? hash->hex() : "";
}

void dsopt::runtime::writeWeights(Run &run, Session &session, const std::string &file, bool writes) {
  std::unique_ptr<ParameterSink> sink = writes ? weightsWriter(run, file, run.program().parameters) : nullptr;
  session.visitParameters([&](const Parameter &parameter, const char *value) {
    if (sink && !parameter.constant)
      sink->parameter(parameter, value);
  });
  if (sink)
    sink->finish();
}
