//===- FuzzWeights.cpp - the headers of safetensors files -----------------===//

#include "Core/InitialValues.h"
#include "Fuzz.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

static std::string file(const std::string &header, size_t bytes) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), sizeof length) + header + std::string(bytes, '\1');
}

std::vector<std::string> dsopt::test::fuzzSeeds() {
  return {file(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
               R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[24,30]}})",
               30),
          file(R"({"W":{"dtype":"F32","shape":[3,2],"data_offsets":[6,30]},)"
               R"("b":{"dtype":"F16","shape":[3],"data_offsets":[0,6]}})",
               30)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  std::string path = folder.write("weights.safetensors", viewOf(data, size));
  Program program;
  program.buckets.resize(1);
  for (auto &[name, shape] : {std::pair<const char *, std::vector<int64_t>>("w", {2, 3}), {"b", {3}}}) {
    Parameter parameter;
    parameter.name = name;
    parameter.type = "f32";
    parameter.shape = shape;
    program.parameters.push_back(parameter);
  }
  try {
    auto values = openWeights(path, program, {{"w", {"W", true}}}, nullptr, nullptr);
    float target[6];
    values->read(program.parameters[0], 1, 6, reinterpret_cast<char *>(target));
    values->read(program.parameters[1], 0, 3, reinterpret_cast<char *>(target));
    auto some = openReplacement(path, program, {}, nullptr);
    for (const Parameter &parameter : program.parameters)
      if (some->has(parameter))
        some->read(parameter, 0, 3, reinterpret_cast<char *>(target));
  } catch (const Error &) {
  }
  return 0;
}
