//===- FirstTouchTest.cpp - memory that is there before it is used ---------===//

#include "Core/FirstTouch.h"
#include "Toy.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Fault.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {
constexpr int64_t kBytes = (40 << 20) + 3 * 4096;

class Touching : public ::testing::Test {
protected:
  void SetUp() override { memory = allocateArena(kBytes); }
  void TearDown() override {
    fault::start("");
    munmap(memory, kBytes);
  }
  /// Pages that are there.
  int64_t resident() {
    std::vector<unsigned char> pages(kBytes / 4096);
    EXPECT_EQ(mincore(memory, kBytes, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  }
  char *memory = nullptr;
};

TEST_F(Touching, AllOfItIsThereAndStaysAsItWas) {
  // A system that knows the call, and one that does not.
  for (const char *faults : {"", "madvise,from=1:error=EINVAL", "madvise,every=2:error=EINTR"})
    for (int threads : {1, 3}) {
      madvise(memory, kBytes, MADV_DONTNEED);
      EXPECT_EQ(resident(), 0);
      for (int64_t at = 0; at < kBytes; at += 5 << 20)
        memory[at] = static_cast<char>(at >> 20);
      fault::start(faults);
      FirstTouch touched(memory, kBytes, threads, {});
      for (int64_t at = 1; at < kBytes; at += 4096) // weights that come meanwhile
        memory[at] = static_cast<char>(at >> 12);
      touched.finish();
      fault::start("");
      EXPECT_EQ(resident(), kBytes / 4096) << faults;
      for (int64_t at = 0; at < kBytes; at += 5 << 20)
        ASSERT_EQ(memory[at], static_cast<char>(at >> 20)) << at;
      for (int64_t at = 1; at < kBytes; at += 4096)
        ASSERT_EQ(memory[at], static_cast<char>(at >> 12)) << at;
    }
}

TEST_F(Touching, WhatTheSystemDoesNotGiveIsAnError) {
  fault::start("madvise,nth=3:error=ENOMEM");
  FirstTouch touched(memory, kBytes, 2, {});
  try {
    touched.finish();
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusFailure);
    EXPECT_EQ(std::string(error.what()), "the system does not give the " + std::to_string(kBytes) +
                                             " bytes of memory that were planned: Cannot allocate memory");
  }
}

TEST_F(Touching, LittleMemoryComesAsItIsUsed) {
  FirstTouch(memory, 1 << 20, 2, {}).finish();
  EXPECT_EQ(resident(), 0);
}

/// Before the first step: whatever the program does not use in it as well.
TEST_F(Touching, ASessionHasAllItsMemoryOnceItHasItsWeights) {
  Folder folder;
  Program program = toyProgram(1, 1, 1, folder.path);
  program.positions[0].memories[0].bytes = kBytes;
  std::unique_ptr<Engine> engine = makeSingleEngine();
  ToyInputs inputs;
  RunOptions options;
  options.threads = 1;
  Session session(program, toySymbol, *engine, memory, options, inputs);
  session.loadParameters();
  EXPECT_EQ(resident(), kBytes / 4096);
}
} // namespace
