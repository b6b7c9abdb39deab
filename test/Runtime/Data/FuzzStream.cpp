//===- FuzzStream.cpp - what a stream's writer may leave in its folder ----===//
//
// What it asks for, a zero byte, the first step's file.
//
//===----------------------------------------------------------------------===//

#include "Data/StreamSource.h"
#include "Fuzz.h"
#include "NpzWriter.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  NpzWriter writer;
  writer.add("x", "<f4", "(2, 2, 3)", std::vector<float>(12, 1));
  return {std::string("save /somewhere\nwrite /somewhere/w\ntake /w\n") + '\0' + writer.bytes(),
          std::string(1, '\0') + writer.bytes(), "save\n", "take /a\n\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  static const std::string lock = folder.write("lock", ""), end = folder.write("end", "");
  std::string_view rest = viewOf(data, size), place = takePart(rest);
  Program program;
  program.K = program.M = 2;
  program.inputs.push_back({"x", "f32", {2, 3}, false, -100});
  auto replace = [&](const char *name, std::string_view bytes) {
    std::string path = folder.path + "/" + name;
    unlink(path.c_str());
    if (!bytes.empty())
      folder.write(name, bytes);
  };
  replace("ask", place);
  replace("step-00000000.npz", rest);
  try {
    StreamSource source(program, folder.path, false);
    source.plannedSteps(0, 0);
    source.startAt(0, 0);
    switch (source.awaitStep(0, [] { return false; })) {
    case DataSource::Arrival::Ready: {
      float target[6];
      source.fill(0, 1, 0, target);
      break;
    }
    case DataSource::Arrival::Asked:
      source.requests();
      source.answer();
      break;
    default:
      break;
    }
  } catch (const Error &) {
  }
  return 0;
}
