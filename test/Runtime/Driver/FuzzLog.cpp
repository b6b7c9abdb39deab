//===- FuzzLog.cpp - the JSON lines of a log, as -compare reads them ------===//

#include "Driver/Compare.h"
#include "Fuzz.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  return {R"({"run":{"version":"0"}})"
          "\n"
          R"({"step":0,"loss":2.25,"grad_norm":1.5,"grad_norms":{"w":1},"param_norms":{"w":"inf"}})"
          "\n"
          R"({"step":0,"eval_loss":"nan"})"
          "\n"
          R"({"end":{"steps":1,"status":"ok"}})"
          "\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  Program program;
  program.parameters.resize(1);
  program.parameters[0].name = "w";
  try {
    Comparison comparison(folder.write("log.jsonl", viewOf(data, size)));
    StepResult result;
    result.gradNorms = result.paramNorms = {1};
    comparison.step(result, program);
    comparison.evaluation(0, 1);
    comparison.text();
    comparison.json();
  } catch (const Error &) {
  }
  return 0;
}
