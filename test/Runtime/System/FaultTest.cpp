//===- FaultTest.cpp - what DSOPT_FAULT says, and that it strikes ---------===//

#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dsopt::runtime;

static long allocations = 0;
void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {
class Fault : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "fault-test-" + std::to_string(getpid());
  std::string path = folder + "/file";

  void SetUp() override { ::mkdir(folder.c_str(), 0777); }
  void TearDown() override {
    fault::start("");
    fault::setRank(-1);
    fault::setStep(-1);
    std::system(("rm -r " + folder).c_str());
  }

  std::string contents(const std::string &name) {
    std::stringstream text;
    text << std::ifstream(name, std::ios::binary).rdbuf();
    return text.str();
  }

  std::string refusal(const char *text) {
    try {
      fault::start(text);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return error.what();
    }
    return "";
  }

  /// The wait status of a child that runs `body`.
  template <typename Body> int child(Body body) {
    pid_t pid = ::fork();
    if (pid == 0) {
      body();
      _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
};

TEST_F(Fault, WhatIsWrongIsNamed) {
  EXPECT_EQ(refusal("save.manifst:kill"),
            "DSOPT_FAULT: 'save.manifst:kill': 'save.manifst' is no point and no call of Points.def");
  EXPECT_EQ(refusal("step"), "DSOPT_FAULT: 'step': expected PLACE[,rank=R][,step=S][,nth=N]:WHAT");
  EXPECT_EQ(refusal("step:die"),
            "DSOPT_FAULT: 'step:die': 'die' is unknown; expected kill, exit, signal, delay, "
            "stop, error, short, flip or skip");
  EXPECT_EQ(refusal("step,node=1:kill"),
            "DSOPT_FAULT: 'step,node=1:kill': 'node' is unknown; expected rank, step, nth, from or every");
  EXPECT_EQ(refusal("step,nth=0:kill"), "DSOPT_FAULT: 'step,nth=0:kill': '0' is no number from 1 on");
  EXPECT_EQ(refusal("step,rank=x:kill"), "DSOPT_FAULT: 'step,rank=x:kill': 'x' is no number from -1 on");
  EXPECT_EQ(refusal("open:error=ENOFUN"),
            "DSOPT_FAULT: 'open:error=ENOFUN': 'ENOFUN' is no error; expected a name like ENOSPC");
  EXPECT_EQ(refusal("step:signal=FUN"),
            "DSOPT_FAULT: 'step:signal=FUN': 'FUN' is no signal; expected a name like TERM");
  EXPECT_EQ(refusal("step:error=EIO"), "DSOPT_FAULT: 'step:error=EIO': 'error' cannot strike there");
  EXPECT_EQ(refusal("open:skip"), "DSOPT_FAULT: 'open:skip': 'skip' cannot strike there");
  EXPECT_EQ(refusal("fsync:short"), "DSOPT_FAULT: 'fsync:short': 'short' cannot strike there");
  EXPECT_EQ(refusal("fsync:flip=1"), "DSOPT_FAULT: 'fsync:flip=1': 'flip' cannot strike there");
  EXPECT_EQ(refusal("step:kill=1"), "DSOPT_FAULT: 'step:kill=1': 'kill' takes no value");
  EXPECT_EQ(refusal("step:delay"), "DSOPT_FAULT: 'step:delay': 'delay' needs a value");
  EXPECT_EQ(refusal("step:delay=1s"), "DSOPT_FAULT: 'step:delay=1s': '1s' is no number from 0 on");
  EXPECT_NE(refusal("hits=/nowhere/hits").find("/nowhere/hits cannot be written: No such file"),
            std::string::npos);
  EXPECT_EQ(refusal("step:kill;save.sync,rank=1,nth=2:stop=0;action=gather b3,step=7:exit=3"), "");
}

TEST_F(Fault, OffIsOff) {
  fault::start("");
  EXPECT_FALSE(fault::active);
  fault::start("step:delay=0");
  EXPECT_TRUE(fault::active);
  fault::start("");
  EXPECT_FALSE(fault::active);
}

TEST_F(Fault, CallsAreCounted) {
  auto failing = [&](const char *text, int calls) {
    fault::start(text);
    std::string result;
    for (int i = 0; i < calls; ++i) {
      struct stat info;
      bool failed = sys::stat("/", &info) != 0;
      EXPECT_TRUE(!failed || errno == EIO);
      result += failed ? 'x' : '.';
    }
    return result;
  };
  EXPECT_EQ(failing("stat:error=EIO", 5), "x....");
  EXPECT_EQ(failing("stat,nth=3:error=EIO", 5), "..x..");
  EXPECT_EQ(failing("stat,from=3:error=EIO", 5), "..xxx");
  EXPECT_EQ(failing("stat,every=2:error=EIO", 5), ".x.x.");
  EXPECT_EQ(failing("stat,rank=2:error=EIO", 2), "..");
  EXPECT_EQ(failing("stat,step=2:error=EIO", 2), "..");
  EXPECT_EQ(failing("stat,nth=2:error=EIO;stat,nth=4:error=EIO", 5), ".x.x.");
  // A rank counts from when it is one.
  fault::start("stat,nth=2:error=EIO");
  struct stat info;
  EXPECT_EQ(sys::stat("/", &info), 0);
  fault::setRank(1);
  EXPECT_EQ(sys::stat("/", &info), 0);
  fault::setRank(1);
  EXPECT_EQ(sys::stat("/", &info), -1);
}

TEST_F(Fault, RankAndStepAndDetailSelect) {
  std::string hits = folder + "/hits";
  fault::start(("action=gather b3,rank=1,step=2:delay=0;hits=" + hits).c_str());
  auto act = [&](int rank, long step, const char *name) {
    fault::setRank(rank);
    fault::setStep(step);
    fault::point("action", name);
  };
  act(0, 2, "gather b3");
  act(1, 1, "gather b3");
  act(1, 2, "gather b2");
  act(1, 2, nullptr);
  EXPECT_EQ(contents(hits), "");
  act(1, 2, "gather b3");
  std::string line = contents(hits);
  std::string expected = " " + std::to_string(getpid()) + " 1 2 action=gather b3,rank=1,step=2:delay=0\n";
  EXPECT_EQ(line.substr(line.find(' ')), expected);
}

TEST_F(Fault, StrikingAllocatesNothing) {
  fault::start(("action,every=1:delay=0;stat,every=1:error=EIO;hits=" + folder + "/hits").c_str());
  struct stat info;
  long before = allocations;
  for (int i = 0; i < 3; ++i) {
    fault::point("action", "gather b3");
    sys::stat("/", &info);
  }
  EXPECT_EQ(allocations, before);
}

TEST_F(Fault, BytesAreCutAndFlipped) {
  fault::start("pwrite,nth=1:short;pwrite,nth=2:flip=11;pread,nth=1:short;pread,nth=2:flip=0;mmap:flip=1");
  int fd = sys::open(path.c_str(), O_RDWR | O_CREAT);
  std::string text(6000, 'a');
  EXPECT_EQ(sys::pwrite(fd, text.data(), 10, 0), 5);
  EXPECT_EQ(sys::pwrite(fd, text.data(), 6000, 0), 4096);
  EXPECT_EQ(text, std::string(6000, 'a'));
  EXPECT_EQ(contents(path), "ai" + std::string(4094, 'a'));
  char buffer[8];
  EXPECT_EQ(sys::pread(fd, buffer, 8, 4), 4);
  EXPECT_EQ(sys::pread(fd, buffer, 8, 4), 8);
  EXPECT_EQ(std::string(buffer, 8), "`aaaaaaa");
  auto *mapped = static_cast<char *>(sys::mmap(nullptr, 16, PROT_READ, MAP_SHARED, fd, 0));
  EXPECT_EQ(std::string(mapped, 4), "ciaa");
  sys::munmap(mapped, 16);
  EXPECT_EQ(contents(path).substr(0, 4), "aiaa");
  sys::close(fd);
}

TEST_F(Fault, MessagesAreCutAndFlipped) {
  fault::start("sendmsg,nth=1:flip=0;sendmsg,nth=2:short;recvmsg,nth=1:short;recvmsg,nth=2:flip=0");
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  char first[] = "aaaa", second[] = "bbbb", got[9] = "";
  iovec parts[2] = {{first, 4}, {second, 4}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  EXPECT_EQ(sys::sendmsg(ends[0], &message, 0), 4);
  EXPECT_EQ(sys::sendmsg(ends[0], &message, 0), 2);
  EXPECT_EQ(sys::sendmsg(ends[0], &message, 0), 8);
  EXPECT_STREQ(first, "aaaa");
  iovec into = {got, 8};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  EXPECT_EQ(sys::recvmsg(ends[1], &message, 0), 4);
  EXPECT_STREQ(got, "`aaa");
  EXPECT_EQ(into.iov_len, 8u);
  EXPECT_EQ(sys::recvmsg(ends[1], &message, 0), 8);
  EXPECT_STREQ(got, "`aaaaabb");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Fault, WhatIsSkippedWasNotDone) {
  fault::start("mkdir:skip;ftruncate:skip");
  EXPECT_EQ(sys::mkdir((folder + "/new").c_str()), 0);
  EXPECT_NE(access((folder + "/new").c_str(), F_OK), 0);
  int fd = sys::open(path.c_str(), O_RDWR | O_CREAT);
  EXPECT_EQ(sys::ftruncate(fd, 10), 0);
  EXPECT_EQ(contents(path), "");
  sys::close(fd);
}

TEST_F(Fault, ProcessesEndAndStop) {
  int status = child([] {
    fault::start("step,nth=2:kill");
    fault::point("step");
    fault::point("step");
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  status = child([] {
    fault::start("fsync:exit=7");
    sys::fsync(-1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  status = child([] {
    fault::start("fsync:signal=USR2");
    sys::fsync(-1);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
  auto begin = std::chrono::steady_clock::now();
  status = child([] {
    fault::start("step:stop=200");
    fault::point("step");
  });
  EXPECT_EQ(status, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
}

TEST_F(Fault, RecordsSayWhatChanged) {
  std::string record = folder + "/record", other = folder + "/other", made = folder + "/made";
  fault::start(("record=" + record + ";fsync,nth=2:skip").c_str());
  int fd = sys::open(path.c_str(), O_RDWR | O_CREAT);
  struct stat info;
  ::fstat(fd, &info);
  std::string inode = std::to_string(info.st_ino);
  sys::pwrite(fd, "one", 3, 5);
  sys::write(fd, "two", 3);
  sys::ftruncate(fd, 7);
  sys::fsync(fd);
  sys::fsync(fd);
  fault::point("save.sync");
  sys::close(fd);
  sys::rename(path.c_str(), other.c_str());
  sys::mkdir(made.c_str());
  ::stat(made.c_str(), &info);
  sys::syncFolder(made.c_str());
  std::string madeInode = std::to_string(info.st_ino);
  sys::exchange(other.c_str(), made.c_str());
  sys::rmdir(other.c_str());
  sys::unlink(made.c_str());
  sys::unlink(made.c_str());
  EXPECT_EQ(contents(record), "create " + inode + " " + path + "\nwrite " + inode + " 5 3\none" + "write " +
                                  inode + " 0 3\ntwo" + "truncate " + inode + " 7\nfsync " + inode +
                                  "\npoint save.sync -1 -1\nrename " + path + " -> " + other + "\nmkdir " +
                                  madeInode + " " + made + "\nfsync " + madeInode + "\nexchange " + other +
                                  " -> " + made + "\nrmdir " + other + "\nunlink " + made + "\n");
}
} // namespace
