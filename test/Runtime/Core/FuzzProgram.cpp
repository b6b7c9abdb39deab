//===- FuzzProgram.cpp - program tables and their sections ----------------===//
//
// The table, a zero byte, the actions' documents.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "ProgramTables.h"
#include "dsopt/Runtime/Session.h"

using namespace dsopt::runtime;
using namespace dsopt::test;

std::vector<std::string> dsopt::test::fuzzSeeds() {
  return {kGoodTable, std::string(kTableOfSections) + '\0' + kSections};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view actions = viewOf(data, size), table = takePart(actions);
  try {
    Program program = parseProgram(table.data(), table.size(), actions);
    arenasOf(program);
    describeWorld(program);
    for (int rank = 0; rank < std::min<int64_t>(program.ranks(), 4); ++rank)
      describeAction(program, rank, 2);
  } catch (const Error &) {
  }
  return 0;
}
