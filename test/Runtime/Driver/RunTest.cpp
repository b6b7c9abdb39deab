//===- RunTest.cpp - dsopt-run from the command line to its exit status ---===//

#include "NpzWriter.h"
#include "dsopt/Runtime/Executable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <netinet/in.h>
#include <sys/socket.h>
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
  /// What the segments of TinyProgram.c do.
  enum : int {
    Sleep = 1000,
    Kill,
    NoNumber,
    Leave,
    Interrupted,
    Stop,
    KillOnce,
    StopAWhile,
    CutData,
    CutLog,
    CutProgram,
    CutByte
  };
  /// `weights_hash` of the log's last line.
  std::string hash() {
    std::string lines = log();
    size_t at = lines.rfind("\"weights_hash\":\"");
    return at == std::string::npos ? "" : lines.substr(at + 16, 64);
  }
  /// The log's last line.
  std::string end() {
    std::string lines = log();
    return lines.empty() ? "" : lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  }
  /// Two ranks of TINY2 as a launcher starts them, on hosts of their own or one; their output goes to
  /// rank0.txt and rank1.txt, and `then` comes after them.
  int launched(const std::string &options, const std::string &then, bool apart = false,
               const std::string &before = "") {
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t bytes = sizeof address;
    bind(probe, reinterpret_cast<sockaddr *>(&address), bytes);
    getsockname(probe, reinterpret_cast<sockaddr *>(&address), &bytes);
    close(probe);
    std::string text = before + "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                       std::to_string(ntohs(address.sin_port));
    for (std::string rank : {"0", "1"})
      text += "; " + (apart ? "DSOPT_HOST=host" + rank + " " : "") + "RANK=" + rank +
              " " DSOPT_RUN " " TINY2 " -data=data.npz -weights=. " + options + " > rank" + rank +
              ".txt 2>&1 & p" + rank + "=$!";
    return shell(text + "; " + then);
  }
  /// Waits in a shell until the log has a line of step 0.
  static constexpr const char *kUntilTraining =
      "for i in $(seq 600); do grep -qs '\"step\":0' log.jsonl && break; sleep 0.05; done; ";
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

TEST_F(Run, ARankThatLeavesBeforeItIsDoneHasFailed) {
  for (int how : {Leave, Interrupted}) {
    data({1, 2, 3, float(how)});
    std::string why = "rank 1 ended with status " + std::string(how == Leave ? "0" : "3") +
                      " without being done, in step 1, in 'block 0 F'";
    EXPECT_EQ(run(TINY2, "-quiet -log=log.jsonl"), 2);
    EXPECT_EQ(output, "dsopt: error: " + why + "\n");
    EXPECT_NE(end().find("\"status\":\"failed\",\"rank\":1,\"reason\":\"" + why + "\"}}\n"),
              std::string::npos)
        << end();
  }
}

TEST_F(Run, AStandstillEndsAndNamesWhoIsAwaited) {
  data({1, 2, 3, Stop});
  EXPECT_EQ(run(TINY2, "-quiet -log=log.jsonl -stall-timeout=1"), 2);
  EXPECT_EQ(
      output,
      "dsopt: error: nothing has moved for 1 s (-stall-timeout): rank 0 waits for rank 1 (in step 1, in "
      "'reduce b0'); rank 1 is stopped in step 1, in 'block 0 F'\n");
  EXPECT_NE(end().find("\"status\":\"failed\",\"rank\":1,"), std::string::npos) << end();
}

TEST_F(Run, AStandstillOfLaunchedRanksIsSaidByOneThatWaits) {
  data({1, 2, 3, Stop});
  for (bool apart : {false, true}) {
    EXPECT_EQ(launched("-quiet -log=log.jsonl -stall-timeout=1",
                       "wait $p0; status=$?; kill -KILL $p1; exit $status", apart),
              2)
        << output;
    EXPECT_EQ(readFile(folder + "/rank0.txt"), "dsopt: error: rank 0 has waited 1 s for rank 1 in step 1, in "
                                               "'reduce b0', and nothing moved (-stall-timeout)\n");
    EXPECT_NE(end().find("\"status\":\"failed\",\"rank\":1,"), std::string::npos) << end();
  }
}

TEST_F(Run, ARankThatIsStoppedForLessGoesOn) {
  data({1, 2, 3, Sleep, 4, 5});
  ASSERT_EQ(run(TINY2, "-quiet -log=log.jsonl"), 0) << output;
  std::string before = hash();
  data({1, 2, 3, StopAWhile, 4, 5});
  EXPECT_EQ(run(TINY2, "-quiet -log=log.jsonl -stall-timeout=60"), 0) << output;
  EXPECT_EQ(hash(), before);
  EXPECT_EQ(launched("-quiet -log=log.jsonl -stall-timeout=60", "wait $p0 && wait $p1"), 0) << output;
  EXPECT_EQ(hash(), before);
}

TEST_F(Run, ASecondSignalEndsAStoppedRankToo) {
  data({Sleep, Sleep});
  EXPECT_EQ(shell(DSOPT_RUN " " TINY2
                            " -data=data.npz -weights=. -quiet -steps=100k -log=log.jsonl & p=$!; " +
                  std::string(kUntilTraining) +
                  "kill -STOP $(cut -d' ' -f2 /proc/$p/task/$p/children); kill -TERM $p; sleep 0.3; kill "
                  "-TERM $p; wait $p"),
            3)
      << output;
  EXPECT_EQ(output, "");
  EXPECT_NE(end().find("\"status\":\"interrupted\",\"reason\":\"a second signal\""), std::string::npos)
      << end();
}

TEST_F(Run, TwoSignalsToAllProcessesAtOnceEndAll) {
  data({Sleep, Sleep});
  for (const char *program : {TINY1, TINY2})
    for (int attempt = 0; attempt < 5; ++attempt) {
      EXPECT_EQ(shell(std::string("rm -f log.jsonl; setsid ") + DSOPT_RUN " " + program +
                      " -data=data.npz -weights=. -quiet -steps=100k -log=log.jsonl & p=$!; " +
                      kUntilTraining + "kill -INT -$p; kill -INT -$p 2>&-; wait $p"),
                3)
          << output;
      EXPECT_EQ(output, "");
    }
}

TEST_F(Run, TheSecondSignalOfALaunchedRankIsItsPeersInterruption) {
  data({Sleep, Sleep});
  EXPECT_EQ(launched("-quiet -steps=100k -log=log.jsonl",
                     std::string(kUntilTraining) +
                         "kill -TERM $p1; kill -INT $p1; wait $p0; s0=$?; wait $p1; exit $((s0 * 10 + $?))"),
            33)
      << output << readFile(folder + "/rank0.txt") << readFile(folder + "/rank1.txt");
  EXPECT_EQ(readFile(folder + "/rank0.txt"), "");
}

TEST_F(Run, SignalsChangeNothingWhenAllIsDone) {
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(shell(std::string("TINY_SIGNALS_AT_END=1 " DSOPT_RUN " ") + program +
                    " -data=data.npz -weights=. -quiet -log=log.jsonl"),
              0)
        << output;
    EXPECT_NE(end().find("\"status\":\"ok\""), std::string::npos) << end();
  }
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

TEST_F(Run, ALogThatCannotBeWrittenEndsTheRunWithAllItHas) {
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(run(program, "-quiet -log=/dev/full -save=saved"), 2);
    EXPECT_EQ(output, "dsopt: error: /dev/full: writing failed: No space left on device\n");
    EXPECT_EQ(access((folder + "/saved/step-00000001/manifest.json").c_str(), F_OK), 0);
    std::system(("rm -r " + folder + "/saved").c_str());
  }
  EXPECT_EQ(launched("-quiet -log=/dev/full", "wait $p0; s0=$?; wait $p1; exit $((s0 * 10 + $?))"), 22)
      << output;
  EXPECT_EQ(readFile(folder + "/rank0.txt"),
            "dsopt: error: /dev/full: writing failed: No space left on device\n");
  EXPECT_EQ(readFile(folder + "/rank1.txt"), "");
}

TEST_F(Run, TheFirstErrorIsTheOneThatIsSaid) {
  data({1, 2, 3, NoNumber});
  EXPECT_EQ(run(TINY1, "-quiet -steps=4 -log=/dev/full -log-every=1"), 2);
  EXPECT_EQ(output, "dsopt: error: /dev/full: writing failed: No space left on device\n");
  data({NoNumber, NoNumber});
  EXPECT_EQ(run(TINY1, "-quiet -log=/dev/full"), 2);
  EXPECT_TRUE(says("the loss of step 0 is not finite")) << output;
}

TEST_F(Run, ALimitOnFileSizesIsAnError) {
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(shell(std::string("ulimit -f 1; " DSOPT_RUN " ") + program +
                    " -data=data.npz -weights=. -quiet -steps=100 -log=log.jsonl"),
              2);
    EXPECT_EQ(output, "dsopt: error: log.jsonl: writing failed: File too large\n");
  }
}

TEST_F(Run, ALogGrowsAtItsEndWhereverThatIs) {
  data({1, 2, 3, CutLog, 4, 5});
  EXPECT_EQ(run(TINY1, "-quiet -log=log.jsonl"), 0) << output;
  EXPECT_EQ(log().find('\0'), std::string::npos);
  EXPECT_EQ(log().substr(0, 10), "{\"step\":3,");
  // A line that a crash has cut stays by itself.
  data({1, 2, 3, 4});
  std::ofstream(folder + "/log.jsonl") << "{\"step\":1,\"lo";
  EXPECT_EQ(run(TINY1, "-quiet -save=saved -steps=1"), 0) << output;
  EXPECT_EQ(run(TINY1, "-quiet -save=saved -resume=auto -log=log.jsonl"), 0) << output;
  EXPECT_EQ(log().find("{\"step\":1,\"lo\n{\"run\":"), 0u) << log();
}

TEST_F(Run, StandardStreamsThatAreClosedStayApartFromFiles) {
  for (const char *program : {TINY1, TINY2})
    for (const char *closed : {" >&-", " <&- >&-", " <&- >&- 2>&-"}) {
      EXPECT_EQ(
          shell(std::string(DSOPT_RUN " ") + program + " -data=data.npz -weights=. -log=log.jsonl" + closed),
          0);
      EXPECT_EQ(("\n" + log()).find("\nstep "), std::string::npos) << log();
      EXPECT_EQ(end().find("{\"end\":"), 0u) << log();
    }
  // What is said last is not said into the log.
  data({1, CutData, 3, 4});
  EXPECT_EQ(shell(DSOPT_RUN " " TINY1 " -data=data.npz -weights=. -log=log.jsonl 2>&-"), 2);
  EXPECT_EQ(log().find("cannot be read"), std::string::npos) << log();
}

TEST_F(Run, AReaderThatIsGoneDoesNotEndTheRun) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(shell(std::string(DSOPT_RUN " ") + program + " -data=data.npz -weights=. -log=log.jsonl >&" +
                    std::to_string(ends[1])),
              0);
    EXPECT_EQ(output,
              "dsopt: warning: standard output cannot be written: Broken pipe; the run goes on silently\n");
    EXPECT_NE(end().find("\"status\":\"ok\""), std::string::npos) << end();
    // Not even with standard error on the same pipe.
    EXPECT_EQ(shell(std::string(DSOPT_RUN " ") + program + " -data=data.npz -weights=. >&" +
                    std::to_string(ends[1]) + " 2>&1"),
              0);
  }
  close(ends[1]);
  EXPECT_EQ(shell(DSOPT_RUN " --help > /dev/full"), 2);
  EXPECT_EQ(output, "dsopt: error: standard output: writing failed: No space left on device\n");
}

TEST_F(Run, AMappedFileThatIsCutIsNamed) {
  for (const char *program : {TINY1, TINY2}) {
    data({1, CutData, 3, 4, 5, 6});
    EXPECT_EQ(run(program, "-quiet"), 2);
    EXPECT_EQ(output.find("dsopt: error: data.npz: cannot be read any more from byte "), 0u) << output;
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
    data({1, CutProgram, 3, 4, 5, 6});
    EXPECT_EQ(shell(std::string("cp ") + program + " program.so"), 0);
    EXPECT_EQ(run("program.so", "-quiet"), 2);
    EXPECT_EQ(output.find("dsopt: error: program.so: cannot be read any more from byte "), 0u) << output;
  }
}

TEST_F(Run, AFileCutWithinItsLastPageIsNoticedBeforeASaveAndAtTheEnd) {
  const std::string expected = "dsopt: error: data.npz: was truncated while the run used it, from ";
  for (auto [program, saved] : {std::make_pair(TINY1, "step-00000001\nstep-00000002\nstep-00000003\n"),
                                std::make_pair(TINY2, "step-00000001\n")}) {
    data({1, 2, 3, CutByte, 5, 6});
    EXPECT_EQ(run(program, "-quiet -save-weights=w.safetensors"), 2);
    EXPECT_EQ(output.find(expected), 0u) << output;
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
    EXPECT_EQ(shell("ls w.safetensors"), 2);
    data({1, 2, 3, CutByte, 5, 6});
    EXPECT_EQ(run(program, "-quiet -save=cut -save-every=1 -save-keep=9"), 2);
    EXPECT_EQ(output.find(expected), 0u) << output;
    EXPECT_EQ(shell("ls cut; rm -r cut"), 0);
    EXPECT_EQ(output, saved);
  }
}

TEST_F(Run, RestartsGoOnFromTheNewestCheckpointWithTheSameBits) {
  for (const char *program : {TINY1, TINY2}) {
    data({1, 2, 3, KillOnce, 4, 5, 6, 7});
    std::ofstream(folder + "/killed");
    ASSERT_EQ(run(program, "-quiet -log=log.jsonl"), 0) << output;
    std::string before = hash();
    for (const char *every : {"-save-every=1", ""}) {
      std::system(("rm -rf " + folder + "/killed " + folder + "/saved").c_str());
      EXPECT_EQ(run(program, std::string("-quiet -log=log.jsonl -restarts=2 -save=saved ") + every), 0)
          << output;
      EXPECT_EQ(hash(), before);
      std::string where = program == std::string(TINY1) ? "rank 0 was killed by signal 9 (Killed) in step 3"
                                                        : "rank 1 was killed by signal 9 (Killed) in step 1";
      std::string from = !*every                         ? "where the run began, since nothing is saved yet"
                         : program == std::string(TINY1) ? "with saved/step-00000003"
                                                         : "with saved/step-00000001";
      EXPECT_EQ(output,
                "dsopt: warning: " + where + ", in 'block 0 F'; restart 1 of 2 begins " + from + "\n");
    }
  }
}

TEST_F(Run, RestartsEndAndAreNotForEverything) {
  data({1, 2, 3, Kill});
  EXPECT_EQ(run(TINY2, "-quiet -restarts=1 -save=saved"), 2);
  EXPECT_EQ(output, "dsopt: warning: rank 1 was killed by signal 9 (Killed) in step 1, in 'block 0 F'; "
                    "restart 1 of 1 begins "
                    "where the run began, since nothing is saved yet\n"
                    "dsopt: error: rank 1 was killed by signal 9 (Killed) in step 1, in 'block 0 F'\n");
  EXPECT_EQ(run(TINY2, "-restarts=1"), 1);
  EXPECT_EQ(output,
            "dsopt: error: option -restarts needs -save=DIR, to begin again at its newest checkpoint\n");
  EXPECT_EQ(shell("RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 " DSOPT_RUN " " TINY2
                  " -data=data.npz -restarts=1 -save=saved"),
            1);
  EXPECT_TRUE(says("option -restarts is for ranks that are started here")) << output;
  std::system(("rm " + folder + "/tiny.bin").c_str());
  EXPECT_EQ(run(TINY2, "-quiet -restarts=1 -save=saved"), 1);
  EXPECT_EQ(output.find("dsopt: error: cannot read "), 0u) << output;
}

TEST_F(Run, EveryLaunchedRankSaysWhatIsWrongWithIt) {
  // Rank 0, which would say it for them, does not come.
  std::string start =
      "DSOPT_LAUNCH_TIMEOUT=4 RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 " DSOPT_RUN " " TINY2
      " ";
  EXPECT_EQ(shell(start + "-data=no.npz"), 1);
  EXPECT_EQ(output, "dsopt: error: rank 1: no.npz: cannot be read: No such file or directory\n");
  EXPECT_EQ(shell(start + "-data=data.npz -stesp=3"), 1);
  EXPECT_EQ(output, "dsopt: error: rank 1: unknown option -stesp; did you mean -steps?\n");
}

TEST_F(Run, TooFewOpenFilesForAWorldAreSaidBeforeItMeets) {
  EXPECT_EQ(shell("ulimit -n 40; RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 " DSOPT_RUN " " TINY2
                  " -data=data.npz -weights=. -quiet"),
            1);
  EXPECT_EQ(
      output,
      "dsopt: error: rank 0: a run of 2 ranks needs 82 open files, the system permits 40 (ulimit -n)\n");
  // A soft limit is raised.
  EXPECT_EQ(launched("-quiet", "wait $p0 && wait $p1", false, "ulimit -S -n 40; "), 0)
      << readFile(folder + "/rank0.txt");
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
/// Names in a folder, with blanks between them.
std::string listed(const std::string &folder) {
  std::vector<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : " ") + name;
  return text;
}
std::string hashOf(const std::string &log) {
  size_t at = log.rfind("\"weights_hash\":\"");
  return at == std::string::npos ? "none" : log.substr(at + 16, 64);
}

TEST_F(Run, AUsedFolderIsNotSavedInto) {
  ASSERT_EQ(run(TINY1, "-steps=6 -save=s -save-every=1 -quiet"), 0) << output;
  EXPECT_EQ(listed(folder + "/s"), "step-00000004 step-00000005 step-00000006");
  // A new run, and one that goes back.
  EXPECT_EQ(run(TINY1, "-steps=3 -save=s -save-every=1 -quiet"), 1);
  EXPECT_TRUE(
      says("option -save: s holds step-00000004 to step-00000006 of another run, this one starts from "
           "nothing: -resume=auto goes on from there, -save-existing=aside gives them other names"))
      << output;
  EXPECT_EQ(run(TINY1, "-steps=6 -save=s -resume=s/step-00000004 -quiet"), 1);
  EXPECT_TRUE(says("s holds step-00000005 and step-00000006 of another run, this one goes on from step 4"))
      << output;
  EXPECT_EQ(listed(folder + "/s"), "step-00000004 step-00000005 step-00000006");
  ASSERT_EQ(run(TINY1, "-steps=3 -save=s -save-every=1 -save-keep=2 -save-existing=aside -quiet"), 0)
      << output;
  EXPECT_EQ(listed(folder + "/s").substr(0, 27), "step-00000002 step-00000003");
  EXPECT_EQ(run(TINY1, "-steps=4 -save=s -resume=auto"), 0);
  EXPECT_TRUE(says("resumed from s/step-00000003 after step 2")) << output;
  EXPECT_EQ(run(TINY1, "-save-existing=aside"), 1);
  EXPECT_TRUE(says("option -save-existing needs -save=DIR")) << output;
}

TEST_F(Run, ADamagedCheckpointIsLeftOut) {
  ASSERT_EQ(run(TINY2, "-steps=8 -log=log.jsonl -quiet"), 0) << output;
  std::string expected = hashOf(log());
  ASSERT_EQ(run(TINY2, "-steps=6 -save=s -save-every=2 -quiet"), 0) << output;
  shell("printf x | dd of=s/step-00000006/model.safetensors bs=1 seek=200 conv=notrunc");
  shell("truncate -s 300 s/step-00000004/model.safetensors");
  ASSERT_EQ(run(TINY2, "-steps=8 -log=log.jsonl -save=s -save-every=2 -resume=auto"), 0) << output;
  EXPECT_TRUE(says("left out: ")) << output;
  EXPECT_TRUE(says("file 's/step-00000006/model.safetensors' has changed since the checkpoint was written"))
      << output;
  EXPECT_TRUE(says("'s/step-00000004/model.safetensors' has 300 bytes; it had ")) << output;
  EXPECT_TRUE(says("resumed from s/step-00000002 after step 1")) << output;
  EXPECT_EQ(hashOf(log()), expected);
  // The damaged ones were replaced on the way.
  EXPECT_EQ(shell(DSOPT_RUN " -check=s"), 0) << output;
  EXPECT_EQ(listed(folder + "/s"), "step-00000004 step-00000006 step-00000008");
  shell("truncate -s 10 s/*/manifest.json");
  EXPECT_EQ(run(TINY2, "-steps=9 -save=s -resume=auto"), 1);
  EXPECT_TRUE(says("option -resume=auto: no checkpoint in s can be read; the newest: "
                   "s/step-00000008/manifest.json is damaged"))
      << output;
}

TEST_F(Run, CheckSaysWhatIsDamaged) {
  ASSERT_EQ(run(TINY1, "-steps=4 -save=s -save-every=2 -quiet"), 0) << output;
  EXPECT_EQ(shell(DSOPT_RUN " -check=s"), 0);
  EXPECT_TRUE(says("s/step-00000002: good (1 tensors, 0.0 MB, run ")) << output;
  shell("printf x | dd of=s/step-00000004/model.safetensors bs=1 seek=300 conv=notrunc");
  EXPECT_EQ(shell(DSOPT_RUN " -check=s/step-00000002"), 0);
  EXPECT_EQ(shell(DSOPT_RUN " -check=s"), 1);
  EXPECT_TRUE(
      says("s/step-00000004: bad: parameter 'w' in file 's/step-00000004/model.safetensors' has changed "
           "since the checkpoint was written"))
      << output;
  EXPECT_EQ(shell(DSOPT_RUN " -check=none"), 1);
  EXPECT_TRUE(says("option -check: there is no checkpoint in none")) << output;
}

TEST_F(Run, OddThingsInTheFolder) {
  shell("mkdir -p s/step-99999999999999999999 s/step-mine.tmp; touch s/step-mine.tmp/x "
        "s/step-99999999999999999999/manifest.json");
  EXPECT_EQ(run(TINY1, "-steps=2 -save=s -resume=auto -quiet"), 0) << output;
  EXPECT_EQ(listed(folder + "/s"), "step-00000002 step-99999999999999999999 step-mine.tmp");
}

TEST_F(Run, AllRanksGoOnFromOneCheckpoint) {
  ASSERT_EQ(run(TINY2, "-steps=8 -log=log.jsonl -quiet"), 0) << output;
  std::string expected = hashOf(log());
  ASSERT_EQ(run(TINY2, "-steps=6 -save=s -save-every=2 -quiet"), 0) << output;
  auto launched = [&](const std::string &options, const std::string &second) {
    std::string start =
        " WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(20000 + getpid() % 20000) +
        " DSOPT_LAUNCH_TIMEOUT=20 timeout 60 " DSOPT_RUN " " TINY2 " -data=$D/data.npz -weights=$D -quiet " +
        options;
    return shell("D=$PWD; RANK=0" + start + " & A=$!; (" + second + " RANK=1" + start +
                 "); B=$?; wait $A; A=$?; [ $A = $B ] || exit 99; exit $A");
  };
  // Rank 1 asks for another one; rank 0 decides.
  EXPECT_EQ(launched("-steps=8 -log=log.jsonl -resume=s/step-0000000$((RANK*2+4))", "export RANK=1;"), 0)
      << output;
  EXPECT_EQ(hashOf(log()), expected);
  // Only one of them resumes.
  EXPECT_EQ(launched("-steps=8 $(test $RANK = 1 || echo -resume=s)", "export RANK=1;"), 1) << output;
  // Rank 1 has another folder of that name.
  shell("mkdir other; cp -r s other/s; sed -i 's/tiny.onnx/Tiny.onnx/' other/s/*/manifest.json");
  EXPECT_EQ(launched("-steps=8 -resume=s", "cd other;"), 1);
  EXPECT_TRUE(says("rank 1: s/step-00000006/manifest.json is damaged")) << output;
  // Or one of the same step of another run.
  shell("rm -r other/s; " DSOPT_RUN " " TINY2
        " -data=data.npz -weights=. -quiet -steps=6 -lr=0.1 -save=other/s");
  EXPECT_EQ(launched("-steps=8 -resume=s", "cd other;"), 1);
  EXPECT_TRUE(says("rank 1: s/step-00000006 is another checkpoint on rank 1 than on rank 0")) << output;
  shell("rm -r other/s");
  EXPECT_EQ(launched("-steps=8 -save=s -resume=auto -save-every=9", "cd other;"), 1);
  EXPECT_TRUE(says("rank 1: cannot read s/step-00000006/manifest.json: No such file")) << output;
  EXPECT_EQ(launched("-steps=8 -save=new", "cd other;"), 1);
  EXPECT_TRUE(says("option -save: rank 1 does not see in new what rank 0 wrote "
                   "there: give a folder that all hosts share"))
      << output;
  EXPECT_EQ(listed(folder + "/new"), "");
}

TEST_F(Run, AnotherRunMayPruneMeanwhile) {
  ASSERT_EQ(run(TINY1, "-steps=1 -save=s -quiet"), 0) << output;
  std::string start = std::string(DSOPT_RUN " " TINY1 " -data=data.npz -weights=. -quiet -steps=");
  EXPECT_EQ(shell(start +
                  "100000 -save=s -save-every=1 -save-keep=1 -resume=auto & A=$!; for i in $(seq 30); do " +
                  start + "1 -resume=s 2>> said || { kill -KILL $A; exit 9; }; done; kill -TERM $A; wait $A"),
            3)
      << output << readFile(folder + "/said");
}
} // namespace
