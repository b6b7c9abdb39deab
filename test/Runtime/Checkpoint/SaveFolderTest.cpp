//===- SaveFolderTest.cpp - whose checkpoints lie in a folder -------------===//

#include "dsopt/Runtime/SaveFolder.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Fault.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

namespace {
class SaveFolders : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "save-folder-test-" + std::to_string(getpid());
  Names said;

  void SetUp() override { fs::create_directory(folder); }
  void TearDown() override { fs::remove_all(folder); }

  /// A checkpoint called `name`; its tensor has `value` everywhere.
  void checkpoint(const std::string &name, const Lineage &lineage, int64_t step, float value = 0) {
    std::string path = folder + "/" + name;
    fs::create_directory(path);
    write(path, lineage, step, value);
  }
  static void write(const std::string &path, const Lineage &lineage, int64_t step, float value = 0) {
    Manifest manifest;
    manifest.lineage = lineage;
    manifest.step = step;
    Parameter tensor;
    tensor.name = "w";
    tensor.type = "f32";
    tensor.shape = {4};
    tensor.file = "model.safetensors";
    std::string header = layOutSafetensors({&tensor});
    tensor.chunks = {static_cast<uint64_t>(value)};
    manifest.tensors.push_back(tensor);
    std::ofstream(path + "/model.safetensors", std::ios::binary)
        << header << std::string(16, static_cast<char>(value));
    writeManifest(manifest, path);
  }
  void mark(const std::string &name) { std::ofstream(folder + "/" + name + "/draft") << "run"; }
  Names names() {
    Names all;
    for (auto &entry : fs::directory_iterator(folder))
      all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  uint64_t valueOf(const std::string &name) { return readManifest(folder + "/" + name).tensors[0].chunks[0]; }
  std::string refusal(const Lineage &mine, int64_t after) {
    try {
      SaveFolder(folder, said).enter(mine, after, {}, false);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return error.what();
    }
    return "";
  }
};
const Lineage kOld{"", "", -1}, kFirst{"aaaa", "", -1}, kSecond{"bbbb", "aaaa", 4}, kFresh{"cccc", "", -1};

TEST_F(SaveFolders, StepsAreNumbersThatFit) {
  EXPECT_EQ(checkpointName(1000), "step-00001000");
  EXPECT_EQ(checkpointStep("/some/where/step-00001000"), 1000);
  EXPECT_EQ(checkpointStep("step-7"), 7);
  for (const char *name :
       {"step-", "step-99999999999999999999", "step-1x", "step--1", "step-3.tmp", "tape-3"})
    EXPECT_EQ(checkpointStep(name), -1) << name;
  for (const char *name : {"step-00000002", "step-00000010", "step-9", "step-99999999999999999999"})
    checkpoint(name, kFirst, 2);
  fs::create_directory(folder + "/step-00000011");
  EXPECT_EQ(listCheckpoints(folder),
            (Names{folder + "/step-00000002", folder + "/step-9", folder + "/step-00000010"}));
  EXPECT_EQ(findCheckpoints(folder + "/step-9"), Names{folder + "/step-9"});
}

TEST_F(SaveFolders, OneRunAtATime) {
  auto refused = [&] {
    try {
      SaveFolder other(folder, said, /*patience=*/0);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return std::string(error.what());
    }
    return std::string();
  };
  {
    SaveFolder mine(folder, said);
    EXPECT_EQ(refused().find("option -save: another run saves into " + folder + " (process " +
                             std::to_string(getpid()) + " on "),
              0u)
        << refused();
  }
  EXPECT_EQ(refused(), "");
  EXPECT_EQ(names(), Names{}) << "the lock stayed";
  std::ofstream(folder + "/lock") << "of a run that was killed";
  EXPECT_EQ(refused(), "");
  // Whoever waits gets it when its holder ends.
  auto mine = std::make_unique<SaveFolder>(folder, said);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    mine.reset();
  });
  EXPECT_NO_THROW(SaveFolder(folder, said));
  end.join();
}

/// Between opening the lock's file and locking it its holder may end, and another run come.
TEST_F(SaveFolders, ALockUnderAnotherNameIsNone) {
  auto before = std::make_unique<SaveFolder>(folder, said);
  std::unique_ptr<SaveFolder> another;
  fault::start("flock,nth=1:delay=300");
  std::thread change([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    before.reset();
    Names heard;
    another = std::make_unique<SaveFolder>(folder, heard);
  });
  EXPECT_THROW(SaveFolder(folder, said, /*patience=*/0), Error);
  change.join();
  fault::start("");
  EXPECT_EQ(names(), Names{"lock"});
}

TEST_F(SaveFolders, LaterStepsOfOthersAreRefused) {
  for (int64_t step : {6, 7, 8})
    checkpoint(checkpointName(step), kFirst, step);
  EXPECT_EQ(refusal(kFresh, -1),
            "option -save: " + folder +
                " holds step-00000006 to step-00000008 of another run, this one starts from nothing: "
                "-resume=auto goes on from there, -save-existing=aside gives them other names, or choose "
                "another folder");
  // Gone on from the last one, or from one of before.
  EXPECT_EQ(refusal({"bbbb", "aaaa", 8}, 8), "");
  EXPECT_NE(refusal({"bbbb", "aaaa", 7}, 7).find("holds step-00000008 of another run, this one goes on from"),
            std::string::npos);
  // One from somewhere else that is further on.
  EXPECT_EQ(refusal({"bbbb", "eeee", 100}, 100), "");
}

TEST_F(SaveFolders, OthersAreSetAside) {
  for (int64_t step : {6, 7})
    checkpoint(checkpointName(step), kFirst, step);
  std::string six = readManifest(folder + "/step-00000006").identity,
              seven = readManifest(folder + "/step-00000007").identity;
  SaveFolder mine(folder, said);
  EXPECT_NE(mine.enter(kFresh, -1, {}, true).find("set aside step-00000006 and step-00000007"),
            std::string::npos);
  EXPECT_EQ(names(), (Names{"lock", "step-00000006." + six, "step-00000007." + seven}));
  EXPECT_EQ(findCheckpoints(folder + "/step-00000006." + six).size(), 1u);
}

TEST_F(SaveFolders, WhatCouldNotBeReadIsNoStranger) {
  checkpoint("step-00000006", kFirst, 6);
  checkpoint("step-00000008", kFirst, 8);
  std::ofstream(folder + "/step-00000008/manifest.json") << "damaged";
  SaveFolder mine(folder, said);
  EXPECT_THROW(mine.enter({"bbbb", "aaaa", 6}, 6, {}, false), Error);
  EXPECT_EQ(mine.enter({"bbbb", "aaaa", 6}, 6, {folder + "/step-00000008"}, false), "");
}

TEST_F(SaveFolders, OnlyTheLineIsPruned) {
  for (int64_t step : {1, 2, 3, 4})
    checkpoint(checkpointName(step), step == 2 ? Lineage{"dddd", "", -1} : kFirst, step);
  checkpoint("step-00000005", kSecond, 5);
  SaveFolder mine(folder, said);
  EXPECT_EQ(mine.enter({"eeee", "bbbb", 5}, 5, {}, false), "");
  checkpoint("step-00000006", {"eeee", "bbbb", 5}, 6);
  mine.wrote(6);
  EXPECT_EQ(mine.prune(3), "");
  EXPECT_EQ(names(), (Names{"lock", "step-00000002", "step-00000004", "step-00000005", "step-00000006"}));
  EXPECT_EQ(mine.prune(0), "");
  EXPECT_EQ(names(), (Names{"lock", "step-00000002", "step-00000006"})) << "the last one is never removed";
}

TEST_F(SaveFolders, WhatThisRunWroteLastStays) {
  for (int64_t step : {6, 7, 8})
    checkpoint(checkpointName(step), kFirst, step);
  SaveFolder mine(folder, said);
  mine.enter(kFresh, 8, {}, false);
  checkpoint("step-00000002", kFresh, 2);
  mine.wrote(2);
  EXPECT_EQ(mine.prune(1), "");
  EXPECT_EQ(names(), (Names{"lock", "step-00000002", "step-00000006", "step-00000007", "step-00000008"}));
}

TEST_F(SaveFolders, CheckpointsWithoutNamesAreOfOneRun) {
  for (int64_t step : {1, 2, 3})
    checkpoint(checkpointName(step), kOld, step);
  EXPECT_NE(refusal(kFresh, -1), "");
  SaveFolder mine(folder, said);
  EXPECT_EQ(mine.enter({"aaaa", "", 3}, 3, {}, false), "");
  mine.wrote(4);
  mine.prune(2);
  EXPECT_EQ(names(), (Names{"lock", "step-00000003"}));
}

TEST_F(SaveFolders, WhatAKillLeavesIsPutRight) {
  checkpoint("step-00000001.tmp", kFirst, 1, 1); // whole, before its rename
  mark("step-00000001.tmp");
  checkpoint("step-00000002.tmp", kFirst, 2, 2); // before its manifest
  mark("step-00000002.tmp");
  fs::remove(folder + "/step-00000002.tmp/manifest.json");
  checkpoint("step-00000003", kFirst, 3, 1); // before the exchange
  checkpoint("step-00000003.tmp", kFirst, 3, 2);
  mark("step-00000003.tmp");
  checkpoint("step-00000004", kFirst, 4, 2); // after the exchange
  mark("step-00000004");
  checkpoint("step-00000004.tmp", kFirst, 4, 1);
  checkpoint("step-00000005.old", kFirst, 5, 1); // no exchange: between the two renames
  checkpoint("step-00000005.tmp", kFirst, 5, 2);
  mark("step-00000005.tmp");
  checkpoint("step-00000006.old", kFirst, 6, 1); // and without its draft
  checkpoint("step-00000007.tmp", kFirst, 7, 1); // about to be pruned
  checkpoint("step-00000008.tmp", kFirst, 8, 1); // pruned in part
  fs::remove(folder + "/step-00000008.tmp/model.safetensors");
  fs::create_directory(folder + "/step-00000009.tmp"); // just made
  fs::create_directory(folder + "/step-00000007.old"); // no exchange: removed but for itself
  std::ofstream(folder + "/shared-0123456789abcdef0123456789abcdef") << "";
  {
    SaveFolder mine(folder, said);
  }
  EXPECT_EQ(names(), (Names{"step-00000001", "step-00000003", "step-00000004", "step-00000005",
                            "step-00000006", "step-00000007"}));
  EXPECT_EQ(valueOf("step-00000003"), 2u);
  EXPECT_EQ(valueOf("step-00000004"), 2u);
  EXPECT_EQ(valueOf("step-00000005"), 2u);
  for (const std::string &name : names())
    EXPECT_FALSE(fs::exists(folder + "/" + name + "/draft")) << name;
}

TEST_F(SaveFolders, WhatIsSomebodysStays) {
  fs::create_directory(folder + "/step-mine.tmp");
  fs::create_directory(folder + "/step-00000003.tmp");
  std::ofstream(folder + "/step-00000003.tmp/notes") << "mine";
  fs::create_directory(folder + "/step-00000004.old");
  std::ofstream(folder + "/step-00000004.old/notes") << "mine";
  fs::create_directory(folder + "/step-00000006.tmp");
  std::ofstream(folder + "/step-00000006.tmp/model.safetensors") << "mine, whatever it is called";
  std::ofstream(folder + "/shared-with-me") << "mine";
  std::ofstream(folder + "/step-00000004.tmp") << "a file";
  Names before = names();
  {
    SaveFolder mine(folder, said);
  }
  EXPECT_EQ(names(), before);
  // In a draft's way it is an error, and in a checkpoint's it is kept.
  EXPECT_THROW(Draft(folder + "/step-00000003", "run", true), Error);
  fs::create_directory(folder + "/step-00000005");
  std::ofstream(folder + "/step-00000005/notes") << "mine";
  {
    Draft draft(folder + "/step-00000005", "run", true);
    write(draft.path, kFirst, 5);
    draft.commit();
  }
  EXPECT_TRUE(fs::exists(folder + "/step-00000005/manifest.json"));
  EXPECT_TRUE(fs::exists(folder + "/step-00000005.tmp/notes"));
}

TEST_F(SaveFolders, ADraftAppearsWholeOrNotAtAll) {
  std::string target = folder + "/step-00000001";
  {
    Draft draft(target, "run", true);
    write(draft.path, kFirst, 1);
  }
  EXPECT_EQ(names(), Names{});
  checkpoint("step-00000001", kFirst, 1, 100);
  // While it is replaced, somebody finds a whole one at every moment.
  std::atomic<bool> end{false};
  std::atomic<int64_t> looked{0}, missed{0};
  std::thread reader([&] {
    struct stat info;
    while (!end) {
      missed += stat((target + "/manifest.json").c_str(), &info) != 0;
      ++looked;
    }
  });
  for (int i = 1; i <= 50; ++i) {
    Draft draft(target, "run", true);
    write(draft.path, kFirst, 1, static_cast<float>(i));
    draft.commit();
    EXPECT_EQ(valueOf("step-00000001"), static_cast<uint64_t>(i));
  }
  end = true;
  reader.join();
  EXPECT_GT(looked, 50);
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(names(), Names{"step-00000001"});
}

TEST_F(SaveFolders, ManifestsSayWhoseTheyAre) {
  Manifest manifest;
  manifest.lineage = kSecond;
  manifest.step = 5;
  manifest.pendingFactor = 1 / 3.0;
  manifest.lossScale = {0x1p-120, 2, 7, 5, 3};
  manifest.ranks.layout = "dp 2";
  Parameter tensor;
  tensor.name = "1/b0.error";
  tensor.type = "f32";
  tensor.shape = {2};
  tensor.file = "rank-00001.safetensors";
  layOutSafetensors({&tensor});
  tensor.chunks = {UINT64_MAX};
  manifest.ranks.tensors = {tensor};
  writeManifest(manifest, folder);
  Manifest read = readManifest(folder);
  EXPECT_EQ(read.lineage.run, "bbbb");
  EXPECT_EQ(read.lineage.parent, "aaaa");
  EXPECT_EQ(read.lineage.parentStep, 4);
  EXPECT_EQ(read.pendingFactor, 1 / 3.0);
  ASSERT_TRUE(read.lossScale);
  EXPECT_EQ(read.lossScale->scale, 0x1p-120);
  EXPECT_EQ(read.lossScale->hysteresis, 2);
  EXPECT_EQ(read.lossScale->steps, 7);
  EXPECT_EQ(read.lossScale->lastOverflow, 5);
  EXPECT_EQ(read.lossScale->skipped, 3);
  EXPECT_EQ(read.ranks.layout, "dp 2");
  ASSERT_EQ(read.ranks.tensors.size(), 1u);
  EXPECT_EQ(read.ranks.tensors[0].chunks[0], UINT64_MAX);
  EXPECT_EQ(read.identity.size(), 16u);
  // Its files belong to it as the others do.
  EXPECT_THROW(inspectCheckpoint(folder), Unreadable);
  EXPECT_EQ(drawRunName().size(), 32u);
  EXPECT_NE(drawRunName(), drawRunName());
}

TEST_F(SaveFolders, DamagedManifestsAreUnreadable) {
  checkpoint("step-1", kFirst, 1);
  std::string path = folder + "/step-1/manifest.json";
  std::string text;
  std::getline(std::ifstream(path, std::ios::binary), text);
  auto message = [&](const std::string &changed) {
    std::ofstream(path, std::ios::binary) << changed;
    try {
      readManifest(folder + "/step-1");
    } catch (const Unreadable &error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(text), "");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 4;
    EXPECT_NE(message(changed).find("manifest.json is damaged"), std::string::npos) << at;
    message(text.substr(0, at));
  }
  EXPECT_NE(message(std::string(100000, '[')).find("it is no manifest"), std::string::npos);
}

/// What is wrong in a manifest whose text is what was written.
TEST_F(SaveFolders, WhatAManifestSaysMustFit) {
  checkpoint("step-1", kFirst, 1);
  std::string path = folder + "/step-1/manifest.json";
  nlohmann::json object = nlohmann::json::parse(std::ifstream(path))["manifest"];
  auto message = [&](const nlohmann::json &changed) {
    std::string body = changed.dump();
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
    std::ofstream(path) << "{\"manifest\":" + body + ",\"xxh3\":\"" + hash + "\"}\n";
    try {
      readManifest(folder + "/step-1");
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(object), "");
  nlohmann::json changed = object;
  changed["format"] = 2;
  EXPECT_EQ(message(changed), path + " has format 2, this dsopt reads format 1");
  nlohmann::json tensor = object["tensors"][0];
  auto with = [&](const char *key, nlohmann::json value) {
    changed = object;
    changed["tensors"][0][key] = std::move(value);
    return changed;
  };
  nlohmann::json twice = object, endless = with("shape", {INT64_MAX, 4});
  twice["tensors"].push_back(tensor);
  for (const nlohmann::json &wrong :
       {twice, endless, with("shape", {5}), with("shape", {-4}), with("offset", -1),
        with("offset", INT64_MAX), with("file_bytes", 8), with("file", ""), with("file", "../secret"),
        with("hashes", nlohmann::json::array()), with("hashes", {"0000000000000000", "0000000000000000"})})
    EXPECT_NE(message(wrong).find("what it says of 'w' cannot be; resume from another checkpoint"),
              std::string::npos)
        << wrong["tensors"].dump() << message(wrong);
  // Those of ranks are looked at alike.
  changed = object;
  changed["ranks"] = {{"layout", "dp 2"}, {"tensors", twice["tensors"]}};
  EXPECT_NE(message(changed).find("cannot be"), std::string::npos);
}
} // namespace
