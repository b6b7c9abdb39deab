//===- RunEndsTest.cpp - deaths, standstills, signals and restarts of runs -===//

#include "RunFixture.h"

#include <algorithm>
#include <chrono>

using namespace dsopt::test;

namespace {

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
                      kUntilTraining + "kill -INT -$p; kill -INT -$p 2>/dev/null; wait $p"),
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

TEST_F(Run, AnInterruptionBeforeAllHaveMetIsEveryones) {
  for (std::string rank : {"0", "1"}) {
    std::string other = rank == "0" ? "1" : "0";
    EXPECT_EQ(
        launched("-quiet",
                 "sleep 0.7; kill -TERM $p" + rank +
                     "; wait $p0; s0=$?; wait $p1; s1=$?; cat rank0.txt rank1.txt; exit $((s0 * 10 + s1))",
                 /*apart=*/true, "export DSOPT_FAULT=meet.ports,rank=" + other + ":delay=2000; "),
        33)
        << output;
    EXPECT_EQ(output, "");
  }
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
  EXPECT_EQ(shell("RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost" + freePort() +
                  " " DSOPT_RUN " " TINY2 " -data=data.npz -restarts=1 -save=saved"),
            1);
  EXPECT_TRUE(says("option -restarts is for ranks that are started here")) << output;
  // The same loss each time.
  data({1, 2, 3, NoNumber});
  for (const char *program : {TINY1, TINY2}) {
    EXPECT_EQ(run(program, "-quiet -restarts=3 -save=saved"), 2);
    EXPECT_EQ(output.find("dsopt: error: the loss of step "), 0u) << output;
  }
  std::system(("rm " + folder + "/tiny.bin").c_str());
  EXPECT_EQ(run(TINY2, "-quiet -restarts=1 -save=saved"), 1);
  EXPECT_EQ(output.find("dsopt: error: cannot read "), 0u) << output;
}

TEST_F(Run, AConnectionThatBreaksIsSaidOnce) {
  for (std::string rank : {"0", "1"})
    for (const char *call : {"sendmsg,nth=15", "recvmsg,nth=15"}) {
      EXPECT_EQ(launched("-quiet -steps=200",
                         "wait $p0; s0=$?; wait $p1; s1=$?; cat rank0.txt rank1.txt; exit $((s0 * 10 + s1))",
                         /*apart=*/true,
                         std::string("export DSOPT_FAULT=") + call + ",rank=" + rank + ":error=ECONNRESET; "),
                22)
          << output;
      EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
      EXPECT_TRUE(says("(Connection reset by peer)") && says("rank 0 on host0") && says("rank 1 on host1"))
          << output;
    }
}

TEST_F(Run, EveryLaunchedRankSaysWhatIsWrongWithIt) {
  // Rank 0, which would say it for them, does not come.
  std::string start = "DSOPT_LAUNCH_TIMEOUT=4 RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost" + freePort() +
                      " " DSOPT_RUN " " TINY2 " ";
  EXPECT_EQ(shell(start + "-data=no.npz"), 1);
  EXPECT_EQ(output, "dsopt: error: rank 1: no.npz: cannot be read: No such file or directory\n");
  EXPECT_EQ(shell(start + "-data=data.npz -stesp=3"), 1);
  EXPECT_EQ(output, "dsopt: error: rank 1: unknown option -stesp; did you mean -steps?\n");
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
