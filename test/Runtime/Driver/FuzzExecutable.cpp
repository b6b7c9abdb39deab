//===- FuzzExecutable.cpp - the end of an executable ----------------------===//

#include "Fuzz.h"
#include "dsopt/Runtime/Executable.h"

#include <fstream>
#include <sstream>

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  FuzzFolder folder;
  writeExecutable(folder.write("runtime", std::string(100, 'r')), "the program", folder.path + "/train");
  std::stringstream text;
  text << std::ifstream(folder.path + "/train", std::ios::binary).rdbuf();
  // The same without its runtime, so that more of the changes meet the footer.
  return {text.str(), text.str().substr(4096)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  int file = open(folder.write("train", viewOf(data, size)).c_str(), O_RDONLY | O_CLOEXEC);
  try {
    if (int program = openEmbedded(file); program >= 0)
      close(program);
  } catch (const Error &) {
  }
  close(file);
  return 0;
}
