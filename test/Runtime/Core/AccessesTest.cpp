//===- AccessesTest.cpp - what actions do beside what they say -------------===//

#include "Core/AccessMemory.h"
#include "dsopt/Runtime/Error.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
constexpr int64_t kBytes = 64;

/// Two actions on four buffers of 64 bytes, a word of 16 bytes apart.
class Accesses : public testing::Test {
protected:
  Accesses() {
    Position &position = program.positions.emplace_back();
    position.memories = {{MemoryKind::Device, 4 * (kBytes + 16), 16}};
    position.queues = {{"compute"}, {"copy", QueueKind::Copy}};
    for (const char *name : {"x", "y", "z", "state"}) {
      Buffer buffer;
      buffer.name = name;
      buffer.bytes = buffer.stride = kBytes;
      buffer.offset = static_cast<int64_t>(position.buffers.size()) * (kBytes + 16);
      buffer.persistent = std::string(name) == "state";
      position.buffers.push_back(buffer);
    }
    // y is made of x; then the state of y.
    program.uses = {{0, kBytes, 1, 1, kBytes, 2}, {0, kBytes, 1, 1, kBytes, 3}};
    for (int64_t i : {0, 1}) {
      Action action;
      action.name = i ? "second" : "first";
      action.queue = action.use = i;
      action.refs = {Ref{i}, Ref{i ? 3 : 1}};
      if (i) {
        action.waits = {0};
        action.changes = {3};
      }
      position.actions.edit().push_back(action);
    }
  }
  Position &position() { return program.positions[0]; }
  Action &action(int i) { return position().actions.edit()[i]; }
  std::vector<std::vector<Touch>> touches() { return touchesOf(program, position(), RankInfo()); }
  std::string race() { return findRace(position(), touches()); }
  std::string refusal() {
    try {
      touches();
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  char *at(int64_t buffer) { return bytes.data() + position().buffers[buffer].offset; }
  /// What is found where the first action does `body`.
  std::string compare(const std::function<void()> &body) {
    AccessMemory memory(position(), {bytes.data()}, nullptr);
    std::vector<Touch> its = touches()[0];
    std::vector<OthersTouch> others;
    AccessMemory::Trial trial{position(), its, others, body};
    memory.begin();
    try {
      memory.rehearse(trial);
      body();
      memory.compare(trial);
      memory.expectNoChange(position(), others);
    } catch (const AccessFault &fault) {
      return fault.what;
    }
    return "";
  }
  /// The same where it flies and `meanwhile` happens.
  std::string fly(const std::function<void()> &body, const std::vector<OthersTouch> &others = {}) {
    AccessMemory memory(position(), {bytes.data()}, nullptr);
    std::vector<Touch> its = touches()[0];
    AccessMemory::Trial trial{position(), its, others, {}};
    memory.begin();
    try {
      memory.launch(trial);
      body();
      memory.land(trial);
      memory.expectNoChange(position(), others);
    } catch (const AccessFault &fault) {
      return fault.what;
    }
    return "";
  }

  Program program;
  std::vector<char> bytes = std::vector<char>(4 * (kBytes + 16), 1);
};
} // namespace

TEST_F(Accesses, WhatIsSaidIsFine) {
  EXPECT_EQ(race(), "");
  EXPECT_EQ(compare([&] { std::memcpy(at(1), at(0), kBytes); }), "");
  EXPECT_EQ(fly([&] { std::memcpy(at(1), at(0), kBytes); }), "");
}

TEST_F(Accesses, OrdersByQueuesAndWaits) {
  action(1).waits.clear();
  EXPECT_EQ(race(), "'second' (action 1) reads byte 0 of 'y', but does not wait for 'first' (action 0), "
                    "which writes it before");
  action(1).queue = 0;
  EXPECT_EQ(race(), "");
  // What is read may not be written over.
  action(1).queue = 1;
  action(1).refs = {Ref{2}, Ref{0}};
  action(1).changes.clear();
  EXPECT_EQ(race(), "'second' (action 1) writes byte 0 of 'x', but does not wait for 'first' (action 0), "
                    "which reads it before");
  // Both may read.
  action(1).refs = {Ref{0}, Ref{2}};
  EXPECT_EQ(race(), "");
}

TEST_F(Accesses, RefusesWhatTheTableDoesNotSay) {
  action(1).changes.clear();
  EXPECT_NE(refusal().find("'second' changes 'state', which outlives the step"), std::string::npos)
      << refusal();
  action(1).changes = {3};
  program.uses[0][1] = kBytes + 4;
  EXPECT_EQ(refusal(), "program table: 'first' touches bytes 0 to 68 of 'x', which has 64");
  program.uses[0] = {2, kBytes, 1};
  EXPECT_EQ(refusal(), "program table: 'first' touches its address 2 of 2");
  action(0).use = -1;
  EXPECT_EQ(
      refusal(),
      "program table: 'first' does not say what it touches (DSOPT_CHECK_ACCESSES): compile the program anew");
}

TEST_F(Accesses, FindsWrites) {
  // Behind what is said, also where nothing changes by it.
  program.uses[0][4] = kBytes - 4;
  EXPECT_EQ(compare([&] { std::memcpy(at(1), at(0), kBytes); }),
            "writes byte 60 of 'y' (01 01 01 01), which it does not say");
  program.uses[0][4] = kBytes;
  EXPECT_EQ(
      compare([&] {
        std::memcpy(at(1), at(0), kBytes);
        at(1)[kBytes] = 1;
      }),
      "writes byte 144 of the device memory, which is of no buffer (01 7f fd 7f), which it does not say");
  EXPECT_EQ(compare([&] {
              std::memcpy(at(1), at(0), kBytes);
              at(0)[7] = 2;
            }),
            "writes byte 7 of 'x' (02 01 01 01), which it says it only reads");
  EXPECT_EQ(compare([&] { std::memcpy(at(1), at(0), kBytes - 4); }),
            "says it writes byte 60 of 'y', but does not");
}

TEST_F(Accesses, FindsReads) {
  // A sum hides which byte it was of.
  at(2)[13] = 5;
  EXPECT_EQ(compare([&] {
              std::memcpy(at(1), at(0), kBytes);
              at(1)[3] = static_cast<char>(at(0)[3] + at(2)[13]);
            }),
            "reads byte 13 of 'z' (05 01 01 01), which it does not say: byte 3 of 'y', which it writes, "
            "follows from it");
  EXPECT_EQ(compare([&] {
              for (int64_t i = 0; i < kBytes; ++i)
                at(1)[i] = static_cast<char>(at(1)[i] + at(0)[i]);
            }),
            "reads what it says it only writes, or its scratch, before it has written it: byte 0 of 'y' "
            "follows from it");
}

TEST_F(Accesses, FindsWhatFliesTooFar) {
  EXPECT_EQ(fly([&] { std::memcpy(at(1), at(0), kBytes - 4); }),
            "says it writes byte 60 of 'y', but does not");
  EXPECT_EQ(fly([&] {
              std::memcpy(at(1), at(0), kBytes);
              at(2)[1] = 7;
            }),
            "writes byte 1 of 'z' (07 01 01 01), which it does not say");
  // Others may write there.
  int64_t z = position().buffers[2].offset;
  EXPECT_EQ(fly(
                [&] {
                  std::memcpy(at(1), at(0), kBytes);
                  at(2)[1] = 7;
                },
                {{0, z, z + kBytes, true}}),
            "");
}
