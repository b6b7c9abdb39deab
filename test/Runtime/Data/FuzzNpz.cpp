//===- FuzzNpz.cpp - bytes of an .npz file, and their micro-batches -------===//

#include "Data/NpzSource.h"
#include "Fuzz.h"
#include "NpzWriter.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

static Program makeProgram() {
  Program program;
  program.K = program.M = 2;
  program.inputs.push_back({"x", "f32", {2, 3}, false, -100});
  program.inputs.push_back({"labels", "i64", {2}, true, -100});
  return program;
}

std::vector<std::string> dsopt::test::fuzzSeeds() {
  std::vector<std::string> seeds;
  for (bool deflate : {false, true})
    for (bool zip64 : {false, true})
      for (int version : {1, 2}) {
        NpzWriter writer;
        writer.deflate = deflate;
        writer.zip64 = zip64;
        writer.npyVersion = version;
        writer.add("x", "<f4", "(4, 2, 3)", std::vector<float>(24, 1));
        writer.add("labels", version == 1 ? "<i8" : "<u4", "(8,)",
                   std::vector<int32_t>(version == 1 ? 16 : 8, 1));
        seeds.push_back(writer.bytes());
      }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  static const Program program = makeProgram();
  std::string path = folder.write("data.npz", viewOf(data, size));
  try {
    NpzFile file(path);
    uint64_t sum = 0;
    for (const NpzArray &array : file.arrays())
      if (const char *bytes = file.data(array); array.elementBytes)
        for (int64_t i = 0; i < array.bytes; ++i)
          sum += bytes[i];
    volatile uint64_t used = sum;
    (void)used;
    NpzSource source(program, path, size % 2);
    source.plannedSteps(3, 0);
    source.prepare();
    float target[6];
    int64_t labels[2];
    for (int64_t step = 0; step < 3; ++step)
      for (int64_t microBatch = 0; microBatch < 2; ++microBatch) {
        source.fill(step, microBatch, 0, target);
        source.fill(step, microBatch, 1, labels);
      }
  } catch (const Error &) {
  }
  return 0;
}
