//===- DeviceExecutorTest.cpp - steps of a program on a device --------------===//
//
// The toy on the device in software, whose streams go in any order that events allow.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "Toy.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/RoutineImages.h"

#include "Kernels/CUDA/Memory.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

/// The first one goes by single calls, the second one is recorded, the others are replayed.
constexpr int64_t kSteps = 4;
constexpr dsopt_device_kernel kMultiply = {"multiply", 3, 32, 32}, kScale = {"scale", 3, 32, 32},
                              kDot = {"dot", 3, 32, 32}, kUpdate = {"update", 3, 32, 32},
                              kDirect = {"direct", 3, 32, 32}, kUpdateByNorms = {"updateByNorms", 3, 32, 32};

std::string images;
bool allocates = false; ///< a segment does, as none may
std::vector<Image> imageList;

void addImage(const std::string &routine, const std::string &ptx) {
  images.resize((images.size() + 63) / 64 * 64);
  imageList.push_back(
      {"sm_80", "ptx", routine, static_cast<int64_t>(images.size()), static_cast<int64_t>(ptx.size() + 1)});
  images += ptx + '\0';
}

void call(dsopt_rt *rt, const dsopt_device_kernel &kernel, int64_t range, void *a, void *b, void *c) {
  void *args[] = {a, b, c};
  dsopt_rt_launch_device(rt, &kernel, range, args);
}
void forward0(dsopt_rt *rt, void *const *b, char *, int64_t) {
  if (allocates) {
    cuda::Address address;
    DSOPT_CUDA(cuMemAlloc_v2, &address, 64);
    DSOPT_CUDA(cuMemFree_v2, address);
  }
  call(rt, kMultiply, kToyElements, b[0], b[2], b[1]);
}
void forward1(dsopt_rt *rt, void *const *b, char *, int64_t) { call(rt, kDot, 1, b[0], b[3], b[2]); }
void backward1(dsopt_rt *rt, void *const *b, char *, int64_t) {
  call(rt, kScale, kToyElements, b[2], b[0], b[1]);
}
void weight1(dsopt_rt *rt, void *const *b, char *temp, int64_t accumulate) {
  call(rt, kScale, kToyElements, b[0], b[1], temp);
  dsopt_rt_accumulate(rt, kToyElements, reinterpret_cast<float *>(temp), b[2], DSOPT_F32, accumulate);
}
void weight0(dsopt_rt *rt, void *const *b, char *temp, int64_t accumulate) {
  call(rt, kMultiply, kToyElements, b[0], b[1], temp);
  dsopt_rt_accumulate(rt, kToyElements, reinterpret_cast<float *>(temp), b[2], DSOPT_F32, accumulate);
}

void *deviceSymbol(const std::string &name) {
  if (name == "dsopt_images")
    return images.data();
  if (name == "update.sgd")
    return const_cast<dsopt_device_kernel *>(&kUpdate);
  if (name == "update.direction")
    return const_cast<dsopt_device_kernel *>(&kDirect);
  if (name == "update.norms")
    return const_cast<dsopt_device_kernel *>(&kUpdateByNorms);
  const std::pair<const char *, dsopt_segment> segments[] = {{"block0.F", forward0},
                                                             {"block1.F", forward1},
                                                             {"block1.B", backward1},
                                                             {"block1.W", weight1},
                                                             {"block0.W", weight0}};
  for (auto [segment, function] : segments)
    if (name == segment)
      return reinterpret_cast<void *>(function);
  return nullptr;
}

struct Outcome {
  float losses[kSteps], norms[kSteps], paramNorms[kSteps][2], weights[2][kToyElements];
  int64_t issues[kSteps];  ///< calls that have put something into streams
  int64_t pending[kSteps]; ///< what the device has still to do when the step ends
  GraphCounts graphs;
};

/// Trains the toy; wait statuses by rank. `edit` may change the program, `begin` what it is before a step.
template <typename Edit>
std::vector<int> train(bool onDevice, int64_t dp, int64_t pp, int64_t zero, bool logNorms, Outcome *outcome,
                       Edit edit, const std::string &cudaGraph = "auto",
                       const std::function<void(Program &, int64_t)> &begin = {}, bool breakdown = false) {
  Folder folder;
  Program program = toyProgram(dp, pp, zero, folder.path);
  if (onDevice) {
    program.target = "cuda";
    program.images = imageList;
  }
  edit(program);
  std::vector<int64_t> arenas;
  for (int64_t rank = 0; rank < dp * pp; ++rank)
    arenas.push_back(arenaOf(program.positions[rank / dp]));
  auto group = SharedGroup::create(arenas);
  RunOptions options;
  options.steps = kSteps;
  options.lr = 0.5;
  options.gradClip = 3;
  options.logNorms = logNorms;
  options.cudaGraph = cudaGraph;
  options.breakdown = breakdown;
  return runRanks(*group, [&](Engine &engine, char *arena) {
    ToyInputs inputs;
    options.localRank = engine.rank();
    Session session(program, onDevice ? deviceSymbol : toySymbol, engine, arena, options, inputs);
    session.loadParameters();
    void *driver = onDevice ? dlopen("libcuda.so.1", RTLD_NOW) : nullptr;
    auto count = [&](const char *what) {
      return driver ? reinterpret_cast<int64_t (*)()>(dlsym(driver, what))() : 0;
    };
    for (int64_t step = 0; step < kSteps; ++step) {
      if (begin)
        begin(program, step);
      int64_t before = count("softDeviceIssues");
      const StepResult &result = session.step();
      if (engine.rank() != 0)
        continue;
      outcome->issues[step] = count("softDeviceIssues") - before;
      outcome->pending[step] = count("softDevicePending");
      outcome->graphs = session.graphs().value_or(GraphCounts());
      outcome->losses[step] = result.loss;
      outcome->norms[step] = result.gradNorm;
      for (int i = 0; logNorms && i < 2; ++i)
        outcome->paramNorms[step][i] = result.paramNorms[i];
    }
    int index = 0;
    session.visitParameters([&](const Parameter &parameter, const char *value) {
      std::memcpy(outcome->weights[index++], value, parameter.bytes);
    });
    return 0;
  });
}

bool clean(const std::vector<int> &statuses) {
  for (int status : statuses)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      return false;
  return true;
}

class DeviceExecutor : public testing::Test {
protected:
  void SetUp() override {
    std::ifstream file(DSOPT_TOY_PTX, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty());
    images.clear();
    imageList.clear();
    addImage("", text.str());
    for (const RoutineImage &image : routineImages())
      addImage(image.name, image.ptx);
    ASSERT_TRUE(clean(train(false, 1, 1, 1, true, host, [](Program &) {})));
  }
  static void seed(int number) {
    setenv("SOFT_DEVICE", ("seed=" + std::to_string(number)).c_str(), /*replace=*/1);
  }
  bool hasHostsBits(const Outcome &other) const {
    return std::memcmp(other.losses, host->losses, sizeof(host->losses)) == 0 &&
           std::memcmp(other.norms, host->norms, sizeof(host->norms)) == 0 &&
           std::memcmp(other.weights, host->weights, sizeof(host->weights)) == 0;
  }
  Outcome *host = sharedMemory<Outcome>(1);
};

TEST_F(DeviceExecutor, HasTheHostsBitsInEveryLayoutAndOrder) {
  for (int64_t zero : {1, 3})
    for (int64_t dp : {1, 2})
      for (int64_t pp : {1, 2})
        for (int number : {1, 2, 3}) {
          seed(number);
          bool logNorms = number == 3;
          auto *other = sharedMemory<Outcome>(1);
          ASSERT_TRUE(clean(train(true, dp, pp, zero, logNorms, other, [](Program &) {})))
              << dp << " x " << pp << " zero " << zero << " seed " << number;
          EXPECT_TRUE(hasHostsBits(*other)) << dp << " x " << pp << " zero " << zero << " seed " << number;
          if (logNorms)
            EXPECT_EQ(std::memcmp(other->paramNorms, host->paramNorms, sizeof(host->paramNorms)), 0);
        }
}

/// Sums of squares, what ranks gather of them, ratios and tables: with graphs all but the gather is in them.
TEST_F(DeviceExecutor, UpdatesGoByNormsWithTheHostsBits) {
  auto *plain = sharedMemory<Outcome>(1), *other = sharedMemory<Outcome>(1);
  std::memcpy(plain, host, sizeof(Outcome));
  ASSERT_TRUE(clean(train(false, 1, 1, 3, true, host, updateByNorms)));
  EXPECT_FALSE(hasHostsBits(*plain));
  for (int64_t dp : {1, 2})
    for (int64_t pp : {1, 2})
      for (int number : {1, 2}) {
        seed(number);
        const char *cudaGraph = number == 1 ? "auto" : "off";
        ASSERT_TRUE(clean(train(true, dp, pp, 3, false, other, updateByNorms, cudaGraph)));
        EXPECT_TRUE(hasHostsBits(*other)) << dp << " x " << pp << " graphs " << cudaGraph;
      }
  seed(1);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(clean(train(true, 1, 1, 3, false, other, [](Program &program) {
    updateByNorms(program);
    for (Buffer &buffer : program.positions[0].buffers)
      if (buffer.name == "scalars")
        buffer.bytes -= 64;
  })));
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("buffer 'scalars' of position 0 has room for 9 tables, expected more"),
            std::string::npos)
      << text;
}

/// Of 4 micro-batches with 2 inputs each, of which the second one lies between the forwards: two graphs each,
/// the last one with sums and norms. Two updates are too few for one.
TEST_F(DeviceExecutor, GraphsAreTheSameByFewerCalls) {
  auto *single = sharedMemory<Outcome>(1), *graphs = sharedMemory<Outcome>(1);
  for (int number = 1; number <= 5; ++number) {
    seed(number);
    ASSERT_TRUE(clean(train(true, 1, 1, 1, false, single, [](Program &) {}, "off")));
    ASSERT_TRUE(clean(train(true, 1, 1, 1, false, graphs, [](Program &) {})));
    EXPECT_TRUE(hasHostsBits(*single) && hasHostsBits(*graphs)) << "seed " << number;
  }
  EXPECT_EQ(single->graphs.graphs, 0);
  EXPECT_EQ(graphs->graphs.graphs, 8);
  EXPECT_EQ(graphs->graphs.actions, graphs->graphs.all - 10);
  EXPECT_EQ(graphs->issues[0], single->issues[0]);
  for (int64_t step = 1; step < kSteps; ++step) {
    // 4 x (1 + 1 + 1 + 2 + 2) of segments, 2 sums and 2 norms of 4, with 24 events behind: 8 graphs and
    // events.
    EXPECT_EQ(single->issues[step] - graphs->issues[step], 28 + 2 + 8 + 24 - 16) << "step " << step;
  }
}

/// The host waits for the agreement; updates go beside what it does next, unless their time is asked for.
TEST_F(DeviceExecutor, StepsEndBeforeTheirUpdates) {
  int early = 0;
  for (bool breakdown : {false, true})
    for (int number = 1; number <= 5; ++number) {
      seed(number);
      auto *other = sharedMemory<Outcome>(1);
      ASSERT_TRUE(clean(train(true, 1, 1, 1, false, other, [](Program &) {}, "auto", {}, breakdown)));
      EXPECT_TRUE(hasHostsBits(*other)) << "seed " << number;
      for (int64_t pending : other->pending) {
        EXPECT_TRUE(!breakdown || pending == 0);
        early += pending > 0;
      }
    }
  EXPECT_GE(early, 10);
}

TEST_F(DeviceExecutor, WhatCannotBeRecordedIsSaid) {
  allocates = true;
  testing::internal::CaptureStderr();
  auto *other = sharedMemory<Outcome>(1);
  EXPECT_TRUE(clean(train(true, 1, 1, 1, false, other, [](Program &) {}, "off")));
  EXPECT_FALSE(clean(train(true, 1, 1, 1, false, other, [](Program &) {})));
  allocates = false;
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("while work was recorded as a CUDA graph (-cuda-graph=off does without)"),
            std::string::npos)
      << text;
}

/// Inputs by a queue of their own into two places in turn: the third one waits until what reads the first one
/// is done, which is in a graph.
TEST_F(DeviceExecutor, AnInputBesideAReplayThatReadsIsFound) {
  auto places = [](Program &program) {
    Position &position = program.positions[0];
    position.queues.push_back({"inputs", QueueKind::Copy});
    std::vector<Action> &actions = position.actions.edit();
    int64_t input = -1, readers[] = {-1, -1};
    for (size_t at = 0; at < actions.size(); ++at) {
      Action &action = actions[at];
      bool takes = false;
      for (Ref &ref : action.refs)
        if (position.buffers[ref.buffer].name == "input.x") {
          ref.slot %= 2;
          takes = true;
        }
      if (!takes)
        continue;
      if (action.kind == ActionKind::Input) {
        action.queue = static_cast<int64_t>(position.queues.size()) - 1;
        input = static_cast<int64_t>(at);
        if (int64_t reader = readers[action.refs.front().slot]; reader >= 0)
          action.waits.push_back(reader);
      } else {
        action.waits.push_back(input);
        readers[action.refs.front().slot] = static_cast<int64_t>(at);
      }
    }
  };
  auto forget = [](Program &program, int64_t step) {
    if (step == 2)
      for (const Action &action : program.positions[0].actions)
        if (action.kind == ActionKind::Input)
          const_cast<Action &>(action).waits.clear();
  };
  int found = 0;
  for (int number = 1; number <= 6; ++number) {
    seed(number);
    auto *other = sharedMemory<Outcome>(1);
    ASSERT_TRUE(clean(train(true, 1, 1, 1, false, other, places))) << "seed " << number;
    EXPECT_TRUE(hasHostsBits(*other)) << "seed " << number;
    testing::internal::CaptureStderr();
    bool runs = clean(train(true, 1, 1, 1, false, other, places, "auto", forget));
    std::string text = testing::internal::GetCapturedStderr();
    bool isSaid = text.find("which touch the same bytes") != std::string::npos;
    EXPECT_EQ(isSaid, !runs) << text;
    found += isSaid;
  }
  EXPECT_GE(found, 3);
}

/// Micro-batches whose input is at one place: the host waits until the device has the one before.
TEST_F(DeviceExecutor, InputsTakeTurns) {
  for (int number = 1; number <= 20; ++number) {
    seed(number);
    auto *other = sharedMemory<Outcome>(1);
    ASSERT_TRUE(clean(train(true, 1, 1, 1, false, other, [](Program &program) {
      Position &position = program.positions[0];
      for (Action &action : position.actions.edit())
        for (Ref &ref : action.refs)
          if (position.buffers[ref.buffer].name == "input.x")
            ref.slot = 0;
    })));
    EXPECT_TRUE(hasHostsBits(*other)) << "seed " << number;
  }
}

/// Whether `from` comes before `to` by queues and what actions wait for, but for one wait of `to`.
bool precedes(const std::vector<Action> &actions, int64_t from, int64_t to, size_t without) {
  std::vector<char> after(actions.size());
  after[from] = 1;
  for (int64_t at = from + 1; at <= to; ++at) {
    for (int64_t before = from; before < at; ++before)
      after[at] |= after[before] && actions[before].queue == actions[at].queue;
    for (size_t i = 0; i < actions[at].waits.size(); ++i)
      after[at] |= after[actions[at].waits[i]] && !(at == to && i == without);
  }
  return after[to];
}

/// No wait is left that others imply, nor one for another block's parameter.
void keepNeededWaits(std::vector<Action> &actions) {
  for (size_t at = 0; at < actions.size(); ++at)
    for (size_t wait = actions[at].waits.size(); wait-- > 0;) {
      int64_t on = actions[at].waits[wait];
      bool isOthers = actions[at].symbol.rfind("block0", 0) == 0 && actions[on].name == "gather b1";
      if (isOthers || precedes(actions, on, static_cast<int64_t>(at), wait))
        actions[at].waits.erase(actions[at].waits.begin() + static_cast<std::ptrdiff_t>(wait));
    }
}

TEST_F(DeviceExecutor, AnyMissingWaitIsFound) {
  Folder folder;
  Program whole = toyProgram(2, 1, 3, folder.path);
  std::vector<Action> &actions = whole.positions[0].actions.edit();
  keepNeededWaits(actions);
  auto runs = [&](std::vector<Action> edited, int number) {
    seed(number);
    auto *other = sharedMemory<Outcome>(1);
    return clean(train(true, 2, 1, 3, false, other,
                       [&](Program &program) { program.positions[0].actions.edit() = edited; })) &&
           hasHostsBits(*other);
  };
  ASSERT_TRUE(runs(actions, 1));
  std::string unseen;
  int waits = 0;
  testing::internal::CaptureStderr();
  for (size_t at = 0; at < actions.size(); ++at)
    for (size_t wait = 0; wait < actions[at].waits.size(); ++wait, ++waits) {
      std::vector<Action> edited = actions;
      edited[at].waits.erase(edited[at].waits.begin() + static_cast<std::ptrdiff_t>(wait));
      bool found = false;
      for (int number = 1; number <= 20 && !found; ++number)
        found = !runs(edited, number);
      if (!found)
        unseen += actions[at].name + " without " + actions[actions[at].waits[wait]].name + "; ";
    }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(unseen, "");
  EXPECT_GE(waits, 6);
}

TEST_F(DeviceExecutor, SaysWhatDoesNotFit) {
  auto message = [&](const char *environment, auto edit) {
    setenv("SOFT_DEVICE", environment, /*replace=*/1);
    testing::internal::CaptureStderr();
    auto *other = sharedMemory<Outcome>(1);
    EXPECT_FALSE(clean(train(true, 1, 1, 1, false, other, edit)));
    return testing::internal::GetCapturedStderr();
  };
  auto none = [](Program &) {};
  EXPECT_NE(message("arch=75", none).find("the program was compiled for sm_80, but this machine's"),
            std::string::npos);
  EXPECT_NE(message("memory=4096", none).find("'s memory, which has 1 MiB left of 1 MiB"), std::string::npos);
  EXPECT_NE(message("devices=0", none).find("the CUDA driver finds no device"), std::string::npos);
  EXPECT_NE(message("driver=11000", none).find("the CUDA driver is version 11.0, expected 12.0 or newer"),
            std::string::npos);
}

} // namespace
