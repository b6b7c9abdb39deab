//===- CheckpointSearchTest.cpp - which checkpoint a run goes on from -----===//

#include "Driver/Checkpoints.h"

#include <filesystem>
#include <gtest/gtest.h>

#include <unistd.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

namespace {
class Search : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "search-test-" + std::to_string(getpid());
  Program program;
  RunSettings settings;

  void SetUp() override {
    program.K = program.V = 2;
    program.accumulate = "local";
    settings.save = folder;
    settings.resume = "auto";
    fs::create_directory(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  /// A checkpoint without tensors after so many steps, of a run.
  std::string checkpoint(int64_t step, const std::string &run, int64_t tensorShards = 1,
                         int64_t sequenceShards = 1) {
    std::string path = folder + "/step-0000000" + std::to_string(step);
    fs::remove_all(path);
    fs::create_directory(path);
    Manifest manifest;
    manifest.lineage.run = run;
    manifest.step = step;
    manifest.K = manifest.V = 2;
    manifest.accumulate = "local";
    manifest.T = tensorShards;
    manifest.Q = sequenceShards;
    writeManifest(manifest, path);
    return path;
  }
};

TEST_F(Search, ACheckpointOfAnotherBatchIsRefused) {
  std::string path = checkpoint(1, "a");
  EXPECT_EQ(CheckpointSearch(program, settings).choose()->path, path);
  auto refusal = [&]() -> std::string {
    try {
      CheckpointSearch(program, settings).choose();
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  const std::string begin = path + " was written with K 2 micro-batches a step, V 2 shards, accumulate local";
  program.K = 4;
  EXPECT_EQ(refusal().rfind(begin + "; the program has K 4 ", 0), 0u) << refusal();
  program.K = 2;
  program.V = 1;
  EXPECT_EQ(refusal().rfind(begin, 0), 0u) << refusal();
  program.V = 2;
  program.accumulate = "sharded";
  EXPECT_EQ(refusal().rfind(begin, 0), 0u) << refusal();
  settings.resumeNewBatch = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(Search, ACheckpointOfOtherTensorShardsIsRefused) {
  for (auto [written, degrees] : {std::pair(1, "1"), {12, "1, 3, 6, 12"}, {4, "1, 2, 4"}}) {
    std::string path = checkpoint(1, "a", written);
    program.T = written;
    EXPECT_EQ(CheckpointSearch(program, settings).choose()->path, path);
    program.T = 2;
    try {
      CheckpointSearch(program, settings).choose();
      FAIL();
    } catch (const Error &error) {
      EXPECT_EQ(error.what(), path + " was written with T " + std::to_string(written) +
                                  " tensor shards; the program has T 2. It goes on with the same bits under "
                                  "-tensor-shards=" +
                                  std::to_string(written) + " and -tp of " + degrees +
                                  "; -resume-new-batch goes on with the new shards");
    }
  }
  settings.resumeNewBatch = true;
  EXPECT_NO_THROW(CheckpointSearch(program, settings).choose());
}

TEST_F(Search, ACheckpointOfOtherSequenceShardsIsRefused) {
  std::string path = checkpoint(1, "a", 1, 4);
  program.Q = 4;
  EXPECT_EQ(CheckpointSearch(program, settings).choose()->path, path);
  program.Q = 1;
  try {
    CheckpointSearch(program, settings).choose();
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.what(),
              path + " was written with Q 4 sequence shards; the program has Q 1. It goes on with the same "
                     "bits under -sequence-shards=4 and -sp of 1, 2, 4; -resume-new-batch goes on with the "
                     "new shards");
  }
  settings.resumeNewBatch = true;
  EXPECT_NO_THROW(CheckpointSearch(program, settings).choose());
}

TEST_F(Search, WhatCannotBeReadIsLeftOutUnlessItWasReplaced) {
  std::string older = checkpoint(1, "a"), newer = checkpoint(2, "a");
  CheckpointSearch search(program, settings);
  Unreadable why(StatusInput, "it is damaged");
  auto choice = search.choose();
  ASSERT_EQ(choice->path, newer);
  checkpoint(2, "b"); // another run has saved it anew
  search.cannotRead(*choice, why);
  auto again = search.choose();
  EXPECT_EQ(again->path, newer);
  EXPECT_NE(again->identity, choice->identity);
  search.cannotRead(*again, why);
  EXPECT_EQ(search.leftOut(), std::vector<std::string>{newer});
  EXPECT_EQ(search.choose()->path, older);
}
} // namespace
