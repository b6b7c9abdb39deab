//===- StreamTest.cpp - steps that somebody writes into a folder -----------===//

#include "Data/StreamSource.h"
#include "NpzWriter.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace dsopt::runtime;
using namespace dsopt::test;

namespace {
class Stream : public ::testing::Test {
protected:
  void SetUp() override {
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/lock");
    program.K = program.M = 2;
    program.inputs.push_back({"x", "f32", {2, 3}, false, -100});
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// Step `step` of `count` micro-batches, and what `add` adds.
  void write(int step, int count, const std::function<void(NpzWriter &)> &add = [](NpzWriter &) {}) {
    NpzWriter writer;
    add(writer);
    writer.add("x", "<f4", "(" + std::to_string(count) + ", 2, 3)",
               std::vector<float>(count * 6, static_cast<float>(step)));
    writer.write(folder + "/step-0000000" + std::to_string(step) + ".npz");
  }

  std::string folder = ::testing::TempDir() + "stream-test-" + std::to_string(getpid());
  Program program;
};

TEST_F(Stream, AStepHoldsItsMicroBatches) {
  for (int count : {1, 2, 3, 4}) {
    write(0, count);
    StreamSource source(program, folder, false);
    source.plannedSteps(0, 0);
    source.startAt(0, 0);
    std::string refusal;
    try {
      ASSERT_EQ(source.awaitStep(0, [] { return true; }), DataSource::Arrival::Ready);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      refusal = error.what();
    }
    EXPECT_EQ(refusal, count == 2 ? ""
                                  : folder + "/step-00000000.npz: holds " + std::to_string(count) +
                                        " micro-batches, expected the 2 of a step");
  }
}

/// Each look asks the file system, which ranks share: the longer a step takes to come, the fewer there are.
TEST_F(Stream, LooksSeldomForWhatTakesLong) {
  int writer = open((folder + "/lock").c_str(), O_RDWR);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  StreamSource source(program, folder, false);
  auto begin = std::chrono::steady_clock::now();
  int looks = 0;
  auto stop = [&] {
    ++looks;
    return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1);
  };
  EXPECT_EQ(source.awaitStep(0, stop), DataSource::Arrival::Stopped);
  EXPECT_LT(looks, 400);
  close(writer);
}

TEST_F(Stream, TheWriterAsks) {
  using Arrival = DataSource::Arrival;
  auto asked = [&](const std::string &text) -> std::string {
    std::ofstream(folder + "/ask") << text;
    StreamSource source(program, folder, false);
    EXPECT_EQ(source.awaitStep(0, [] { return true; }), Arrival::Asked);
    std::string all;
    try {
      for (const Request &request : source.requests())
        all += std::to_string(request.kind) + request.place + ";";
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return std::string(error.what()).substr(folder.size() + 1);
    }
    source.answer();
    EXPECT_EQ(source.awaitStep(0, [] { return true; }), Arrival::Stopped);
    EXPECT_TRUE(std::filesystem::remove(folder + "/answered"));
    return all;
  };
  const std::string lines = "'save FOLDER', 'write FILE' or 'take FILE'";
  EXPECT_EQ(asked("save /a b\n"), "0/a b;");
  EXPECT_EQ(asked("take x\nwrite y\nsave z"), "2x;1y;0z;");
  EXPECT_EQ(asked(""), "ask: expected lines " + lines);
  for (const char *wrong : {"keep /a", "save", "save ", "", " take /a"})
    EXPECT_EQ(asked(std::string("take x\n") + wrong + "\n"), "ask: line 2: expected " + lines);
  // Steps that are there come first.
  write(0, 2);
  StreamSource source(program, folder, false);
  EXPECT_EQ(source.awaitStep(0, [] { return true; }), Arrival::Ready);
}

TEST_F(Stream, AStepSaysItsLearningRate) {
  auto rate = [&](const std::function<void(NpzWriter &)> &add) -> std::string {
    write(0, 2, add);
    StreamSource source(program, folder, false);
    EXPECT_EQ(source.awaitStep(0, [] { return true; }), DataSource::Arrival::Ready);
    try {
      return std::to_string(*source.rateOf(0));
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return std::string(error.what()).substr(folder.size() + 1);
    }
  };
  auto scalar = [](double value) {
    return [value](NpzWriter &writer) { writer.add("dsopt.lr", "<f8", "()", std::vector<double>{value}); };
  };
  const std::string expected =
      ", expected the scalar f64 'dsopt.lr' with the step's learning rate (-lr-schedule=stream)";
  EXPECT_EQ(rate(scalar(0.25)), "0.250000");
  EXPECT_EQ(rate(scalar(0)), "0.000000");
  EXPECT_EQ(rate(scalar(-1)), "step-00000000.npz: got 'dsopt.lr' = -1.000000, expected 0 or more");
  EXPECT_EQ(rate([](NpzWriter &) {}), "step-00000000.npz: got no 'dsopt.lr'" + expected);
  EXPECT_EQ(rate([](NpzWriter &writer) { writer.add("dsopt.lr", "<f4", "(1,)", std::vector<float>{1}); }),
            "step-00000000.npz: got 'dsopt.lr' as f32 [1]" + expected);
}

TEST_F(Stream, APlaceIsTheOneAfterItsStep) {
  auto says = [](const std::string &text) {
    return [text](NpzWriter &writer) {
      writer.add("dsopt.place", "|u1", "(" + std::to_string(text.size()) + ",)",
                 std::vector<uint8_t>(text.begin(), text.end()));
    };
  };
  write(0, 2, says("first"));
  write(1, 2, says("second"));
  write(2, 2);
  StreamSource source(program, folder, false);
  source.startAt(5, 0);
  EXPECT_EQ(source.placeAfter(5), "");
  source.awaitStep(5, [] { return true; });
  source.awaitStep(6, [] { return true; });
  // Step 6 has come, and is not done: a checkpoint now is one of step 5.
  EXPECT_EQ(source.placeAfter(6), "first");
  EXPECT_EQ(source.placeAfter(7), "second");
  source.awaitStep(7, [] { return true; });
  EXPECT_EQ(source.placeAfter(8), "");
}

} // namespace
