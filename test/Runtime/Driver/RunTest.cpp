//===- RunTest.cpp - dsopt-run from the command line to its exit status ---===//

#include "RunFixture.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Executable.h"

#include <algorithm>
#include <filesystem>

using namespace dsopt::test;

namespace {

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
  dsopt::runtime::writeExecutable(DSOPT_RUN, {readFile(TINY2)}, folder + "/train");
  EXPECT_EQ(shell("./train -data=data.npz -weights=. -log=log.jsonl"), 0) << output;
  EXPECT_NE(log().find("\"status\":\"ok\""), std::string::npos);
  EXPECT_EQ(shell("./train --help"), 0);
  EXPECT_TRUE(says("learning rate (0.5)")) << output;
  EXPECT_TRUE(says("layout      dp 2, pp 1, zero 1")) << output;
  EXPECT_EQ(shell("./train -zero=3"), 1);
  EXPECT_EQ(output, "dsopt: error: option -zero is compiled in; use: dsopt tiny.onnx -dp=2 -optimizer=sgd -o "
                    "tiny -zero=3\n");
  // What is wrong in memory counts as well.
  EXPECT_EQ(shell("DSOPT_FAULT=pwrite,nth=1:flip=9000 ./train -data=data.npz -weights=."), 1);
  EXPECT_TRUE(says("the program in it is not what was written")) << output;
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
  expect("DSOPT_LAUNCH_TIMEOUT=1 RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost" + freePort() + " " + start +
             "-data=data.npz",
         "rank 1: the launcher started 3 ranks; the program was compiled for 2 (dp 2 x pp 1)");
  expect("RANK=2 WORLD_SIZE=2 MASTER_ADDR=localhost" + freePort() + " " + start + "-data=data.npz",
         "RANK=2: expected 0 to 1, since WORLD_SIZE=2");
  expect(DSOPT_RUN " data.npz",
         "data.npz: cannot be loaded as a dsopt program: ./data.npz: invalid ELF header");
}

TEST_F(Run, AFolderForNothingIsSaidToBeForNothing) {
  EXPECT_EQ(run(TINY1, "-steps=1 -nvme-path=."), 0);
  EXPECT_NE(output.find("dsopt: warning: option -nvme-path has no effect: the program keeps nothing on disk; "
                        "compile it with -offload-optimizer=nvme\n"),
            std::string::npos)
      << output;
}

TEST_F(Run, AProgramOfAnotherVersionIsRefused) {
  std::string bytes = readFile(TINY1), key = "{\"version\": " + std::to_string(DSOPT_ABI_VERSION);
  size_t at = bytes.find(key);
  ASSERT_NE(at, std::string::npos);
  char &digit = bytes[at + key.size() - 1];
  digit = static_cast<char>(digit == '9' ? '8' : digit + 1);
  std::string other = bytes.substr(at + 12, key.size() - 12);
  std::ofstream(folder + "/other.so", std::ios::binary) << bytes;
  EXPECT_EQ(run("other.so", "-quiet"), 1);
  EXPECT_EQ(output, "dsopt: error: other.so: program table: version " + other + ", this runtime expects " +
                        std::to_string(DSOPT_ABI_VERSION) + ": compile the program anew\n");
}

TEST_F(Run, AFullDiskIsAFailure) {
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(run(program, "-quiet -log=/dev/full"), 2);
    EXPECT_EQ(output, "dsopt: error: /dev/full: writing failed: No space left on device\n");
  }
}

/// A system may give less than it was asked for, or be interrupted: the data are the same.
TEST_F(Run, SamplesOfDataAreReadWhole) {
  for (const char *fault : {"short", "error=EINTR"})
    for (const char *at : {"nth=1", "nth=4", "every=2"}) {
      std::string faults = std::string("export DSOPT_FAULT=pread,rank=1,") + at + ":" + fault + "; ";
      EXPECT_EQ(launched("-quiet", "wait $p0; s0=$?; wait $p1; exit $((s0 * 10 + $?))", true, faults), 0)
          << faults << readFile(folder + "/rank0.txt") << readFile(folder + "/rank1.txt");
    }
  for (std::string rank : {"0", "1"}) {
    EXPECT_EQ(launched("-quiet", "wait $p0; s0=$?; wait $p1; exit $((s0 * 10 + $?))", true,
                       "export DSOPT_FAULT=pread,rank=" + rank + ",nth=2:error=EIO; "),
              22);
    EXPECT_EQ(readFile(folder + "/rank0.txt") + readFile(folder + "/rank1.txt"),
              std::string("dsopt: error: ") + (rank == "1" ? "rank 1 on host1: " : "") +
                  "data.npz: cannot be read: Input/output error\n");
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

TEST_F(Run, TooFewOpenFilesForAWorldAreSaidBeforeItMeets) {
  EXPECT_EQ(shell("ulimit -n 40; RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost" + freePort() +
                  " " DSOPT_RUN " " TINY2 " -data=data.npz -weights=. -quiet"),
            1);
  EXPECT_EQ(
      output,
      "dsopt: error: rank 0: a run of 2 ranks needs 82 open files, the system permits 40 (ulimit -n)\n");
  // A soft limit is raised.
  EXPECT_EQ(launched("-quiet", "wait $p0 && wait $p1", false, "ulimit -S -n 40; "), 0)
      << readFile(folder + "/rank0.txt");
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

TEST_F(Run, PruningGoesOnWhereItWasCutShort) {
  std::string saves = "-quiet -save=saves -save-every=1 -save-keep=2 -resume=auto";
  EXPECT_NE(
      shell("DSOPT_FAULT=save.prune,nth=4:kill " DSOPT_RUN " " TINY1 " -data=data.npz -weights=. " + saves),
      0);
  EXPECT_TRUE(std::filesystem::exists(folder + "/saves/step-00000004"));
  ASSERT_EQ(run(TINY1, saves), 0) << output;
  EXPECT_FALSE(std::filesystem::exists(folder + "/saves/step-00000004"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/saves/step-00000005") &&
              std::filesystem::exists(folder + "/saves/step-00000006"));
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
  EXPECT_EQ(launched("-steps=8 -log=log.jsonl -resume=s/step-00000004", "export RANK=1;"), 0) << output;
  EXPECT_EQ(hashOf(log()), expected);
  // Rank 1 asks for another one.
  EXPECT_EQ(launched("-steps=8 -resume=s/step-0000000$((RANK*2+4))", "export RANK=1;"), 1);
  EXPECT_TRUE(says("-resume is s/step-00000006, there s/step-00000004")) << output;
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
