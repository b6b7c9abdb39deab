//===- SourceTypes.cpp - trained weights in the model's own types ---------===//

#include "Core/FloatTypes.h"
#include "dsopt/Runtime/Checkpoint.h"

using namespace dsopt::runtime;

/// The parameter as the model has it.
static Parameter inSourceType(Parameter parameter) {
  if (!parameter.source.empty())
    parameter.type = parameter.source;
  parameter.bytes = wholeBytes(parameter);
  return parameter;
}

std::vector<Parameter> dsopt::runtime::inSourceTypes(std::vector<Parameter> parameters) {
  for (Parameter &parameter : parameters)
    parameter = inSourceType(std::move(parameter));
  return parameters;
}

namespace {
class Narrowing : public ParameterSink {
public:
  explicit Narrowing(std::unique_ptr<ParameterSink> sink) : sink(std::move(sink)) {}

  void parameter(const Parameter &parameter, const char *value) override {
    Parameter form = inSourceType(parameter);
    if (form.type == parameter.type)
      return sink->parameter(form, value);
    std::vector<uint16_t> narrow(form.bytes / sizeof(uint16_t));
    for (size_t i = 0; i < narrow.size(); ++i) {
      float wide;
      std::memcpy(&wide, value + i * sizeof wide, sizeof wide);
      narrow[i] = narrowed(form.type, wide);
    }
    sink->parameter(form, reinterpret_cast<const char *>(narrow.data()));
  }
  void finish() override { sink->finish(); }

private:
  std::unique_ptr<ParameterSink> sink;
};
} // namespace

std::unique_ptr<ParameterSink> dsopt::runtime::inSourceTypes(std::unique_ptr<ParameterSink> sink) {
  return std::make_unique<Narrowing>(std::move(sink));
}
