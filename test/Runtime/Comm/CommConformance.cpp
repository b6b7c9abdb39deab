//===- CommConformance.cpp - one suite, every engine -----------------------===//
//
// `kBackends` has one row for each engine: how N ranks of it are started. Every
// rank runs `conform` and says how many expectations failed. Under MPI the ranks
// are this program again, started by mpirun with --conform; launched ones meet
// through sockets, on hosts that have different names only.
//
//===----------------------------------------------------------------------===//

#include "Core/ThreadPool.h"
#include "Hosts.h"
#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Elementwise.h"
#include "Ranks.h"
#include "dsopt/Runtime/World.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>
#include <string>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

int failures = 0;
#define EXPECT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s, rank %d of %d: %s does not hold (line %d)\n", engine.name(), engine.rank(),       \
              engine.size(), #condition, __LINE__);                                                          \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

int64_t sentOf(Engine &engine, TrafficClass kind) { return engine.sent()[static_cast<int>(kind)]; }

/// Of all signs and digits, from -1000 to 1000.
float valueOf(int rank, int64_t i) {
  auto drawn = static_cast<int32_t>(static_cast<uint32_t>(rank * 131 + i + 1) * 2654435761u);
  return static_cast<float>(drawn) * 0x1p-31f * static_cast<float>(1 + i % 1000);
}

/// Part of a whole arena, 64 bytes aligned.
struct Bump {
  char *next;
  template <typename T> T *take(int64_t count) {
    T *result = reinterpret_cast<T *>(next);
    next += (count * sizeof(T) + 63) / 64 * 64;
    return result;
  }
};

void gather(Engine &engine, const Communicator &group, char *arena, int64_t elements) {
  Bump bump{arena};
  float *slice = bump.take<float>(elements), *target = bump.take<float>(elements * group.size());
  for (bool inPlace : {false, true}) {
    float *from = inPlace ? target + group.self * elements : slice;
    for (int64_t i = 0; i < elements; ++i)
      from[i] = valueOf(engine.rank(), i) + inPlace;
    int64_t before = sentOf(engine, TrafficClass::AllGather);
    engine.startGather(1, group, from, target, elements * 4, TrafficClass::AllGather);
    engine.complete(1);
    // Complete: the slice may change at once.
    if (!inPlace)
      std::memset(slice, 0xff, elements * 4);
    int64_t wrong = 0;
    for (int r = 0; r < group.size(); ++r)
      for (int64_t i = 0; i < elements; ++i)
        wrong += target[r * elements + i] != valueOf(group.ranks[r], i) + inPlace;
    EXPECT(wrong == 0);
    EXPECT(sentOf(engine, TrafficClass::AllGather) - before == elements * 4 * (group.size() - 1));
  }
}

float narrowed(float value, float) { return value; }
uint16_t narrowed(float value, uint16_t) { return roundToBf16(value); }
_Float16 narrowed(float value, _Float16) { return static_cast<_Float16>(value); }
constexpr Element elementOf(float) { return Element::F32; }
constexpr Element elementOf(uint16_t) { return Element::BF16; }
constexpr Element elementOf(_Float16) { return Element::F16; }

/// Of float, bf16 in uint16_t, or f16.
template <typename T> void reduce(Engine &engine, const Communicator &group, char *arena, int64_t elements) {
  constexpr Element type = elementOf(T());
  auto value = [](int rank, int64_t i) { return narrowed(valueOf(rank, i), T()); };
  Bump bump{arena};
  T *whole = bump.take<T>(elements * group.size()), *target = bump.take<T>(elements);
  for (int mode = 0; mode < 3; ++mode) { // stored, added, in place
    for (int64_t i = 0; i < elements * group.size(); ++i)
      whole[i] = value(engine.rank(), i);
    std::fill_n(target, elements, narrowed(0.5f, T()));
    T *to = mode == 2 ? whole + group.self * elements : target;
    int64_t before = sentOf(engine, TrafficClass::ReduceScatter);
    engine.startReduce(1, group, type, whole, to, elements, mode == 1);
    engine.complete(1);
    EXPECT(sentOf(engine, TrafficClass::ReduceScatter) - before ==
           elements * bytesOf(type) * (group.size() - 1));
    std::vector<T> leaves(group.size());
    std::vector<const void *> parts;
    for (T &leaf : leaves)
      parts.push_back(&leaf);
    int64_t wrong = 0;
    for (int64_t i = 0; i < elements; ++i) {
      for (int r = 0; r < group.size(); ++r)
        leaves[r] = value(group.ranks[r], group.self * elements + i);
      T expected = narrowed(mode == 1 ? 0.5f : 0, T());
      treeSum(type, parts.data(), group.size(), &expected, 1, mode == 1);
      wrong += to[i] != expected;
    }
    EXPECT(wrong == 0);
  }
}

void allToAll(Engine &engine, const Communicator &group, char *arena, int64_t elements) {
  Bump bump{arena};
  float *source = bump.take<float>(elements * group.size()),
        *target = bump.take<float>(elements * group.size());
  for (int r = 0; r < group.size(); ++r)
    for (int64_t i = 0; i < elements; ++i)
      source[r * elements + i] = valueOf(engine.rank(), group.ranks[r] * 1000 + i);
  int64_t before = sentOf(engine, TrafficClass::AllToAll);
  engine.startAllToAll(1, group, source, target, elements * 4);
  engine.complete(1);
  // Complete: the source may change at once.
  std::memset(source, 0xff, elements * group.size() * 4);
  int64_t wrong = 0;
  for (int r = 0; r < group.size(); ++r)
    for (int64_t i = 0; i < elements; ++i)
      wrong += target[r * elements + i] != valueOf(group.ranks[r], engine.rank() * 1000 + i);
  EXPECT(wrong == 0);
  EXPECT(sentOf(engine, TrafficClass::AllToAll) - before == elements * 4 * (group.size() - 1));
}

/// More than a message takes at once, too: each member has what the one before it had.
void shift(Engine &engine, const Communicator &group, char *arena, int64_t elements) {
  Bump bump{arena};
  float *source = bump.take<float>(elements), *target = bump.take<float>(elements);
  for (int64_t i = 0; i < elements; ++i)
    source[i] = valueOf(engine.rank(), i);
  int64_t before = sentOf(engine, TrafficClass::SequenceParallel), wrong = 0;
  engine.startShift(1, group, source, target, elements * 4, TrafficClass::SequenceParallel);
  engine.complete(1);
  // Complete: the source may change at once.
  std::memset(source, 0xff, elements * 4);
  int from = group.ranks[(group.self + group.size() - 1) % group.size()];
  for (int64_t i = 0; i < elements; ++i)
    wrong += target[i] != valueOf(from, i);
  EXPECT(wrong == 0);
  EXPECT(sentOf(engine, TrafficClass::SequenceParallel) - before == (group.size() > 1 ? elements * 4 : 0));
}

/// A send meets a receive only if both sides are polled.
void completeAll(Engine &engine, std::vector<int> slots) {
  while (!slots.empty()) {
    uint32_t seen = engine.waker().count();
    bool progress = false;
    for (size_t i = 0; i < slots.size();)
      if (engine.poll(slots[i])) {
        slots.erase(slots.begin() + i);
        progress = true;
      } else {
        progress |= engine.progressed(slots[i++]);
      }
    if (!progress)
      engine.waker().sleep(seen);
  }
}

/// A ring: everyone sends to the right while receiving from the left, several in a row, sizes mixed.
void ring(Engine &engine, char *arena) {
  if (engine.size() == 1)
    return;
  int right = (engine.rank() + 1) % engine.size(), left = (engine.rank() + engine.size() - 1) % engine.size();
  Bump bump{arena};
  int *out = bump.take<int>(300000), *in = bump.take<int>(300000);
  int64_t sent = sentOf(engine, TrafficClass::SendRecv), total = 0;
  for (int round = 0; round < 20; ++round) {
    int64_t count = round % 3 == 0 ? 300000 : round + 1;
    for (int64_t i = 0; i < count; ++i)
      out[i] = engine.rank() * 1000000 + round * 1000 + i;
    engine.startSend(2, right, out, count * 4, 77 + round, TrafficClass::SendRecv);
    engine.startRecv(3, left, in, count * 4, 77 + round);
    completeAll(engine, {2, 3});
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i)
      wrong += in[i] != left * 1000000 + round * 1000 + i;
    EXPECT(wrong == 0);
    total += count * 4;
  }
  EXPECT(sentOf(engine, TrafficClass::SendRecv) - sent == total);
}

/// Two values of one size fly at once, whose tags differ in their upper bits alone; they are expected in the
/// other order.
void crossed(Engine &engine, char *arena) {
  if (engine.size() == 1)
    return;
  int right = (engine.rank() + 1) % engine.size(), left = (engine.rank() + engine.size() - 1) % engine.size();
  Bump bump{arena};
  int *out = bump.take<int>(2000), *in = bump.take<int>(2000);
  for (int bit : {16, 21, 22, 23, 31, 32, 54, 63}) {
    std::vector<uint64_t> tags{99, 99 ^ uint64_t(1) << bit};
    engine.addTags(right, /*sends=*/true, tags);
    engine.addTags(left, /*sends=*/false, tags);
    for (int i = 0; i < 2000; ++i)
      out[i] = engine.rank() * 1000000 + bit * 10000 + i;
    engine.startSend(2, right, out, 4000, tags[0], TrafficClass::SendRecv);
    engine.startSend(3, right, out + 1000, 4000, tags[1], TrafficClass::SendRecv);
    engine.startRecv(4, left, in + 1000, 4000, tags[1]);
    engine.startRecv(5, left, in, 4000, tags[0]);
    completeAll(engine, {2, 3, 4, 5});
    int64_t wrong = 0;
    for (int i = 0; i < 2000; ++i)
      wrong += in[i] != left * 1000000 + bit * 10000 + i;
    EXPECT(wrong == 0);
  }
}

/// Many slots at once: a reduction, a send and a receive, and two exchanges.
void together(Engine &engine, char *arena) {
  int size = engine.size(), rank = engine.rank();
  Bump bump{arena};
  float *whole = bump.take<float>(640 * size), *target = bump.take<float>(640);
  char *out = bump.take<char>(100), *in = bump.take<char>(100);
  std::fill_n(whole, 640 * size, 1.0f + rank);
  std::memset(out, rank, 100);
  std::vector<int64_t> record(5000, rank), all(5000 * size), other(4000, -rank), others(4000 * size);
  int peer = rank ^ 1;
  if (peer < size) {
    engine.startSend(2, peer, out, 100, 5, TrafficClass::Tied);
    engine.startRecv(3, peer, in, 100, 5);
  }
  Communicator own(5, engine.world().ranks, rank), agreeing(6, engine.world().ranks, rank);
  engine.startReduce(1, own, Element::F32, whole, target, 640, false);
  engine.startExchange(0, agreeing, record.data(), record.size() * 8, all.data());
  engine.startExchange(Engine::kControlSlot, engine.world(), other.data(), other.size() * 8, others.data());
  completeAll(engine, {0, 1, 2, 3, Engine::kControlSlot});
  if (peer < size)
    EXPECT(in[0] == peer && in[99] == peer);
  EXPECT(target[17] == size * (size + 1) / 2.0f);
  int64_t wrong = 0;
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < 5000; ++i)
      wrong += all[r * 5000 + i] != r || (i < 4000 && others[r * 4000 + i] != -r);
  EXPECT(wrong == 0);
}

/// Two cuts of the ranks into groups of equal size, the second one strided, used in turn and at once: columns
/// and rows of a grid. A rank's order in its groups need not be that of the ranks.
void grid(Engine &engine, char *arena) {
  int side = engine.size() == 4 ? 2 : 1, rank = engine.rank();
  if (engine.size() == 8)
    side = 2;
  if (side == 1)
    return;
  int stride = engine.size() / side;
  std::vector<int> neighbours = {rank / 2 * 2, rank / 2 * 2 + 1};
  std::vector<int> apart = {rank % stride + stride, rank % stride};
  Communicator row(1, neighbours, rank), column(2, apart, rank);
  for (int round = 0; round < 6; ++round)
    for (const Communicator *group : {&row, &column}) {
      gather(engine, *group, arena, 64 << round);
      reduce<float>(engine, *group, arena, 64 << round);
      allToAll(engine, *group, arena, 64 << round);
      shift(engine, *group, arena, 64 << round);
    }
  // Both in flight, begun in another order on every second rank.
  Bump bump{arena};
  const Communicator *groups[] = {&row, &column};
  float *slices[2], *targets[2];
  for (int i : {0, 1}) {
    slices[i] = bump.take<float>(1000);
    targets[i] = bump.take<float>(2000);
    std::fill_n(slices[i], 1000, rank * 10.0f + i);
  }
  for (int i : {rank % 2, 1 - rank % 2})
    engine.startGather(i, *groups[i], slices[i], targets[i], 4000, TrafficClass::AllGather);
  completeAll(engine, {0, 1});
  for (int i : {0, 1})
    for (int member : {0, 1})
      EXPECT(targets[i][member * 1000 + 999] == groups[i]->ranks[member] * 10.0f + i);
}

/// Records of one word and of more than one message holds: whatever the order of merging, one result.
void agreement(Engine &engine) {
  for (int64_t words : {1, 3, 9, 20000}) {
    RecordShape shape{words / 3, words / 3, words - words / 3 * 2};
    auto value = [](int rank, int64_t i) { return (rank + 1) * 7919 % 1000 - 500 + i % 100; };
    std::vector<int64_t> record(words);
    for (int64_t i = 0; i < words; ++i)
      record[i] = value(engine.rank(), i);
    int64_t before = sentOf(engine, TrafficClass::Control);
    engine.startAgreement(0, engine.world(), record.data(), shape);
    engine.complete(0);
    int64_t wrong = 0;
    for (int64_t i = 0; i < words; ++i) {
      int64_t expected = value(0, i);
      for (int rank = 1; rank < engine.size(); ++rank)
        expected = i < shape.sums                ? expected + value(rank, i)
                   : i < shape.sums + shape.bits ? expected | value(rank, i)
                                                 : std::min(expected, value(rank, i));
      wrong += record[i] != expected;
    }
    EXPECT(wrong == 0);
    EXPECT(sentOf(engine, TrafficClass::Control) - before ==
           words * 8 * static_cast<int64_t>(std::ceil(std::log2(engine.size()))));
  }
}

/// Signals are the main thread's, whoever started the others.
bool othersHoldSignals() {
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    if (task.path().filename() == std::to_string(getpid()))
      continue;
    for (std::string line; std::getline(status, line);)
      if (line.compare(0, 7, "SigBlk:") == 0)
        for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP})
          if (!(std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1))
            return false;
  }
  return true;
}

int conform(Engine &engine, char *arena, int threads) {
  failures = 0;
  ThreadPool pool(threads, 0);
  engine.setPool(&pool);
  std::vector<char> staging;
  const Communicator &world = engine.world();
  if (engine.needsStaging()) {
    staging.resize(engine.size() * (256 << 10) + 64);
    engine.setStaging(staging.data() + 64 - reinterpret_cast<uintptr_t>(staging.data()) % 64,
                      engine.size() * (256 << 10));
  }
  engine.barrier();
  for (int64_t elements : {64, 640, 200000}) {
    gather(engine, world, arena, elements);
    reduce<float>(engine, world, arena, elements);
    reduce<uint16_t>(engine, world, arena, elements);
    reduce<_Float16>(engine, world, arena, elements);
    allToAll(engine, world, arena, elements);
    shift(engine, world, arena, elements);
  }
  ring(engine, arena);
  crossed(engine, arena);
  together(engine, arena);
  agreement(engine);
  // Groups of two positions beside each other, out of step with each other.
  if (engine.size() % 2 == 0) {
    int half = engine.size() / 2, position = engine.rank() / half;
    std::vector<int> ranks(half);
    std::iota(ranks.begin(), ranks.end(), position * half);
    Communicator group(3, ranks, engine.rank());
    for (int i = 0; i <= position; ++i) {
      gather(engine, group, arena, 128);
      reduce<float>(engine, group, arena, 128);
    }
    together(engine, arena);
  }
  grid(engine, arena);
  EXPECT(othersHoldSignals());
  int64_t control = sentOf(engine, TrafficClass::Control);
  engine.barrier();
  EXPECT(sentOf(engine, TrafficClass::Control) - control == engine.size() - 1);
  engine.setPool(nullptr);
  return failures;
}

bool runShared(int ranks) {
  auto group = SharedGroup::create(std::vector<int64_t>(ranks, kArena));
  bool good = true;
  for (int status : runRanks(*group, [](Engine &engine, char *arena) { return conform(engine, arena, 2); }))
    good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return good;
}

template <std::string (*host)(int)> bool runLaunched(int ranks) {
  std::vector<int> statuses =
      runWorld(ranks, host, [](Engine &engine, char *arena) { return conform(engine, arena, 2); });
  return std::count(statuses.begin(), statuses.end(), 0) == ranks;
}

bool runMpi(int ranks) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
    return false;
  std::string command = "timeout 120 mpirun --allow-run-as-root --oversubscribe --bind-to none -n " +
                        std::to_string(ranks) + " " + self + " --conform";
  return system(command.c_str()) == 0;
}

struct Backend {
  const char *name;
  bool (*run)(int ranks);
};
constexpr Backend kBackends[] = {{"SharedMemory", runShared},
                                 {"MPI", runMpi},
                                 {"Tcp", runLaunched<alone>},
                                 {"OneHost", runLaunched<everyoneHere>},
                                 {"PairsOfRanksAHost", runLaunched<pairs>},
                                 {"TwoHostsInTurn", runLaunched<inTurn>}};

class Conformance : public testing::TestWithParam<std::tuple<Backend, int>> {};

TEST_P(Conformance, Ranks) { EXPECT_TRUE(std::get<0>(GetParam()).run(std::get<1>(GetParam()))); }

std::string nameOf(const testing::TestParamInfo<std::tuple<Backend, int>> &info) {
  return std::get<0>(info.param).name + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Engines, Conformance,
                         testing::Combine(testing::ValuesIn(kBackends), testing::Values(1, 2, 3, 4)), nameOf);
INSTANTIATE_TEST_SUITE_P(Large, Conformance,
                         testing::Combine(testing::ValuesIn(kBackends), testing::Values(5, 8)), nameOf);

} // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::string(argv[1]) == "--conform") {
    std::unique_ptr<Engine> engine = joinMpi(0, std::chrono::seconds(60));
    int failed = conform(*engine, allocateArena(kArena), 1);
    engine->finish();
    return failed ? 1 : 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
