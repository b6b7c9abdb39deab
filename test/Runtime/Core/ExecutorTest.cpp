//===- ExecutorTest.cpp - steps of a program, rank by rank -----------------===//

#include "Core/Agreement.h"
#include "Ranks.h"
#include "Toy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

static std::atomic<int64_t> allocations{0};
void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = malloc(bytes))
    return memory;
  abort();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { free(memory); }

namespace {

constexpr int64_t kSteps = 4;

struct Outcome {
  float losses[kSteps], norms[kSteps], gradNorms[kSteps][2], paramNorms[kSteps][2];
  float weights[2][kToyElements];
  char names[2][16];
  int64_t allocated, sentByRank[4], sent[4][kTrafficClasses];
  int failedRank, failureStatus;
  char where[64];
};

RunOptions toyOptions() {
  RunOptions options;
  options.steps = kSteps;
  options.lr = 0.5;
  options.gradClip = 3;
  options.threads = 2;
  return options;
}

/// Trains the toy in a layout; wait statuses by rank.
std::vector<int> train(int64_t dp, int64_t pp, int64_t zero, RunOptions options, Outcome *outcome) {
  Folder folder;
  Program program = toyProgram(dp, pp, zero, folder.path);
  std::vector<int64_t> arenas;
  for (int64_t rank = 0; rank < dp * pp; ++rank)
    arenas.push_back(arenaOf(program.positions[rank / dp]));
  auto group = SharedGroup::create(arenas);
  std::vector<int> statuses = runRanks(*group, [&](Engine &engine, char *arena) {
    ToyInputs inputs;
    Session session(program, toySymbol, engine, arena, options, inputs);
    session.loadParameters();
    for (int64_t step = 0; step < kSteps; ++step) {
      int64_t before = allocations;
      const StepResult &result = session.step();
      // Allocation-free from the first step on, whatever the ranks.
      if (!options.logNorms && allocations != before)
        __atomic_add_fetch(&outcome->allocated, allocations - before, __ATOMIC_RELAXED);
      std::copy(result.sent.begin(), result.sent.end(), outcome->sent[engine.rank()]);
      if (engine.rank() != 0)
        continue;
      outcome->losses[step] = result.loss;
      outcome->norms[step] = result.gradNorm;
      for (int i = 0; options.logNorms && i < 2; ++i) {
        outcome->gradNorms[step][i] = result.gradNorms[i];
        outcome->paramNorms[step][i] = result.paramNorms[i];
      }
      std::copy(result.sentByRank.begin(), result.sentByRank.end(), outcome->sentByRank);
    }
    int index = 0;
    session.visitParameters([&](const Parameter &parameter, const char *value) {
      strncpy(outcome->names[index], parameter.name.c_str(), 15);
      std::memcpy(outcome->weights[index++], value, parameter.bytes);
    });
    return 0;
  });
  outcome->failedRank = group->failedRank();
  outcome->failureStatus = group->failureStatus();
  if (outcome->failedRank >= 0)
    strncpy(outcome->where,
            describeAction(program, outcome->failedRank, group->actionOf(outcome->failedRank)).c_str(), 63);
  return statuses;
}

bool clean(const std::vector<int> &statuses) {
  for (int status : statuses)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      return false;
  return true;
}

TEST(Executor, SameBitsInEveryLayout) {
  auto *first = sharedMemory<Outcome>(1);
  ASSERT_TRUE(clean(train(1, 1, 1, toyOptions(), first)));
  EXPECT_STREQ(first->names[0], "a.w1"); // in order of name
  // The first loss, in double.
  double loss = 0;
  for (int m = 0; m < 4; ++m)
    for (int64_t i = 0; i < 100; ++i)
      loss += std::cos(static_cast<float>(i)) * ToyInputs::value(0, m, i) *
              std::cos(static_cast<float>(100 + i)) / 4;
  EXPECT_NEAR(first->losses[0], loss, 1e-4);
  EXPECT_NE(first->losses[1], first->losses[0]);
  for (int64_t zero : {1, 3})
    for (int64_t dp : {1, 2})
      for (int64_t pp : {1, 2})
        for (int64_t threads : {1, 2}) {
          auto *other = sharedMemory<Outcome>(1);
          RunOptions options = toyOptions();
          options.threads = threads;
          ASSERT_TRUE(clean(train(dp, pp, zero, options, other))) << dp << " x " << pp << " zero " << zero;
          EXPECT_EQ(std::memcmp(other->losses, first->losses, sizeof(first->losses)), 0);
          EXPECT_EQ(std::memcmp(other->norms, first->norms, sizeof(first->norms)), 0);
          EXPECT_EQ(std::memcmp(other->weights, first->weights, sizeof(first->weights)), 0)
              << dp << " x " << pp << " zero " << zero;
          EXPECT_EQ(other->allocated, 0);
        }
}

TEST(Executor, CountsBytesByClass) {
  auto *outcome = sharedMemory<Outcome>(1);
  ASSERT_TRUE(clean(train(2, 2, 1, toyOptions(), outcome)));
  constexpr int64_t slice = kToyElements * 4 / 2;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(outcome->sent[rank][static_cast<int>(TrafficClass::AllGather)], slice);
    EXPECT_EQ(outcome->sent[rank][static_cast<int>(TrafficClass::ReduceScatter)], slice);
    EXPECT_EQ(outcome->sent[rank][static_cast<int>(TrafficClass::SendRecv)], 2 * kToyElements * 4);
    EXPECT_EQ(outcome->sentByRank[rank], 2 * slice + 2 * kToyElements * 4);
  }
}

TEST(Executor, NormsByParameter) {
  RunOptions options = toyOptions();
  options.logNorms = true;
  auto *one = sharedMemory<Outcome>(1), *four = sharedMemory<Outcome>(1);
  ASSERT_TRUE(clean(train(1, 1, 1, options, one)));
  ASSERT_TRUE(clean(train(2, 2, 3, options, four)));
  for (int64_t step = 0; step < kSteps; ++step) {
    double squares = 0;
    for (int i = 0; i < 2; ++i) {
      squares += double(one->gradNorms[step][i]) * one->gradNorms[step][i];
      EXPECT_EQ(one->gradNorms[step][i], four->gradNorms[step][i]);
      EXPECT_EQ(one->paramNorms[step][i], four->paramNorms[step][i]);
    }
    EXPECT_NEAR(one->norms[step], std::sqrt(squares), 1e-5 * one->norms[step]);
  }
  double last = 0;
  for (float weight : one->weights[0])
    last += double(weight) * weight;
  EXPECT_FLOAT_EQ(one->paramNorms[kSteps - 1][1], std::sqrt(last));
}

/// All ranks of dp 2 x pp 2 end with `status`; what was printed holds `message`, once.
void expectFailure(ToyTrouble trouble, int status, const std::string &message) {
  toyTrouble = trouble;
  auto *outcome = sharedMemory<Outcome>(1);
  testing::internal::CaptureStderr();
  std::vector<int> statuses = train(2, 2, 3, toyOptions(), outcome);
  std::string text = testing::internal::GetCapturedStderr();
  toyTrouble = {};
  for (int one : statuses)
    EXPECT_EQ(WEXITSTATUS(one), status);
  EXPECT_NE(text.find(message), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST(Executor, ALossThatIsNotFinite) {
  ToyTrouble trouble;
  trouble.step = 2;
  trouble.nanLoss = true;
  expectFailure(trouble, 2, "the loss of step 2 is not finite: nan in micro-batch 0 (stage 1)");
}

TEST(Executor, AGradientThatIsNotFinite) {
  ToyTrouble trouble;
  trouble.step = kSteps - 1;
  trouble.infGradient = 99;
  expectFailure(trouble, 2, "the gradient of parameter 'b.w0' is not finite in step 3 (stage 0)");
  // Padding may hold anything.
  trouble.infGradient = 100;
  toyTrouble = trouble;
  auto *outcome = sharedMemory<Outcome>(1);
  EXPECT_TRUE(clean(train(2, 2, 3, toyOptions(), outcome)));
  toyTrouble = {};
}

TEST(Executor, MicroBatchesWithoutLabels) {
  ToyTrouble trouble;
  trouble.step = 1;
  trouble.noLabels = true;
  expectFailure(trouble, 1, "step 1, micro-batch 2: no valid label in 'labels'");
}

/// What ranks of dp 2 x pp 2 say that agree on a step, each in its own.
std::string agreeInSteps(const std::vector<int64_t> &steps, const std::vector<size_t> &lists) {
  Folder folder;
  Program program = toyProgram(2, 2, 1, folder.path);
  auto group = SharedGroup::create(std::vector<int64_t>(4, arenaOf(program.positions[0]) + (1 << 20)));
  testing::internal::CaptureStderr();
  std::vector<int> statuses = runRanks(*group, [&](Engine &engine, char *arena) {
    int rank = engine.rank();
    RankInfo info = rankInfo(program, rank);
    Addresses addresses(program.positions[info.position], info, {arena}, toySymbol);
    ThreadPool pool(1, 0);
    Agreement agreement(program, info, addresses, /*byParameter=*/false, pool);
    agreement.prepare(/*stop=*/rank == 2, /*writing=*/false, steps[rank], lists[rank]);
    engine.startAgreement(1, engine.world(), agreement.record(), agreement.shape());
    engine.complete(1);
    agreement.read();
    return agreement.stop() ? 0 : 99;
  });
  for (int status : statuses)
    EXPECT_EQ(WEXITSTATUS(status), steps[3] == steps[0] && lists[3] == lists[0] ? 0 : 2);
  return testing::internal::GetCapturedStderr();
}

TEST(Executor, RanksThatAreNotInOneStep) {
  EXPECT_EQ(agreeInSteps({6, 6, 6, 6}, {0, 0, 0, 0}), "");
  EXPECT_EQ(agreeInSteps({6, 6, 6, 7}, {0, 0, 0, 0}),
            "rank 0: the ranks are not in one step: rank 0 is in step 6, rank 3 is in step 7; the run ends "
            "before anything of it is saved\n");
  EXPECT_EQ(
      agreeInSteps({6, 6, 6, 6}, {0, 0, 0, 1}),
      "rank 0: the ranks are not in one step: rank 0 is in step 6, rank 3 is in an evaluation, group 6; the "
      "run ends before anything of it is saved\n");
}

TEST(Executor, AKilledRankIsNamedWithItsAction) {
  toyTrouble.step = 2;
  toyTrouble.kill = true;
  auto *outcome = sharedMemory<Outcome>(1);
  std::vector<int> statuses = train(1, 2, 1, toyOptions(), outcome);
  toyTrouble = {};
  EXPECT_EQ(outcome->failedRank, 1);
  EXPECT_EQ(outcome->failureStatus, 2);
  EXPECT_STREQ(outcome->where, "block1.F 0 F");
  EXPECT_EQ(WEXITSTATUS(statuses[0]), 2);
}

TEST(Executor, RefusesAnotherWorldSizeAndTooManyThreads) {
  Folder folder;
  Program program = toyProgram(2, 1, 1, folder.path);
  auto engine = makeSingleEngine();
  ToyInputs inputs;
  std::vector<char> arena(arenaOf(program.positions[0]));
  auto message = [&](const RunOptions &options) -> std::string {
    try {
      Session(program, toySymbol, *engine, arena.data(), options, inputs);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(toyOptions()), "started with 1 ranks; the program was compiled for 2 (dp 2 x pp 1)");
  program = toyProgram(1, 1, 1, folder.path);
  RunOptions options = toyOptions();
  options.threads = 3;
  EXPECT_EQ(message(options), "-threads=3: expected 1 to 2, for which the program was compiled");
}

TEST(Executor, AProgramThatCannotGoOnSaysSo) {
  Folder folder;
  Program program = toyProgram(1, 1, 1, folder.path);
  // The first action waits for the last.
  program.positions[0].actions.edit()[0].waits = {static_cast<int64_t>(program.positions[0].actions.size()) -
                                                  1};
  auto engine = makeSingleEngine();
  ToyInputs inputs;
  std::vector<char> arena(arenaOf(program.positions[0]));
  Session session(program, toySymbol, *engine, arena.data(), toyOptions(), inputs);
  try {
    session.step();
    FAIL();
  } catch (const Error &error) {
    EXPECT_NE(
        std::string(error.what()).find("no action of step 0 can start: 'input x 0' waits for 'update b1'"),
        std::string::npos)
        << error.what();
  }
}

} // namespace
