//===- Replaced.cpp - new values of what no rank holds whole --------------===//

#include "Core/Replaced.h"
#include "Core/InitialValues.h"
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
  ParameterTable table(program);
  for (const Parameter &parameter : program.parameters) {
    std::vector<Part> parts = partsOf(parameter);
    bool isHeld = std::all_of(parts.begin(), parts.end(), [&](const Part &part) {
      int64_t position = 0;
      return table.holder(parameter, part, position) != nullptr;
    });
    if (!isHeld && values->has(parameter))
      files[parameter.name] = values;
  }
}

std::unique_ptr<ParameterValues> Replaced::over(std::unique_ptr<ParameterValues> model) const {
  return std::make_unique<ReplacedValues>(files, std::move(model));
}

void Replaced::checkNone(bool quiet) const {
  if (!files.empty())
    throw Error(StatusInput,
                "a checkpoint would not have the new values of '" + files.begin()->first +
                    "', which is kept in a narrow type alone: expected -precision=fp32, or no checkpoint",
                quiet);
}

} // namespace dsopt::runtime
