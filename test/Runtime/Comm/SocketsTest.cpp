//===- SocketsTest.cpp - what goes between processes of one host -----------===//

#include "Comm/Sockets.h"
#include "dsopt/Runtime/Fault.h"

#include <gtest/gtest.h>

#include <unistd.h>

using namespace dsopt::runtime;
using namespace std::chrono_literals;

namespace {

class Descriptors : public testing::Test {
protected:
  Descriptors() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    from = Socket(ends[0]);
    to = Socket(ends[1]);
  }
  ~Descriptors() override { fault::start(""); }
  /// Hands a descriptor over; whether the other end writes to the same file.
  bool handOver() {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    Socket read(pipe[0]), write(pipe[1]);
    sendDescriptor(from, write.fd());
    Socket received(receiveDescriptor(to, {Patience::Clock::now() + 10s, {}}));
    char byte = 7, got = 0;
    return ::write(received.fd(), &byte, 1) == 1 && ::read(read.fd(), &got, 1) == 1 && got == byte;
  }

  Socket from, to;
};

TEST_F(Descriptors, AreHandedOverAcrossSignals) {
  EXPECT_TRUE(handOver());
  for (const char *fault : {"sendmsg,nth=1:error=EINTR", "recvmsg,nth=1:error=EINTR"}) {
    fault::start(fault);
    EXPECT_TRUE(handOver()) << fault;
  }
}

TEST_F(Descriptors, SayWhatFailed) {
  fault::start("recvmsg,nth=1:error=ENOMEM");
  try {
    handOver();
    FAIL() << "a descriptor that was not received";
  } catch (const Disconnected &error) {
    EXPECT_NE(std::string(error.what()).find("Cannot allocate memory"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(Socket(receiveDescriptor(to, {Patience::Clock::now() + 10s, {}}))); // the one that was sent
  from = Socket();
  EXPECT_THROW(receiveDescriptor(to, {Patience::Clock::now() + 10s, {}}), Disconnected);
}

} // namespace
