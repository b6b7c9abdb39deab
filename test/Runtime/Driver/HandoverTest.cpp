//===- HandoverTest.cpp - what one rank makes for all of a host -----------===//

#include "dsopt/Runtime/Handover.h"
#include "dsopt/Runtime/World.h"

#include <csignal>
#include <functional>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;
using std::chrono::seconds;

namespace {

enum { Took = 40, OtherBytes, Quiet = 50, Gone = 60 };

std::string job() { return "test-" + std::to_string(getpid()); }

pid_t start(const std::function<int()> &body) {
  pid_t pid = fork();
  if (pid == 0)
    _exit(body());
  return pid;
}
int statusOf(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// A rank that waits for "bytes"; what became of it.
pid_t startTaker(const std::string &job, int rank, int size, const std::string &what = "what",
                 seconds limit = seconds(20)) {
  return start([=]() -> int {
    try {
      int file = Handover(job, what, rank, size, limit).take();
      char bytes[6] = {};
      return pread(file, bytes, 5, 0) == 5 && std::string(bytes) == "bytes" ? Took : OtherBytes;
    } catch (const LaunchError &) {
      return int(Gone);
    } catch (const Error &error) {
      return error.quiet ? Quiet + error.status : 99;
    }
  });
}

int fileOf(const std::string &bytes) {
  int file = memfd_create("test", 0);
  EXPECT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

pid_t startMaker(const std::string &job, int size, std::function<void(Handover &)> body,
                 const std::string &what = "what") {
  return start([=] {
    Handover handover(job, what, 0, size, seconds(5));
    try {
      body(handover);
    } catch (const LaunchError &error) {
      return std::string(error.what()).find("local ranks 1, 2 of this host did not come") != 0 ? 98
                                                                                               : int(Gone);
    }
    return 0;
  });
}

TEST(Handover, AllTakeTheFile) {
  std::vector<pid_t> takers;
  for (int rank = 1; rank < 4; ++rank)
    takers.push_back(startTaker(job(), rank, 4));
  usleep(100000); // some wait before there is anybody to wait for
  pid_t maker = startMaker(job(), 4, [](Handover &handover) {
    usleep(100000);
    handover.give(fileOf("bytes"));
  });
  for (pid_t taker : takers)
    EXPECT_EQ(statusOf(taker), Took);
  EXPECT_EQ(statusOf(maker), 0);
}

TEST(Handover, ADeadMakerEndsAll) {
  pid_t maker = startMaker(job(), 4, [](Handover &) { sleep(100); });
  std::vector<pid_t> takers{startTaker(job(), 1, 4), startTaker(job(), 2, 4)};
  usleep(300000);
  kill(maker, SIGKILL);
  auto began = std::chrono::steady_clock::now();
  usleep(500000);
  takers.push_back(startTaker(job(), 3, 4)); // which has not seen the maker
  int told = 0;
  for (pid_t taker : takers) {
    int status = statusOf(taker);
    told += status == Quiet + StatusFailure;
    EXPECT_TRUE(status == Gone || status == Quiet + StatusFailure) << status;
  }
  EXPECT_GE(told, 1);
  EXPECT_LT(told, 3);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(7));
  EXPECT_EQ(statusOf(maker), -SIGKILL);
}

TEST(Handover, AFailedMakerSaysSo) {
  pid_t maker = startMaker(job(), 3, [](Handover &handover) { handover.fail(StatusInput, ""); });
  std::vector<pid_t> takers{startTaker(job(), 1, 3), startTaker(job(), 2, 3)};
  for (pid_t taker : takers)
    EXPECT_EQ(statusOf(taker), Quiet + StatusInput);
  EXPECT_EQ(statusOf(maker), 0);
}

/// The maker's words to `give`.
pid_t startRefusing(const std::string &job, const std::string &words) {
  return start([=]() -> int {
    Handover handover(job, "dsopt of 3 ranks\n-lr=1\n-zero=2", 0, 3, seconds(20));
    try {
      handover.give(fileOf("bytes"));
    } catch (const LaunchError &error) {
      // Whoever is told would end, and a launcher this rank with it, before it has said why.
      EXPECT_TRUE(handover.fail(error.status, error.what()));
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      return ::testing::Test::HasFailure() ? 97 : error.status;
    }
    return 96;
  });
}

TEST(Handover, WhatOneWantsOtherwiseIsNamed) {
  auto began = std::chrono::steady_clock::now();
  pid_t maker =
      startRefusing(job(), "local rank 2 of this host was given -lr=2 -shuffle, local rank 0, which "
                           "compiles for all, -lr=1: the ranks");
  std::vector<pid_t> takers{startTaker(job(), 1, 3, "dsopt of 3 ranks\n-lr=1\n-zero=2"),
                            startTaker(job(), 2, 3, "dsopt of 3 ranks\n-lr=2\n-zero=2\n-shuffle")};
  for (pid_t taker : takers)
    EXPECT_EQ(statusOf(taker), Quiet + StatusInput);
  EXPECT_EQ(statusOf(maker), StatusInput);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(10));
}

TEST(Handover, ATakersTroubleIsSaidByTheMaker) {
  pid_t maker = startRefusing(job(), "local rank 2 of this host: unknown option -no-such");
  pid_t taker = startTaker(job(), 1, 3, "dsopt of 3 ranks\n-lr=1\n-zero=2");
  std::string name = job();
  pid_t troubled = start([name] {
    return Handover(name, "", 2, 3, seconds(20)).fail(StatusFailure, "unknown option -no-such") ? 5 : 6;
  });
  EXPECT_EQ(statusOf(taker), Quiet + StatusFailure);
  EXPECT_EQ(statusOf(troubled), 5);
  EXPECT_EQ(statusOf(maker), StatusFailure);
}

TEST(Handover, AMakerTakesTheDeadOnesPlace) {
  pid_t dead = startMaker(job(), 2, [](Handover &) { sleep(100); });
  usleep(100000);
  pid_t taker = startTaker(job(), 1, 2);
  usleep(200000);
  pid_t maker = startMaker(job(), 2, [](Handover &handover) {
    usleep(500000);
    handover.give(fileOf("bytes"));
  });
  usleep(200000);
  kill(dead, SIGKILL);
  EXPECT_EQ(statusOf(taker), Took);
  EXPECT_EQ(statusOf(maker), 0);
  statusOf(dead);
}

TEST(Handover, NobodyTakesWhatWasMadeForOthers) {
  pid_t other = startMaker(job(), 2, [](Handover &handover) { handover.give(fileOf("other")); }, "other");
  usleep(100000);
  pid_t maker = startMaker(job(), 2, [](Handover &handover) {
    usleep(500000);
    handover.give(fileOf("bytes"));
  });
  pid_t taker = startTaker(job(), 1, 2);
  EXPECT_EQ(statusOf(taker), Took);
  EXPECT_EQ(statusOf(maker), 0);
  kill(other, SIGKILL);
  statusOf(other);
}

TEST(Handover, NobodyWaitsForWhoDoesNotCome) {
  EXPECT_EQ(statusOf(startTaker(job(), 1, 2, "what", seconds(1))), Gone);
  EXPECT_EQ(statusOf(startMaker(job(), 3, [](Handover &handover) { handover.give(fileOf("bytes")); })), Gone);
}

} // namespace
