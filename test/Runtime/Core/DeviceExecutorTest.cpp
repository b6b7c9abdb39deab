//===- DeviceExecutorTest.cpp - steps of a program on a device --------------===//
//
// The toy on the device in software, whose streams go in any order that events allow.
//
//===----------------------------------------------------------------------===//

#include "Ranks.h"
#include "Toy.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/RoutineImages.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

constexpr int64_t kSteps = 3;
constexpr dsopt_device_kernel kMultiply = {"multiply", 3, 32, 32}, kScale = {"scale", 3, 32, 32},
                              kDot = {"dot", 3, 32, 32}, kUpdate = {"update", 3, 32, 32};

std::string images;
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
};

/// Trains the toy; wait statuses by rank. `edit` may change the program.
template <typename Edit>
std::vector<int> train(bool onDevice, int64_t dp, int64_t pp, int64_t zero, bool logNorms, Outcome *outcome,
                       Edit edit) {
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
  return runRanks(*group, [&](Engine &engine, char *arena) {
    ToyInputs inputs;
    options.localRank = engine.rank();
    Session session(program, onDevice ? deviceSymbol : toySymbol, engine, arena, options, inputs);
    session.loadParameters();
    for (int64_t step = 0; step < kSteps; ++step) {
      const StepResult &result = session.step();
      if (engine.rank() != 0)
        continue;
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
