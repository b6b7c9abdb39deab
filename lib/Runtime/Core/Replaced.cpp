//===- Replaced.cpp - new values of what no rank holds whole --------------===//

#include "Core/Replaced.h"
#include "Core/InitialValues.h"
#include "Core/SavedState.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Fault.h"

#include <algorithm>

namespace dsopt::runtime {
namespace {
using Files = std::map<std::string, std::shared_ptr<ParameterValues>>;

class ReplacedValues final : public ParameterValues {
public:
  ReplacedValues(const Files &files, std::unique_ptr<ParameterValues> model)
      : files(files), model(std::move(model)) {}
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    auto found = files.find(parameter.name);
    (found == files.end() ? *model : *found->second).read(parameter, begin, end, target);
  }

private:
  const Files &files;
  std::unique_ptr<ParameterValues> model;
};

/// Open as long as it lives, though the checkpoint may go.
class CheckpointTensors final : public ParameterValues {
public:
  CheckpointTensors(const std::string &checkpoint, const Manifest &manifest, ThreadPool &pool)
      : files(checkpoint, &pool, kCheckpointMoment) {
    for (const Parameter &tensor : manifest.tensors)
      tensors.emplace(tensor.name, tensor);
  }
  bool has(const Parameter &parameter) const override { return tensors.count(parameter.name); }
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    files.read(tensors.at(parameter.name), begin, end, target);
  }

private:
  ParameterFiles files;
  std::map<std::string, Parameter> tensors;
};
} // namespace

void Replaced::take(const Program &program, const RankInfo &info, const Addresses &addresses,
                    ThreadPool &pool, const std::string &file, const OriginalNames &names, bool apart) {
  std::shared_ptr<ParameterValues> values = openReplacement(file, program, names, &pool);
  for (const Parameter &parameter : program.parameters)
    if (apart && parameter.trainable && values->has(parameter))
      throw Error(StatusInput,
                  file + ": '" + parameter.name +
                      "' cannot be replaced while each rank has values of its own, before a step "
                      "that joins them");
  fault::point("replace");
  loadParameters(program, info, addresses, *values);
  add(program, values);
}

void Replaced::resume(const Program &program, const std::string &checkpoint, const Manifest &manifest,
                      ThreadPool &pool) {
  add(program, std::make_shared<CheckpointTensors>(checkpoint, manifest, pool));
  std::vector<char> first(sizeof(double)); // which opens the file
  for (const Parameter &tensor : tensors(program))
    read(tensor, 0, std::min<int64_t>(elementsOf(tensor), 1), first.data());
}

bool isNowhereWhole(const ParameterTable &table, const Parameter &parameter) {
  std::vector<Part> parts = partsOf(parameter);
  return !std::all_of(parts.begin(), parts.end(), [&](const Part &part) {
    int64_t position = 0;
    return table.holder(parameter, part, position) != nullptr;
  });
}

void Replaced::add(const Program &program, const std::shared_ptr<ParameterValues> &values) {
  ParameterTable table(program);
  for (const Parameter &parameter : program.parameters)
    if (values->has(parameter) && isNowhereWhole(table, parameter))
      files[parameter.name] = values;
}

std::vector<Parameter> Replaced::tensors(const Program &program) const {
  std::vector<Parameter> all;
  for (const Parameter &parameter : program.parameters) {
    if (!files.count(parameter.name))
      continue;
    Parameter tensor;
    tensor.name = parameter.name;
    tensor.type = parameter.type;
    tensor.shape = parameter.shape;
    tensor.bytes = wholeBytes(tensor);
    all.push_back(std::move(tensor));
  }
  return all;
}

std::unique_ptr<ParameterValues> Replaced::over(std::unique_ptr<ParameterValues> model) const {
  return std::make_unique<ReplacedValues>(files, std::move(model));
}

} // namespace dsopt::runtime
