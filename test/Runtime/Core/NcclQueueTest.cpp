//===- NcclQueueTest.cpp - communication between devices ------------------===//
//
// Ranks are forked, each with a device in software; NCCL is its stand-in. What comes out
// is compared with the host's additions, bit for bit. Queues go beside each other in an
// order that the device draws, which finds waits that are missing.
//
//===----------------------------------------------------------------------===//

#include "Core/NcclQueue.h"
#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Elementwise.h"
#include "Ranks.h"
#include "dsopt/Runtime/RoutineImages.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <thread>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

constexpr int64_t kArena = 4 << 20, kStaging = 4096;

/// A rank with its device; steps of any actions on any number of queues.
class Rank : public QueueOwner {
public:
  Rank(Engine &engine, char *arena, std::vector<std::vector<int>> groups)
      : engine(engine), device(engine.rank()), memory(device, arena, kArena), next(arena) {
    for (const RoutineImage &image : routineImages())
      if (std::string(image.name) == "TreeSum")
        device.load(image.ptx);
    NcclPlan plan;
    plan.groups = std::move(groups);
    plan.groupOf.emplace_back();
    for (size_t group = 0; group < plan.groups.size(); ++group)
      plan.groupOf[0].push_back(static_cast<int>(group));
    world = std::make_unique<NcclWorld>(engine, device, plan);
    staging = take<char>(kStaging);
  }

  template <typename T> T *take(int64_t count) {
    T *made = reinterpret_cast<T *>(next);
    next += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
    return made;
  }
  /// The communicator of a number, with this rank in it.
  nccl::Communicator *group(size_t number) { return world->groupOf(0, number); }
  template <typename T> T *there(T *mirrored) { return reinterpret_cast<T *>(memory.onDevice(mirrored)); }
  template <typename T> void upload(T *mirrored, int64_t count) {
    memory.upload(mirrored, count * static_cast<int64_t>(sizeof(T)), copies);
    copies.synchronize();
  }
  template <typename T> void download(T *mirrored, int64_t count) {
    std::memset(static_cast<void *>(mirrored), 0xa5, count * sizeof(T));
    memory.download(mirrored, count * static_cast<int64_t>(sizeof(T)), copies);
    copies.synchronize();
  }

  /// An action of a queue, after others; its number.
  int64_t add(size_t queue, NcclAction action, std::vector<int64_t> after = {}) {
    actions.push_back(action);
    waits.push_back(std::move(after));
    places.push_back(queue);
    return static_cast<int64_t>(actions.size()) - 1;
  }
  int64_t gather(size_t queue, nccl::Communicator *group, const void *from, void *to, int64_t bytes,
                 std::vector<int64_t> after = {}) {
    NcclAction made = between(group, ActionKind::Gather, from, to, bytes);
    return add(queue, made, std::move(after));
  }
  NcclAction between(nccl::Communicator *group, ActionKind kind, const void *from, void *to, int64_t bytes) {
    NcclAction made;
    made.group = group;
    made.kind = kind;
    made.source = from ? memory.onDevice(from) : nullptr;
    made.target = to ? memory.onDevice(to) : nullptr;
    made.bytes = bytes;
    return made;
  }

  /// Does all that was added.
  void run() {
    DeviceOrder made(actions.size());
    done.assign(actions.size(), 0);
    left = actions.size();
    std::vector<Staged> staged(actions.size());
    std::vector<std::unique_ptr<ActionQueue>> queues;
    for (size_t queue = 0; queue < 3; ++queue)
      queues.push_back(makeNcclQueue(*this, {*world, memory, memory.onDevice(staging), kStaging}, made,
                                     engine, static_cast<int>(queue), actions, staged));
    for (size_t action = 0; action < actions.size(); ++action)
      queues[places[action]]->submit(static_cast<int64_t>(action), waits[action]);
    try {
      while (left > 0) {
        for (auto &queue : queues)
          queue->poll();
        std::this_thread::yield();
      }
    } catch (const Error &) {
      for (auto &queue : queues)
        queue->abandon();
      throw;
    }
    actions.clear(), waits.clear(), places.clear();
  }

  Engine &engine;
  cuda::Device device;
  cuda::Memory memory;
  std::unique_ptr<NcclWorld> world;

private:
  bool isComplete(int64_t action) const override { return done[action]; }
  bool isHeld(int64_t) override { return false; }
  void start(int64_t, int, Clock::time_point) override {}
  void finish(int64_t action, Clock::time_point) override {
    done[action] = 1;
    --left;
  }
  void communicated(Clock::time_point) override {}
  Error failed(int64_t action, const std::string &what) const override {
    return Error(StatusFailure, "in action " + std::to_string(action) + ": " + what);
  }

  char *next, *staging = nullptr;
  cuda::Stream copies;
  std::vector<NcclAction> actions;
  std::deque<std::vector<int64_t>> waits;
  std::vector<size_t> places;
  std::vector<char> done;
  size_t left = 0;
};

std::vector<int> everybody(int size) {
  std::vector<int> all(size);
  for (int rank = 0; rank < size; ++rank)
    all[rank] = rank;
  return all;
}
float valueOf(int rank, int64_t i) { return std::sin(static_cast<float>(rank * 131 + i)) * (1 + i % 1000); }
void narrow(float value, float &result) { result = value; }
void narrow(float value, uint16_t &result) { result = roundToBf16(value); }
void narrow(float value, _Float16 &result) { result = static_cast<_Float16>(value); }
float widen(float value) { return value; }
float widen(_Float16 value) { return value; }
float widen(uint16_t value) {
  uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

int failures = 0;
#define EXPECT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "rank %d: %s does not hold (line %d)\n", rank.engine.rank(), #condition, __LINE__);    \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

void gathers(Rank &rank, nccl::Communicator &group, int64_t elements) {
  float *slice = rank.take<float>(elements), *whole = rank.take<float>(elements * group.size());
  for (bool inPlace : {false, true}) {
    float *from = inPlace ? whole + group.self() * elements : slice;
    for (int64_t i = 0; i < elements; ++i)
      from[i] = valueOf(rank.engine.rank(), i) + inPlace;
    rank.upload(from, elements);
    rank.gather(0, &group, from, whole, elements * 4);
    rank.run();
    rank.download(whole, elements * group.size());
    int64_t wrong = 0;
    for (int r = 0; r < group.size(); ++r)
      for (int64_t i = 0; i < elements; ++i)
        wrong += whole[r * elements + i] != valueOf(group.ranks()[r], i) + inPlace;
    EXPECT(wrong == 0);
  }
}

template <typename T> void reduces(Rank &rank, nccl::Communicator &group, int64_t elements) {
  constexpr Element type = std::is_same_v<T, uint16_t> ? Element::BF16
                           : sizeof(T) == 2            ? Element::F16
                                                       : Element::F32;
  T *whole = rank.take<T>(elements * group.size()), *target = rank.take<T>(elements);
  for (int mode = 0; mode < 5; ++mode) { // stored, added, in place; stored and in place in NCCL's own order
    for (int64_t i = 0; i < elements * group.size(); ++i)
      narrow(valueOf(rank.engine.rank(), i), whole[i]);
    for (int64_t i = 0; i < elements; ++i)
      narrow(0.5f, target[i]);
    rank.upload(whole, elements * group.size());
    rank.upload(target, elements);
    T *to = mode == 2 || mode == 4 ? whole + group.self() * elements : target;
    NcclAction action =
        rank.between(&group, ActionKind::Reduce, whole, to, elements * static_cast<int64_t>(sizeof(T)));
    action.type = type;
    action.accumulate = mode == 1;
    action.fast = mode > 2;
    rank.add(0, action);
    rank.run();
    rank.download(to, elements);
    std::vector<T> leaves(group.size());
    std::vector<const void *> parts;
    for (T &leaf : leaves)
      parts.push_back(&leaf);
    int64_t wrong = 0;
    for (int64_t i = 0; i < elements; ++i) {
      for (int r = 0; r < group.size(); ++r)
        narrow(valueOf(group.ranks()[r], group.self() * elements + i), leaves[r]);
      T expected;
      narrow(0.5f, expected);
      treeSum(type, parts.data(), group.size(), &expected, 1, mode == 1);
      // The library's stand-in goes along a ring, which ends here.
      for (int step = 0; action.fast && step < group.size(); ++step) {
        T part = leaves[(group.self() + 1 + step) % group.size()];
        narrow(step ? widen(expected) + widen(part) : widen(part), expected);
      }
      wrong += std::memcmp(&to[i], &expected, sizeof(T)) != 0;
    }
    EXPECT(wrong == 0);
  }
}

void allToAll(Rank &rank, nccl::Communicator &group, int64_t elements) {
  int64_t count = elements * group.size();
  float *from = rank.take<float>(count), *to = rank.take<float>(count);
  for (int64_t i = 0; i < count; ++i)
    from[i] = valueOf(rank.engine.rank(), i);
  rank.upload(from, count);
  rank.add(0, rank.between(&group, ActionKind::AllToAll, from, to, elements * 4));
  rank.run();
  rank.download(to, count);
  int64_t wrong = 0;
  for (int r = 0; r < group.size(); ++r)
    for (int64_t i = 0; i < elements; ++i)
      wrong += to[r * elements + i] != valueOf(group.ranks()[r], group.self() * elements + i);
  EXPECT(wrong == 0);
}

/// Ranks in a line hand values up and others down at the same time, on a queue for what goes and one for what
/// comes; what comes goes on, behind a wait. Groups of pairs: up, then down.
void line(Rank &rank, size_t firstPair) {
  int self = rank.engine.rank(), size = rank.engine.size();
  auto up = [&](int lower) { return rank.group(firstPair + 2 * lower); };
  auto down = [&](int lower) { return rank.group(firstPair + 2 * lower + 1); };
  constexpr int kValues = 4;
  float *values = rank.take<float>(kValues * 256), *back = rank.take<float>(kValues * 256);
  for (int v = 0; v < kValues; ++v) {
    float *value = values + v * 256, *returned = back + v * 256;
    int64_t bytes = 4 * (64 + 3 * v);
    std::vector<int64_t> came, went;
    if (self == 0) {
      for (int i = 0; i < 256; ++i)
        value[i] = valueOf(v, i);
      rank.upload(value, 256);
    } else {
      came = {rank.add(1, rank.between(up(self - 1), ActionKind::Recv, nullptr, value, bytes))};
    }
    if (self + 1 < size) {
      rank.add(0, rank.between(up(self), ActionKind::Send, value, nullptr, bytes), came);
      went = {rank.add(1, rank.between(down(self), ActionKind::Recv, nullptr, returned, bytes))};
    }
    if (self > 0)
      rank.add(
          0,
          rank.between(down(self - 1), ActionKind::Send, self + 1 < size ? returned : value, nullptr, bytes),
          self + 1 < size ? went : came);
  }
  rank.run();
  for (int v = 0; v < kValues; ++v) {
    float *got = (self + 1 < size ? back : values) + v * 256;
    rank.download(got, 64 + 3 * v);
    int64_t wrong = 0;
    for (int i = 0; i < 64 + 3 * v; ++i)
      wrong += got[i] != valueOf(v, i);
    EXPECT(wrong == 0);
  }
}

/// A gather of what a gather of another group and queue brings: the second follows the first on the device.
void chain(Rank &rank, nccl::Communicator &first, nccl::Communicator &second) {
  float *slice = rank.take<float>(64), *some = rank.take<float>(64 * first.size()),
        *all = rank.take<float>(64 * first.size() * second.size());
  for (int i = 0; i < 64; ++i)
    slice[i] = valueOf(rank.engine.rank(), i);
  rank.upload(slice, 64);
  int64_t before = rank.gather(0, &first, slice, some, 64 * 4);
  rank.gather(1, &second, some, all, 64 * 4 * first.size(), {before});
  rank.run();
  rank.download(all, 64 * first.size() * second.size());
  int64_t wrong = 0;
  for (int s = 0; s < second.size(); ++s)
    for (int f = 0; f < first.size(); ++f) {
      // Ranks are in a grid: neighbours in the first groups, their like in the second.
      int owner = second.ranks()[s] / 2 * 2 + f;
      for (int i = 0; i < 64; ++i)
        wrong += all[(s * first.size() + f) * 64 + i] != valueOf(owner, i);
    }
  EXPECT(wrong == 0);
}

struct Ended {
  std::vector<int> statuses;
  std::vector<std::string> messages; ///< that were not left to somebody else
};
Ended runAll(int size, int seed, std::vector<std::vector<int>> groups,
             const std::function<void(Rank &)> &body) {
  auto *texts = sharedMemory<char[256]>(size);
  std::unique_ptr<SharedGroup> shared = SharedGroup::create(std::vector<int64_t>(size, kArena));
  Ended ended;
  ended.statuses = runRanks(*shared, [&](Engine &engine, char *arena) {
    setenv("SOFT_DEVICE", ("devices=4,seed=" + std::to_string(10 * seed + engine.rank())).c_str(), 1);
    alarm(60);
    try {
      Rank rank(engine, arena, groups);
      body(rank);
      return failures ? 1 : 0;
    } catch (const Error &error) {
      if (!error.quiet)
        strncpy(texts[engine.rank()], error.what(), 255);
      throw;
    }
  });
  for (int rank = 0; rank < size; ++rank)
    if (texts[rank][0])
      ended.messages.push_back(texts[rank]);
  return ended;
}
std::vector<int> all(int size, int status) { return std::vector<int>(size, status << 8); }

/// Orders of streams: one by day, as many as DSOPT_TEST_SEEDS says at night.
int seeds() {
  const char *given = std::getenv("DSOPT_TEST_SEEDS");
  return given ? std::atoi(given) : 1;
}

TEST(NcclQueue, HasTheHostsBits) {
  for (int size : {2, 3, 4})
    for (int seed = 1; seed <= seeds(); ++seed) {
      Ended ended = runAll(size, seed, {everybody(size)}, [](Rank &rank) {
        nccl::Communicator &world = *rank.group(0);
        for (int64_t elements : {64, 1000, 4096}) {
          gathers(rank, world, elements);
          allToAll(rank, world, elements);
        }
        // More than the staging buffer takes at once, too.
        for (int64_t elements : {64, 960, 4096}) {
          reduces<float>(rank, world, elements);
          reduces<uint16_t>(rank, world, elements);
          reduces<_Float16>(rank, world, elements);
        }
      });
      EXPECT_EQ(ended.statuses, all(size, 0)) << size << " ranks, seed " << seed;
    }
}

TEST(NcclQueue, SendsUpAndDownALine) {
  for (int size : {2, 4}) {
    std::vector<std::vector<int>> groups;
    for (int lower = 0; lower + 1 < size; ++lower) {
      groups.push_back({lower, lower + 1});
      groups.push_back({lower + 1, lower});
    }
    for (int seed = 1; seed <= seeds(); ++seed)
      EXPECT_EQ(runAll(size, seed, groups, [](Rank &rank) { line(rank, 0); }).statuses, all(size, 0))
          << size << " ranks, seed " << seed;
  }
}

TEST(NcclQueue, HasSeveralGroups) {
  for (int seed = 1; seed <= seeds(); ++seed) {
    Ended ended =
        runAll(4, seed, {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0}, {1}, {2}, {3}, {0, 1, 2, 3}}, [](Rank &rank) {
          int self = rank.engine.rank();
          nccl::Communicator &pair = *rank.group(self / 2), &across = *rank.group(2 + self % 2),
                             &alone = *rank.group(4 + self);
          EXPECT(rank.group(1 - self / 2) == nullptr);
          chain(rank, pair, across);
          reduces<float>(rank, across, 1024);
          for (int64_t elements : {64, 4096}) {
            gathers(rank, alone, elements);
            reduces<float>(rank, alone, elements);
            reduces<uint16_t>(rank, alone, elements);
            allToAll(rank, alone, elements);
          }
          reduces<uint16_t>(rank, *rank.group(8), 1024);
        });
    EXPECT_EQ(ended.statuses, all(4, 0)) << "seed " << seed;
  }
}

void gatherOnce(Rank &rank, int64_t bytes) {
  float *from = rank.take<float>(1024), *to = rank.take<float>(4096);
  std::memset(from, 0, 4096);
  rank.upload(from, 1024);
  rank.gather(0, rank.group(0), from, to, bytes);
  rank.run();
}

TEST(NcclQueue, WaitsForAPeerThatComesLate) {
  Ended ended = runAll(2, 1, {{0, 1}}, [](Rank &rank) {
    if (rank.engine.rank() == 1)
      usleep(500000);
    gatherOnce(rank, 256);
  });
  EXPECT_EQ(ended.statuses, all(2, 0));
}

/// All end with one message.
TEST(NcclQueue, EndsWhereAPeerDies) {
  Ended ended = runAll(4, 1, {everybody(4)}, [](Rank &rank) {
    gatherOnce(rank, 256);
    if (rank.engine.rank() == 2)
      _exit(StatusFailure);
    gatherOnce(rank, 256);
  });
  EXPECT_EQ(ended.statuses, all(4, StatusFailure));
  EXPECT_TRUE(ended.messages.empty()) << ended.messages.front(); // the launcher's
}

TEST(NcclQueue, EndsWhereAPeerDoesSomethingElse) {
  Ended ended = runAll(2, 1, {{0, 1}}, [](Rank &rank) { gatherOnce(rank, rank.engine.rank() ? 512 : 256); });
  EXPECT_EQ(ended.statuses, all(2, StatusFailure));
  ASSERT_EQ(ended.messages.size(), 1u);
  EXPECT_NE(ended.messages[0].find("in action 0: NCCL: invalid usage"), std::string::npos)
      << ended.messages[0];
}

TEST(NcclQueue, NeedsADeviceForEach) {
  auto *texts = sharedMemory<char[256]>(2);
  std::unique_ptr<SharedGroup> shared = SharedGroup::create({kArena, kArena});
  std::vector<int> statuses = runRanks(*shared, [&](Engine &engine, char *) {
    setenv("SOFT_DEVICE", "devices=1", 1);
    cuda::Device device(0);
    strncpy(texts[engine.rank()], ncclObstacle(engine, device).c_str(), 255);
    return 0;
  });
  EXPECT_EQ(statuses, all(2, 0));
  for (int rank : {0, 1})
    EXPECT_STREQ(texts[rank], "ranks 0 and 1 share a GPU");
}

} // namespace
