//===- SavedStateTest.cpp - who writes what of a checkpoint ---------------===//

#include "../Ranks.h"
#include "Core/Saver.h"
#include "Toy.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include <sys/stat.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {
/// Programs of one position with parameters of random sizes, momentum for each and, where updates lag, a
/// gradient that waits; all of it sliced.
Program randomProgram(int64_t dp, int64_t parameters, int64_t perBucket, int64_t most, unsigned seed,
                      bool lags = false) {
  std::mt19937 random(seed);
  Program program;
  program.grid = dsopt::Grid({1, dp, 1, 1, 1});
  program.positions.resize(1);
  Position &position = program.positions[0];
  position.memories = {{MemoryKind::Device}};
  for (int64_t i = 0; i < parameters; ++i) {
    if (i % perBucket == 0) {
      program.buckets.emplace_back();
      program.buckets.back().name = "b" + std::to_string(i / perBucket);
      program.buckets.back().type = "f32";
    }
    Bucket &bucket = program.buckets.back();
    Parameter parameter;
    parameter.name = "p" + std::to_string(i);
    parameter.type = "f32";
    parameter.shape = {1 + static_cast<int64_t>(random() % most)};
    parameter.bucket = static_cast<int64_t>(program.buckets.size()) - 1;
    parameter.bucket_offset = bucket.elements;
    bucket.elements += (parameter.shape[0] + 63) / 64 * 64;
    program.parameters.push_back(parameter);
  }
  for (size_t b = 0; b < program.buckets.size(); ++b) {
    Bucket &bucket = program.buckets[b];
    bucket.padded = (bucket.elements + 64 * dp - 1) / (64 * dp) * 64 * dp;
    auto buffer = static_cast<int64_t>(position.buffers.size());
    position.buffers.resize(buffer + (lags ? 3 : 2));
    position.buffers[buffer].name = bucket.name + ".param";
    position.buffers[buffer + 1].name = bucket.name + ".momentum";
    position.loads.push_back({static_cast<int64_t>(b), {buffer}, true});
    Action update;
    update.kind = ActionKind::Update;
    update.bucket = static_cast<int64_t>(b);
    update.sliced = true;
    update.refs = {{buffer}, {buffer}, {buffer + 1}};
    position.actions.edit().push_back(update);
    position.updates.push_back(update);
    if (!lags)
      continue;
    position.buffers[buffer + 2].name = bucket.name + ".pending";
    program.of(ListKind::DelayedStep).resize(1);
    // Its buffers are its own list.
    program.of(ListKind::DelayedStep)[0].buffers.push_back(position.buffers[buffer + 2]);
    update.refs[1] = {static_cast<int64_t>(b)};
    program.of(ListKind::DelayedStep)[0].updates.push_back(update);
  }
  return program;
}

/// Makes one parameter of three, whose parts are in as many buckets.
void joinThree(Program &program) {
  ASSERT_GT(program.parameters.size(), 17u);
  Parameter &whole = program.parameters[3];
  int64_t begin = 0;
  for (size_t i : {3, 10, 17}) {
    const Parameter &part = program.parameters[i];
    whole.parts.push_back({part.bucket, part.bucket_offset, begin, part.shape[0]});
    begin += part.shape[0];
  }
  whole.shape = {begin};
  program.parameters.erase(program.parameters.begin() + 17);
  program.parameters.erase(program.parameters.begin() + 10);
}

TEST(SavedState, EveryUnitHasOneWriter) {
  struct Case {
    int64_t dp, parameters, perBucket, most;
  };
  for (Case c : {Case{2, 5, 5, 100}, Case{4, 40, 7, 60000}, Case{8, 300, 50, 3000}, Case{16, 9, 3, 3000000},
                 Case{3, 7, 2, 700000}, Case{1, 6, 3, 100000}}) {
    Program program = randomProgram(c.dp, c.parameters, c.perBucket, c.most, 1);
    if (c.parameters > 17)
      joinThree(program);
    SavedTensors saved(program);
    ASSERT_EQ(saved.tensors.size(), 2 * program.parameters.size());
    std::map<std::string, std::string> headers = saved.layOut();
    std::vector<Segment> segments = segmentsOf(program, saved);
    std::vector<SharedRange> units = sharedUnits(saved, segments);
    auto alone = writtenAlone(segments, units);
    // Each byte is written once, each unit by one rank.
    std::map<std::string, std::map<int64_t, int>> writers;
    std::map<std::string, std::map<int64_t, int64_t>> ranges;
    auto write = [&](const std::string &file, int64_t begin, int64_t end, int rank) {
      ASSERT_TRUE(ranges[file].emplace(begin, end).second);
      for (int64_t unit = begin / kWrittenBytes; unit * kWrittenBytes < end; ++unit)
        ASSERT_EQ(writers[file].emplace(unit, rank).first->second, rank) << file << " " << unit;
    };
    for (auto &[file, header] : headers)
      write(file, 0, static_cast<int64_t>(header.size()), 0);
    for (size_t i = 0; i < segments.size(); ++i)
      if (auto [begin, end] = alone[i]; begin < end)
        write(saved.tensors[segments[i].tensor].file, begin, end, segments[i].rank);
    for (const SharedRange &unit : units)
      write(saved.tensors[segments[unit.first].tensor].file, unit.begin, unit.end, unit.owner);
    for (const Parameter &tensor : saved.tensors) {
      int64_t at = 0;
      for (auto [begin, end] : ranges[tensor.file]) {
        ASSERT_EQ(begin, at) << tensor.file;
        at = end;
      }
      ASSERT_EQ(at, tensor.file_bytes);
    }
    // Every chunk has all its bytes at one rank, or is brought there.
    std::set<std::pair<size_t, int64_t>> chunks;
    for (const Segment &segment : segments) {
      const Parameter &tensor = saved.tensors[segment.tensor];
      for (int64_t at = 0; at < tensor.bytes; at += kHashedBytes)
        if (tensor.offset + at >= segment.begin &&
            tensor.offset + std::min(at + kHashedBytes, tensor.bytes) <= segment.end) {
          EXPECT_TRUE(chunks.insert({segment.tensor, at}).second);
        }
    }
    for (const SharedRange &range : sharedChunks(saved, segments)) {
      size_t tensor = segments[range.first].tensor;
      EXPECT_EQ(segments[range.last - 1].tensor, tensor);
      EXPECT_LE(segments[range.first].begin, range.begin);
      EXPECT_GE(segments[range.last - 1].end, range.end);
      EXPECT_TRUE(chunks.insert({tensor, range.begin - saved.tensors[tensor].offset}).second);
    }
    size_t expected = 0;
    for (const Parameter &tensor : saved.tensors)
      expected += (tensor.bytes + kHashedBytes - 1) / kHashedBytes;
    EXPECT_EQ(chunks.size(), expected);
  }
}

// A search by name for each tensor would be 4e10 comparisons.
TEST(SavedState, WorkGrowsWithTensorsNotWithTheirSquare) {
  constexpr int64_t kParameters = 200000, kRanks = 512, kBuckets = 400;
  Program program = randomProgram(kRanks, kParameters, kParameters / kBuckets, 1000, 2);
  SavedTensors saved(program);
  saved.layOut();
  std::vector<Segment> segments = segmentsOf(program, saved);
  EXPECT_LE(segments.size(), 2u * (kParameters + kBuckets * kRanks));
  size_t visited = 0;
  for (const SharedRange &unit : sharedUnits(saved, segments))
    visited += unit.last - unit.first;
  for (const SharedRange &chunk : sharedChunks(saved, segments))
    visited += chunk.last - chunk.first;
  EXPECT_LE(visited, 4 * segments.size());
}

/// Saves and loads in one process for each rank; what is loaded is what was saved, in another layout, too.
TEST(SavedState, AnotherLayoutReadsWhatOneWrote) {
  Folder folder;
  std::string target = folder.path + "/step-00000001";
  auto run = [&](int64_t dp, bool saves, bool lags) {
    Program program = randomProgram(dp, 40, 7, 200000, 3, lags);
    joinThree(program);
    program.delayed_update = lags;
    const int64_t states = lags ? 3 : 2;
    int64_t bytes = 64;
    for (size_t b = 0; b < program.buckets.size(); ++b)
      for (int64_t i = 0; i < states; ++i) {
        program.positions[0].buffers[states * b + i].offset = bytes;
        bytes += program.buckets[b].padded / dp * 4;
      }
    auto group = SharedGroup::create(std::vector<int64_t>(dp, bytes));
    return runRanks(*group, [&](Engine &engine, char *arena) {
      RankInfo info = rankInfo(program, engine.rank());
      Addresses addresses(program.positions[0], info, {arena}, nullptr);
      auto each = [&](const std::function<void(float &, float)> &body) {
        for (const Parameter &parameter : program.parameters)
          for (const Part &part : partsOf(parameter))
            for (int64_t state = 0; state < states; ++state) {
              int64_t slice = program.buckets[part.bucket].padded / dp, first = info.dpRank * slice;
              auto *values = reinterpret_cast<float *>(addresses.at(Ref{states * part.bucket + state}));
              for (int64_t i = 0; i < part.elements; ++i)
                if (int64_t at = part.bucket_offset + i - first; at >= 0 && at < slice)
                  body(values[at], static_cast<float>((part.bucket * 131 + state * 31 + i) % 65521));
            }
      };
      if (saves) {
        each([](float &value, float is) { value = is; });
        Manifest manifest;
        manifest.lineage.run = "run";
        if (lags)
          manifest.pendingFactor = 0.1;
        saveState(SavePlan(program, info, addresses, lags), engine, target, manifest);
        return 0;
      }
      loadState(program, info, addresses, nullptr, target, readManifest(target), nullptr);
      int wrong = 0;
      each([&](float &value, float is) { wrong += value != is; });
      return wrong ? 9 : 0;
    });
  };
  for (bool lags : {false, true})
    for (int64_t writers : {4, 1, 3}) {
      for (int status : run(writers, true, lags))
        ASSERT_EQ(status, 0);
      EXPECT_NO_THROW(verifyState(target, inspectCheckpoint(target), nullptr));
      EXPECT_EQ(readManifest(target).tensors.size(), (lags ? 3u : 2u) * 38);
      // The whole lies in the file as its parts follow each other.
      for (const Parameter &tensor : readManifest(target).tensors)
        if (tensor.name == "p3") {
          Program program = randomProgram(1, 40, 7, 200000, 3);
          joinThree(program);
          std::vector<float> values(tensor.shape[0]);
          ParameterFiles(target).read(tensor, 0, tensor.shape[0], reinterpret_cast<char *>(values.data()));
          for (const Part &part : program.parameters[3].parts)
            for (int64_t i : {int64_t(0), part.elements - 1})
              EXPECT_EQ(values[part.begin + i], static_cast<float>((part.bucket * 131 + i) % 65521));
        }
      for (int64_t readers : {2, 5})
        for (int status : run(readers, false, lags))
          ASSERT_EQ(status, 0) << writers << " " << readers;
    }
}

TEST(SavedState, ACheckpointOfAnotherModelIsRefused) {
  Program program = randomProgram(1, 2, 2, 8, 3);
  RankInfo info{0, 0, 0};
  Addresses addresses(program.positions[0], info, {nullptr}, nullptr);
  Manifest right;
  right.tensors = SavedTensors(program).tensors;
  const Parameter first = right.tensors[0];
  auto refusal = [&](const std::function<void(Manifest &)> &change) -> std::string {
    Manifest manifest = right;
    change(manifest);
    try {
      loadState(program, info, addresses, nullptr, "c", manifest, nullptr);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  const std::string begin = "c is of another model or optimizer: ",
                    has = "'" + first.name + "' f32 [" + std::to_string(first.shape[0]) + "]";
  EXPECT_EQ(
      refusal([](Manifest &m) { m.tensors[0].type = "bf16"; }).rfind(begin + "the program has " + has, 0),
      0u);
  EXPECT_EQ(
      refusal([](Manifest &m) { m.tensors[0].shape[0] += 1; }).rfind(begin + "the program has " + has, 0),
      0u);
  EXPECT_EQ(refusal([](Manifest &m) { m.tensors.erase(m.tensors.begin()); }),
            begin + "the program has " + has + ", the checkpoint nothing of that name");
  EXPECT_EQ(refusal([](Manifest &m) {
              m.tensors.push_back(m.tensors[0]);
              m.tensors.back().name = "more";
            }),
            begin + "it has 'more' f32 [" + std::to_string(first.shape[0]) +
                "], the program nothing of that name");
}

TEST(SavedState, WhatCannotBeReadIsNotCalledChanged) {
  Folder folder;
  Program program = toyProgram(1, 1, 1, folder.path);
  Parameter parameter = program.parameters[1];
  // A folder stands for a disk that fails: it opens and cannot be read.
  struct stat info;
  ASSERT_EQ(stat(folder.path.c_str(), &info), 0);
  parameter.file = folder.path;
  parameter.file_bytes = info.st_size;
  std::vector<char> values(parameter.bytes);
  try {
    ParameterFiles("").read(parameter, 0, 4, values.data());
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusFailure);
    EXPECT_EQ(std::string(error.what()),
              "parameter 'a.w1' cannot be read from '" + folder.path + "': Is a directory");
  }
}
} // namespace
