//===- AsyncSaveTest.cpp - checkpoints while steps go on ------------------===//

#include "Ranks.h"
#include "Toy.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/SaveFolder.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {
constexpr int64_t kSteps = 6;

RunOptions toyOptions(int64_t staging) {
  RunOptions options;
  options.steps = kSteps;
  options.lr = 0.5;
  options.gradClip = 3;
  options.threads = 2;
  options.saveStaging = staging;
  return options;
}

std::string pathOf(const Folder &folder, int64_t step) { return folder.path + "/" + checkpointName(step); }

/// Trains the toy and saves after every `every` steps. With staging, while steps go on; `named` counts the
/// checkpoints that got their names by then. Wait statuses by rank.
std::vector<int> train(int64_t dp, int64_t pp, int64_t zero, int64_t staging, int64_t every,
                       const Folder &folder, const char *faults, int64_t *named = nullptr) {
  Program program = toyProgram(dp, pp, zero, folder.path);
  std::vector<int64_t> arenas;
  for (int64_t rank = 0; rank < dp * pp; ++rank)
    arenas.push_back(arenaOf(program.positions[rank / dp]));
  auto group = SharedGroup::create(arenas);
  return runRanks(*group, [&](Engine &engine, char *arena) {
    fault::setRank(engine.rank());
    fault::start(faults);
    ToyInputs inputs;
    Session session(program, toySymbol, engine, arena, toyOptions(staging), inputs);
    session.loadParameters();
    for (int64_t step = 1; step <= kSteps; ++step) {
      session.step();
      if (staging)
        session.continueSave();
      if (step % every)
        continue;
      if (!staging) {
        session.save(pathOf(folder, step), Lineage{"run", "", -1});
        continue;
      }
      session.finishSave();
      session.startSave(pathOf(folder, step), Lineage{"run", "", -1}, [=] {
        if (named)
          ++*named;
      });
    }
    if (staging)
      session.finishSave();
    return 0;
  });
}

bool clean(const std::vector<int> &statuses) {
  for (int status : statuses)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      return false;
  return true;
}

std::string content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// However slow the disk is and however little room there is beside: an update that came too early would be
// seen.
TEST(AsyncSave, TheFilesOfASaveThatStepsWaitFor) {
  struct Layout {
    int64_t dp, pp, zero;
  };
  for (Layout at : {Layout{1, 1, 1}, Layout{2, 1, 1}, Layout{2, 1, 3}, Layout{1, 2, 1}, Layout{2, 2, 3}}) {
    Folder waiting;
    ASSERT_TRUE(clean(train(at.dp, at.pp, at.zero, 0, 1, waiting, "")));
    for (int64_t staging : {64, 1 << 20})
      for (const char *faults : {"", "pwrite,every=1:delay=4", "pwrite,rank=0,every=1:delay=4"})
        for (int64_t every : {1, 3}) {
          Folder going;
          auto *named = sharedMemory<int64_t>(1);
          *named = 0;
          ASSERT_TRUE(clean(train(at.dp, at.pp, at.zero, staging, every, going, faults, named)));
          EXPECT_EQ(*named, kSteps / every);
          for (int64_t step = every; step <= kSteps; step += every) {
            const std::string name = "/model.safetensors";
            EXPECT_EQ(content(pathOf(going, step) + name), content(pathOf(waiting, step) + name))
                << at.dp << at.pp << at.zero << " staging " << staging << ", " << faults << ", step " << step;
            EXPECT_EQ(readManifest(pathOf(going, step)).identity,
                      readManifest(pathOf(waiting, step)).identity);
          }
        }
  }
}

TEST(AsyncSave, WhatTheDiskRefusesEndsTheRun) {
  struct Case {
    int64_t dp;
    const char *faults, *says;
  };
  for (Case c : {Case{1, "pwrite,nth=5:error=ENOSPC", "writing failed: No space left on device"},
                 Case{2, "pwrite,rank=0,from=2:error=ENOSPC", "writing failed: No space left on device"},
                 Case{2, "fsync,rank=0,nth=1:error=EIO", "writing failed: Input/output error"},
                 Case{2, "rename,rank=0,nth=1:error=EIO", "cannot be put in place: Input/output error"}}) {
    Folder folder;
    testing::internal::CaptureStderr();
    std::vector<int> statuses = train(c.dp, 1, 1, 1 << 20, 2, folder, c.faults);
    std::string said = testing::internal::GetCapturedStderr();
    for (int status : statuses)
      EXPECT_EQ(WEXITSTATUS(status), 2) << c.faults;
    EXPECT_NE(said.find(c.says), std::string::npos) << said;
    EXPECT_EQ(said.find("rank "), said.rfind("rank ")) << said;
    for (int64_t step = 2; step <= kSteps; step += 2)
      EXPECT_FALSE(std::ifstream(pathOf(folder, step) + ".tmp/draft").good()) << c.faults;
  }
}
} // namespace
