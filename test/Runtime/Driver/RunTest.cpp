//===- RunTest.cpp - dsopt-run from the command line to its exit status ---===//

#include "NpzWriter.h"
#include "dsopt/Runtime/Executable.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using dsopt::test::NpzWriter;

namespace {
std::string readFile(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Run : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "run-test-" + std::to_string(getpid());
  std::string output;

  void SetUp() override {
    mkdir(folder.c_str(), 0777);
    std::ofstream(folder + "/tiny.bin", std::ios::binary) << std::string(256, '\0');
    data({1, 2, 3, 4, 5, 6});
  }
  void TearDown() override { std::system(("rm -r " + folder).c_str()); }

  /// Micro-batches of x, each with equal values.
  void data(const std::vector<float> &values) {
    std::vector<float> x;
    for (float value : values)
      x.insert(x.end(), 64, value);
    std::string n = std::to_string(values.size());
    NpzWriter writer;
    writer.add("x", "<f4", "(" + n + ", 2, 32)", x);
    writer.add("labels", "<i4", "(" + n + ", 2)", std::vector<int32_t>(values.size() * 2));
    writer.write(folder + "/data.npz");
  }

  /// The exit status of a command in the folder; its output goes to `output`.
  int shell(const std::string &command) {
    int status = std::system(("cd " + folder + " && (" + command + ") > out.txt 2>&1").c_str());
    output = readFile(folder + "/out.txt");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int run(const std::string &program, const std::string &options) {
    return shell(DSOPT_RUN " " + program + " -data=data.npz -weights=. " + options);
  }
  bool says(const std::string &text) { return output.find(text) != std::string::npos; }
  std::string log() { return readFile(folder + "/log.jsonl"); }
};

TEST_F(Run, OneRankTrainsAndLogs) {
  ASSERT_EQ(run(TINY1, "-log=log.jsonl"), 0) << output;
  EXPECT_TRUE(says("global batch 2 = 1 dp x 1 micro-batches x 2\n")) << output;
  EXPECT_TRUE(says("step 5/6")) << output;
  std::string lines = log();
  EXPECT_EQ(lines.find("{\"run\":{\"version\":"), 0u) << lines;
  // w is 0, x is 1: the loss is 64/128; then w is 0.5/64, x is 2.
  EXPECT_NE(lines.find("{\"step\":0,\"loss\":0.5,\"grad_norm\":0.125,\"lr\":0.5,"), std::string::npos)
      << lines;
  EXPECT_NE(lines.find("{\"step\":1,\"loss\":1.98440552,"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"peak_bytes\":[4096],\"sent_bytes\":[0]}"), std::string::npos) << lines;
  EXPECT_NE(lines.find("{\"end\":{\"steps\":6,\"weights_hash\":\""), std::string::npos) << lines;
}

TEST_F(Run, TwoRanksShareTheWork) {
  ASSERT_EQ(run(TINY2, "-log=log.jsonl -breakdown"), 0) << output;
  EXPECT_TRUE(says("global batch 4 = 2 dp x 1 micro-batches x 2\n")) << output;
  EXPECT_TRUE(says("\nall (mean)")) << output;
  // The mean of the losses 64/128 and 256/128.
  EXPECT_NE(log().find("{\"step\":0,\"loss\":1.25,"), std::string::npos) << log();
  EXPECT_NE(log().find("\"peak_bytes\":[8192,8192],\"sent_bytes\":[512,512]"), std::string::npos) << log();
}

TEST_F(Run, StepsWrapAroundAndOptionsCount) {
  ASSERT_EQ(run(TINY1, "-steps=8 -lr=0 -log=log.jsonl -log-every=7 -log-norms -quiet"), 0) << output;
  EXPECT_EQ(output, "");
  EXPECT_NE(log().find("{\"step\":7,\"loss\":2,"), std::string::npos) << log();
  EXPECT_EQ(log().find("{\"step\":6,"), std::string::npos) << log();
  EXPECT_NE(log().find("\"grad_norms\":{\"w\":"), std::string::npos) << log();
}

TEST_F(Run, AppendedProgramsRunAlone) {
  dsopt::runtime::writeExecutable(DSOPT_RUN, readFile(TINY2), folder + "/train");
  EXPECT_EQ(shell("./train -data=data.npz -weights=. -log=log.jsonl"), 0) << output;
  EXPECT_NE(log().find("\"status\":\"ok\""), std::string::npos);
  EXPECT_EQ(shell("./train --help"), 0);
  EXPECT_TRUE(says("learning rate (0.5)")) << output;
  EXPECT_TRUE(says("layout      dp 2, pp 1, zero 1")) << output;
  EXPECT_EQ(shell("./train -zero=3"), 1);
  EXPECT_EQ(output, "dsopt: error: option -zero is compiled in; use: dsopt tiny.onnx -dp=2 -optimizer=sgd -o "
                    "tiny -zero=3\n");
  // A damaged one says so before anything of it runs.
  std::string bytes = readFile(folder + "/train");
  bytes[bytes.size() - readFile(TINY2).size() / 2] ^= 4;
  std::ofstream(folder + "/train", std::ios::binary) << bytes;
  EXPECT_EQ(shell("./train -data=data.npz -weights=."), 1);
  EXPECT_EQ(output, "dsopt: error: this executable is damaged (the program in it is not what was written); "
                    "compile it again\n");
}

TEST_F(Run, SavesWeightsAndModel) {
  ASSERT_EQ(run(TINY2, "-save-weights=w.safetensors -save-onnx=m.onnx"), 0) << output;
  EXPECT_NE(readFile(folder + "/w.safetensors").find("\"w\":{\"dtype\":\"F32\",\"shape\":[64],"),
            std::string::npos);
  std::string model = readFile(folder + "/m.onnx"), weights = readFile(folder + "/w.safetensors");
  EXPECT_EQ(model.substr(0, 2), "\x08\x09");
  EXPECT_EQ(model.substr(model.size() - 256), weights.substr(weights.size() - 256));
}

TEST_F(Run, WhatIsWrongIsSaidOnceBeforeAnyWork) {
  auto expect = [&](const std::string &command, const std::string &message) {
    EXPECT_EQ(shell(command), 1) << command;
    EXPECT_EQ(output, "dsopt: error: " + message + "\n");
  };
  std::string start = DSOPT_RUN " " TINY2 " ";
  expect(start + "-stesp=3", "unknown option -stesp; did you mean -steps?");
  expect(start + "-nvme-path=file", "option -nvme-path is not available yet");
  expect(start + "-resume=auto",
         "option -resume=auto goes on in the folder of -save=DIR, which is not given");
  expect(start + "-save-every=2", "option -save-every needs -save=DIR");
  expect(start,
         "no data: give -data=FILE.npz with the arrays x f32 [2, 32], labels i64 [2], or files of tokens");
  expect(start + "-data=no.npz", "no.npz: cannot be read: No such file or directory");
  expect(start + "-data=data.npz -save-onnx=none/m.onnx",
         "option -save-onnx: cannot write none/m.onnx: No such file or directory");
  expect(start + "-data=data.npz -threads=3",
         "option -threads=3: the program was planned with 2 at most; use: dsopt "
         "tiny.onnx -dp=2 -optimizer=sgd -o tiny -threads=3");
  expect(start + "-data=data.npz -grad-clip=1",
         "option -grad-clip: clipping is compiled out; use: dsopt tiny.onnx -dp=2 "
         "-optimizer=sgd -o tiny -grad-clip=1");
  expect(start + "-data=data.npz",
         "cannot read 'nowhere/tiny.bin', which holds parameter 'w': No such file or directory");
  expect("OMPI_COMM_WORLD_SIZE=3 " + start + "-data=data.npz",
         "the launcher started 3 ranks; the program was compiled for 2 (dp 2 x pp 1)");
  expect("RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=1 " + start + "-data=data.npz",
         "rank 1: the launcher started 3 ranks; the program was compiled for 2 (dp 2 x pp 1)");
  expect("RANK=2 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 " + start + "-data=data.npz",
         "RANK=2: expected 0 to 1, since WORLD_SIZE=2");
  expect(DSOPT_RUN " data.npz",
         "data.npz: cannot be loaded as a dsopt program: ./data.npz: invalid ELF header");
}

TEST_F(Run, ALossThatIsNoNumberEndsTheRun) {
  data({1, 2, 3, 1002});
  EXPECT_EQ(run(TINY2, "-log=log.jsonl -save-weights=w.safetensors -quiet"), 2);
  EXPECT_EQ(output,
            "dsopt: error: the loss of step 1 is not finite: nan in micro-batch 1 (stage 0); the run ends "
            "before anything of it is saved\n");
  EXPECT_NE(log().find("{\"end\":{\"steps\":1,"), std::string::npos) << log();
  EXPECT_NE(log().find("\"status\":\"failed\""), std::string::npos) << log();
  EXPECT_NE(access((folder + "/w.safetensors").c_str(), F_OK), 0);
}

TEST_F(Run, ADeadRankEndsTheOthersSoon) {
  data({1, 2, 3, 1001});
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run(TINY2, "-quiet"), 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(output, "dsopt: error: rank 1 was killed by signal 9 (Killed) in step 1, in 'block 0 F'\n");
}

TEST_F(Run, ASignalFinishesTheStep) {
  for (const char *program : {TINY1, TINY2}) {
    data({1000, 1000});
    std::string command =
        std::string(DSOPT_RUN " ") + program + " -data=data.npz -weights=. -steps=500 -log=log.jsonl";
    EXPECT_EQ(shell(command + " & sleep 0.5; kill -TERM $!; wait $!"), 3) << output;
    EXPECT_TRUE(says("interrupted after ")) << output;
    EXPECT_NE(log().find("\"weights_hash\""), std::string::npos);
    EXPECT_NE(log().find("\"status\":\"interrupted\""), std::string::npos);
    // The second one does not wait for the step, unless that has just ended.
    int attempt = 0;
    do
      EXPECT_EQ(shell(command + " & sleep 0.5; kill -TERM $!; kill -INT $!; wait $!"), 3) << output;
    while (says("interrupted after ") && ++attempt < 5);
    EXPECT_FALSE(says("interrupted after ")) << output;
  }
}

TEST_F(Run, AFullDiskIsAFailure) {
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(run(program, "-quiet -log=/dev/full"), 2);
    EXPECT_EQ(output, "dsopt: error: /dev/full: writing failed: No space left on device\n");
  }
}

TEST_F(Run, RanksEndWithTheirLauncher) {
  data({1000, 1000});
  EXPECT_EQ(
      shell(
          DSOPT_RUN
          " " TINY2 " -data=data.npz -weights=. -steps=500 & launcher=$!; sleep 0.5;"
          "ranks=$(cat /proc/$launcher/task/$launcher/children); kill -KILL $launcher; sleep 0.5;"
          "for rank in $ranks; do echo rank; grep 'State:.[RSD]' /proc/$rank/status && exit 9; done; exit 0"),
      0)
      << output;
  EXPECT_TRUE(says("rank\nrank\n") || says("rank\ngrep")) << output;
}
} // namespace
