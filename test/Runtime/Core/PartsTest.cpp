//===- PartsTest.cpp - shards of parameters, from files and to them --------===//

#include "Core/Parts.h"
#include "../Ranks.h"
#include "Core/Agreement.h"
#include "Core/InitialValues.h"
#include "Core/Saver.h"
#include "Toy.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {
/// Values that say which element they are of, with a note of what was read.
class Numbered final : public ParameterValues {
public:
  void read(const Parameter &, int64_t begin, int64_t end, char *target) override {
    ++reads;
    elements += end - begin;
    std::iota(reinterpret_cast<float *>(target), reinterpret_cast<float *>(target) + (end - begin),
              static_cast<float>(begin));
  }
  int64_t reads = 0, elements = 0;
};

Parameter parameterOf(const std::string &name, std::vector<int64_t> shape, const std::string &type = "f32") {
  Parameter parameter;
  parameter.name = name;
  parameter.type = type;
  parameter.shape = std::move(shape);
  return parameter;
}

/// Shard `local` of `mine` on each of `ranks`, of dimension `dim`, within each of `equal` parts of it. Rows
/// that are not divided are as if there were some more.
Part shardOf(const Parameter &parameter, size_t dim, int64_t equal, int64_t ranks, int64_t mine,
             int64_t local) {
  int64_t inner = 1, shards = ranks * mine;
  for (size_t i = dim + 1; i < parameter.shape.size(); ++i)
    inner *= parameter.shape[i];
  Part part;
  part.run = (parameter.shape[dim] / equal + shards - 1) / shards * inner;
  part.stride = part.run * shards;
  part.step = part.run * mine;
  part.begin = part.run * local;
  part.elements = elementsOf(parameter) / (parameter.shape[dim] * inner) * equal * part.run;
  return part;
}

TEST(Parts, AShardIsReadFromTheWhole) {
  Parameter whole = parameterOf("w", {5, 12, 7});
  for (int64_t ranks : {1, 2, 4})
    for (int64_t equal : {1, 3}) {
      int64_t mine = 4 / ranks, width = 12 / (equal * 4);
      for (int64_t rank = 0; rank < ranks; ++rank)
        for (int64_t local = 0; local < mine; ++local) {
          Part part = shardOf(whole, 1, equal, ranks, mine, local);
          std::vector<float> expected, values(part.elements);
          for (int64_t row = 0; row < 5; ++row)
            for (int64_t column = 0; column < 12; ++column)
              for (int64_t i = 0; i < 7; ++i)
                if (column / width % 4 == rank * mine + local)
                  expected.push_back(static_cast<float>((row * 12 + column) * 7 + i));
          ASSERT_EQ(static_cast<int64_t>(expected.size()), part.elements);
          Numbered numbered;
          // In pieces that begin and end anywhere.
          for (int64_t step : {part.elements, INT64_C(1), INT64_C(10)}) {
            std::fill(values.begin(), values.end(), -1.0f);
            for (int64_t at = 0; at < part.elements; at += step)
              PartValues(numbered, part, rank)
                  .read(whole, at, std::min(at + step, part.elements),
                        reinterpret_cast<char *>(values.data() + at));
            EXPECT_EQ(values, expected) << ranks << " " << equal << " " << step;
          }
        }
    }
}

/// Behind the last row there are zeros, whatever lay there, and nothing is asked of the file.
TEST(Parts, PaddingIsZeros) {
  Parameter whole = parameterOf("w", {10, 3});
  for (int64_t ranks : {1, 2, 4})
    for (int64_t begin : {0, 2, 5, 7}) {
      int64_t mine = 4 / ranks;
      Part part = shardOf(whole, 0, 1, ranks, mine, mine - 1);
      ASSERT_EQ(part.elements, 9);
      std::vector<float> values(9, -1.0f);
      Numbered numbered;
      PartValues(numbered, part, ranks - 1)
          .read(whole, begin, 9, reinterpret_cast<char *>(values.data() + begin));
      for (int64_t i = 0; i < 9; ++i)
        EXPECT_EQ(values[i], i < begin ? -1.0f : i < 3 ? 27.0f + i : 0.0f) << ranks << " " << begin;
      EXPECT_EQ(numbered.elements, std::max<int64_t>(3 - begin, 0));
    }
}

/// A file is checked by chunks: runs in one chunk are read at once, runs far apart each by itself.
TEST(Parts, RunsAreReadTogetherOrApart) {
  Parameter rows = parameterOf("rows", {1000, 4, 16}), few = parameterOf("few", {3, 4, 1 << 18});
  std::vector<float> values(3 << 18);
  for (auto [parameter, reads, elements] : {std::tuple(&rows, 1, 1000 * 64 - 3 * 16), {&few, 3, 3 << 18}}) {
    Part part = shardOf(*parameter, 1, 1, 2, 2, 1);
    Numbered numbered;
    PartValues(numbered, part, 1).read(*parameter, 0, part.elements, reinterpret_cast<char *>(values.data()));
    EXPECT_EQ(numbered.reads, reads);
    EXPECT_EQ(numbered.elements, elements);
    EXPECT_EQ(values[part.run], static_cast<float>(elementOf(part, 1, part.run)));
  }
}

/// Whatever draws values draws those of the whole.
TEST(Parts, ADrawnShardHasTheWholesValues) {
  Parameter whole = parameterOf("w", {9, 10});
  std::unique_ptr<ParameterValues> drawn = drawWeights("normal:0.5", 7, nullptr, nullptr);
  std::vector<float> all(90), some(18);
  drawn->read(whole, 0, 90, reinterpret_cast<char *>(all.data()));
  for (int64_t rank = 0; rank < 5; ++rank) {
    Part part = shardOf(whole, 1, 1, 5, 1, 0);
    PartValues(*drawn, part, rank).read(whole, 0, 18, reinterpret_cast<char *>(some.data()));
    for (int64_t i = 0; i < 18; ++i)
      EXPECT_EQ(some[i], all[elementOf(part, rank, i)]);
  }
}

struct Cut {
  std::vector<int64_t> shape;
  size_t dim;
  int64_t equal;
};
constexpr int64_t kShards = 4;
/// One of more than a chunk, one of odd rows, one of a vector, one whose runs are single elements; two that
/// the shards do not divide.
const Cut kCuts[] = {{{700, 520}, 1, 1}, {{12, 31}, 0, 1}, {{5, 24, 7}, 1, 3}, {{20}, 0, 1},
                     {{33, 4}, 1, 1},    {{30, 9}, 0, 1},  {{41}, 0, 1}};

/// A program of whole parameters and shards, with momentum for each, at stage 3 or 1.
Program shardedProgram(int64_t dp, int64_t sp, int64_t tp, bool sliced) {
  Program program;
  program.grid = dsopt::Grid({1, dp, 1, sp, tp});
  program.T = kShards;
  int64_t slices = dp * sp;
  program.buckets.resize(3);
  auto place = [&](Bucket &bucket, int64_t elements) {
    int64_t at = bucket.elements;
    bucket.elements += (elements + 63) / 64 * 64;
    return at;
  };
  for (int64_t i = 0; i < 3; ++i) {
    Parameter whole = parameterOf("whole" + std::to_string(i), {3, 100 + i});
    whole.bucket_offset = place(program.buckets[0], elementsOf(whole));
    program.parameters.push_back(whole);
  }
  int64_t mine = kShards / tp, number = 0;
  for (const Cut &cut : kCuts) {
    Parameter parameter = parameterOf("cut" + std::to_string(number), cut.shape);
    // Those of a rank lie in two buckets.
    for (int64_t local = 0; local < mine; ++local) {
      Part part = shardOf(parameter, cut.dim, cut.equal, tp, mine, local);
      part.bucket = 1 + (number + local) % 2;
      part.bucket_offset = place(program.buckets[part.bucket], part.elements);
      parameter.parts.push_back(part);
    }
    ++number;
    program.parameters.push_back(parameter);
  }
  program.positions.resize(1);
  Position &position = program.positions[0];
  position.memories = {{MemoryKind::Device}};
  for (int64_t b = 0; b < 3; ++b) {
    Bucket &bucket = program.buckets[b];
    bucket.name = "b" + std::to_string(b);
    bucket.type = "f32";
    bucket.distinct = b > 0;
    bucket.padded = (bucket.elements + 64 * slices - 1) / (64 * slices) * 64 * slices;
    for (const char *what : {".param", ".momentum"}) {
      Buffer buffer;
      buffer.name = bucket.name + what;
      buffer.offset = position.memories[0].bytes;
      buffer.bytes = bucket.padded * 4 / (sliced ? slices : 1);
      position.memories[0].bytes += buffer.bytes;
      position.buffers.push_back(buffer);
    }
    position.loads.push_back({b, {2 * b}, sliced});
    Action update;
    update.kind = ActionKind::Update;
    update.bucket = b;
    update.sliced = sliced;
    update.refs = {{2 * b}, {2 * b}, {2 * b + 1}};
    position.actions.edit().push_back(update);
    position.updates.push_back(update);
  }
  return program;
}

/// Zero for padding.
float valueOf(size_t parameter, int64_t state, int64_t element) {
  if (element < 0)
    return 0;
  return static_cast<float>((static_cast<int64_t>(parameter) * 7919 + state * 104729 + element) % 1000003);
}

int64_t numberOf(const Parameter &parameter, const Part &part, int64_t shard, int64_t element) {
  int64_t number = elementOf(part, shard, element);
  return number < elementsOf(parameter) ? number : -1;
}

/// Each element of what this rank has: its parameter, the state, which of the parameter's it is (-1: none),
/// where.
void eachElement(const Program &program, const RankInfo &info, const Addresses &addresses,
                 const std::function<void(size_t, int64_t, int64_t, float &)> &body) {
  for (size_t i = 0; i < program.parameters.size(); ++i)
    for (const Part &part : partsOf(program.parameters[i]))
      for (int64_t state : {0, 1}) {
        const Position::Load &load = program.positions[0].loads[part.bucket];
        int64_t slice = program.sliceOf(program.buckets[part.bucket]);
        int64_t first = load.sliced ? info.slice * slice : 0,
                count = load.sliced ? slice : program.buckets[part.bucket].padded;
        auto *values = reinterpret_cast<float *>(addresses.at(Ref{2 * part.bucket + state}));
        for (int64_t e = 0; e < part.elements; ++e)
          if (int64_t at = part.bucket_offset + e - first; at >= 0 && at < count)
            body(i, state, numberOf(program.parameters[i], part, tensorRank(info), e), values[at]);
      }
}

std::vector<int>
runSharded(int64_t dp, int64_t sp, int64_t tp, bool sliced,
           const std::function<int(const Program &, const RankInfo &, const Addresses &, Engine &)> &body) {
  Program program = shardedProgram(dp, sp, tp, sliced);
  auto group =
      SharedGroup::create(std::vector<int64_t>(dp * sp * tp, program.positions[0].memories[0].bytes));
  return runRanks(*group, [&](Engine &engine, char *arena) {
    RankInfo info = rankInfo(program, engine.rank());
    return body(program, info, Addresses(program.positions[0], info, {arena}, nullptr), engine);
  });
}

/// A checkpoint holds whole tensors, of which ranks of any grid take their shards.
TEST(Parts, AnotherGridReadsWhatOneWrote) {
  Folder folder;
  std::string target = folder.path + "/step-00000001";
  for (auto [dp, sp, tp, sliced] : {std::tuple(1, 1, 1, true),
                                    {2, 1, 2, true},
                                    {1, 1, 4, false},
                                    {3, 1, 2, false},
                                    {2, 2, 1, true},
                                    {1, 3, 2, false}}) {
    for (int status :
         runSharded(dp, sp, tp, sliced, [&](auto &program, auto &info, auto &addresses, auto &engine) {
           eachElement(program, info, addresses, [](size_t i, int64_t state, int64_t element, float &value) {
             value = valueOf(i, state, element);
           });
           Manifest manifest;
           manifest.lineage.run = "run";
           saveState(SavePlan(program, info, addresses), engine, target, manifest);
           return 0;
         }))
      ASSERT_EQ(status, 0);
    Manifest manifest = inspectCheckpoint(target);
    EXPECT_NO_THROW(verifyState(target, manifest, nullptr));
    Program program = shardedProgram(1, 1, 1, true);
    ASSERT_EQ(manifest.tensors.size(), 2 * program.parameters.size());
    ParameterFiles files(target);
    for (size_t i = 0; i < program.parameters.size(); ++i)
      for (const Parameter &tensor : manifest.tensors)
        if (int64_t state = tensor.name == program.parameters[i].name + ".momentum";
            state || tensor.name == program.parameters[i].name) {
          EXPECT_EQ(tensor.shape, program.parameters[i].shape);
          std::vector<float> values(elementsOf(tensor));
          files.read(tensor, 0, elementsOf(tensor), reinterpret_cast<char *>(values.data()));
          int64_t wrong = 0;
          for (int64_t e = 0; e < elementsOf(tensor); ++e)
            wrong += values[e] != valueOf(i, state, e);
          EXPECT_EQ(wrong, 0) << tensor.name << " of " << dp << " x " << sp << " x " << tp;
        }
    for (auto [readDp, readSp, readTp, readSliced] :
         {std::tuple(1, 1, 1, false), {1, 1, 2, true}, {2, 1, 4, true}, {1, 2, 2, true}})
      for (int status : runSharded(
               readDp, readSp, readTp, readSliced,
               [&](auto &program, auto &info, auto &addresses, auto &engine) {
                 loadState(program, info, addresses, nullptr, target, readManifest(target), nullptr);
                 int64_t wrong = 0;
                 eachElement(program, info, addresses,
                             [&](size_t i, int64_t state, int64_t element, float &value) {
                               wrong += value != valueOf(i, state, element);
                             });
                 // Rank 0 gets them whole.
                 Numbered nothing;
                 size_t visited = 0;
                 visitParameters(program, info, addresses, engine, nothing,
                                 [&](const Parameter &parameter, const char *values) {
                                   size_t i = &parameter - program.parameters.data();
                                   for (int64_t e = 0; e < elementsOf(parameter); ++e)
                                     wrong += reinterpret_cast<const float *>(values)[e] != valueOf(i, 0, e);
                                   ++visited;
                                 });
                 return wrong ? 8 : visited == (info.rank == 0 ? program.parameters.size() : 0) ? 0 : 9;
               }))
        EXPECT_EQ(status, 0) << readDp << " x " << readSp << " x " << readTp << " of what " << dp << " x "
                             << sp << " x " << tp << " wrote";
    std::filesystem::remove_all(target);
  }
}

/// Every byte of a tensor is some rank's, once; every unit of a file has one writer, who knows the others.
TEST(Parts, SegmentsOfShardsCoverTheWhole) {
  for (auto [dp, sp, tp] : {std::tuple(1, 1, 1), {2, 1, 2}, {1, 1, 4}, {5, 1, 1}, {2, 2, 2}}) {
    Program program = shardedProgram(dp, sp, tp, true);
    SavedTensors saved(program);
    saved.layOut();
    std::vector<int64_t> ends;
    for (const Parameter &tensor : saved.tensors)
      ends.push_back(tensor.offset);
    for (const Segment &segment : segmentsOf(program, saved)) {
      EXPECT_EQ(segment.begin, ends[segment.tensor]);
      ends[segment.tensor] = segment.end;
    }
    for (size_t i = 0; i < ends.size(); ++i)
      EXPECT_EQ(ends[i], saved.tensors[i].offset + saved.tensors[i].bytes);
    std::vector<Segment> segments = segmentsOf(program, saved);
    std::vector<SharedRange> units = sharedUnits(saved, segments);
    auto alone = writtenAlone(segments, units);
    std::map<std::pair<std::string, int64_t>, int> writers;
    std::map<std::string, int64_t> written;
    auto write = [&](const std::string &file, int64_t begin, int64_t end, int rank) {
      if (begin >= end)
        return;
      written[file] += end - begin;
      for (int64_t unit = begin / kWrittenBytes; unit * kWrittenBytes < end; ++unit)
        EXPECT_EQ(writers.emplace(std::pair(file, unit), rank).first->second, rank) << file << " " << unit;
    };
    for (size_t i = 0; i < segments.size(); ++i)
      write(saved.tensors[segments[i].tensor].file, alone[i].first, alone[i].second, segments[i].rank);
    for (const SharedRange &unit : units)
      write(saved.tensors[segments[unit.first].tensor].file, unit.begin, unit.end, unit.owner);
    int64_t bytes = 0;
    for (const Parameter &tensor : saved.tensors)
      bytes += tensor.bytes;
    for (const auto &[file, there] : written)
      bytes -= there;
    EXPECT_EQ(bytes, 0);
    for (int rank = 0; rank < program.ranks(); ++rank)
      for (int peer : savePeers(program, rank)) {
        std::vector<int> others = savePeers(program, peer);
        EXPECT_TRUE(std::count(others.begin(), others.end(), rank)) << rank << " and " << peer;
      }
  }
}

/// What ranks along tp have alike counts once in a norm, shards each.
TEST(Parts, NormsCountEachElementOnce) {
  for (int64_t tp : {1, 2, 4}) {
    Program program = shardedProgram(1, 1, tp, false);
    Position &position = program.positions[0];
    Buffer record;
    record.name = "record";
    record.offset = position.memories[0].bytes;
    record.bytes = record.stride = kNormWords * 8;
    record.slots = 3;
    position.buffers.push_back(record);
    std::vector<char> arena(record.offset + record.slots * record.stride);
    for (bool byParameter : {false, true}) {
      ExactSum total, expected;
      std::vector<double> squares(program.parameters.size());
      ThreadPool pool(1, 0);
      for (int rank = 0; rank < tp; ++rank) {
        RankInfo info = rankInfo(program, rank);
        Addresses addresses(position, info, {arena.data()}, nullptr);
        eachElement(program, info, addresses, [&](size_t i, int64_t, int64_t element, float &value) {
          value = valueOf(i, 0, element);
        });
        Agreement agreement(program, info, addresses, byParameter, pool);
        for (int64_t b = 0; b < 3; ++b) {
          Action norm;
          norm.bucket = b;
          norm.refs = {{2 * b}, {6, b}};
          agreement.computeNorm(agreement.addNorm(norm));
          total.add(reinterpret_cast<const int64_t *>(addresses.at(norm.refs[1])));
        }
        for (size_t i = 0; byParameter && i < squares.size(); ++i)
          squares[i] += agreement.sums().of(static_cast<int64_t>(i)).value();
      }
      total.normalize();
      for (size_t i = 0; i < program.parameters.size(); ++i) {
        ExactSum own;
        std::vector<float> values(elementsOf(program.parameters[i]));
        for (size_t e = 0; e < values.size(); ++e)
          values[e] = valueOf(i, 0, static_cast<int64_t>(e));
        own.addSquares(values.data(), static_cast<int64_t>(values.size()));
        own.normalize();
        expected.add(own);
        if (byParameter) {
          EXPECT_DOUBLE_EQ(squares[i], own.value()) << program.parameters[i].name << " at tp " << tp;
        }
      }
      expected.normalize();
      EXPECT_EQ(total.value(), expected.value()) << "tp " << tp;
    }
  }
}
} // namespace
