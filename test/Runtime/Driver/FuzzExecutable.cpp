//===- FuzzExecutable.cpp - the end of an executable ----------------------===//

#include "Fuzz.h"
#include "dsopt/Runtime/Executable.h"

#include <fstream>
#include <sstream>

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  FuzzFolder folder;
  writeExecutable(folder.write("runtime", std::string(100, 'r')), {"the program"}, folder.path + "/train");
  writeExecutable(folder.path + "/runtime", {"the device's", "the host's"}, folder.path + "/both");
  std::vector<std::string> seeds;
  for (const char *name : {"/train", "/both"}) {
    std::stringstream text;
    text << std::ifstream(folder.path + name, std::ios::binary).rdbuf();
    // The same without its runtime, so that more of the changes meet the footer.
    seeds.insert(seeds.end(), {text.str(), text.str().substr(4096)});
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  int file = open(folder.write("train", viewOf(data, size)).c_str(), O_RDONLY | O_CLOEXEC);
  try {
    for (int program : openEmbedded(file))
      close(program);
  } catch (const Error &) {
  }
  close(file);
  return 0;
}
