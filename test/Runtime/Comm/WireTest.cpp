//===- WireTest.cpp - simulated ranks on a seeded scheduler ----------------===//
//
// usage: WireTest --seeds=N [--ranks=N] [--seed=FIRST]: a long run, one line for each
// fault. Without arguments a sample.
//
//===----------------------------------------------------------------------===//

#include "Comm/Rounds.h"
#include "Simulation.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

Communicator everyone(int size, int rank) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return Communicator(0, ranks, rank);
}

class Wires : public testing::TestWithParam<int> {};

TEST_P(Wires, EveryFaultEndsWellOrIsToldRightly) {
  int failures[Simulation::Faults] = {};
  for (uint64_t seed = 0; seed < 210; ++seed) {
    auto fault = static_cast<Simulation::Fault>(seed % Simulation::Faults);
    int ranks = 2 + static_cast<int>(seed / Simulation::Faults) % 9;
    Simulation simulation(ranks, seed * 1000 + GetParam(), fault);
    EXPECT_EQ(simulation.run(), "") << Simulation::nameOf(fault) << ", " << ranks << " ranks, seed " << seed;
    failures[fault] += simulation.failures();
  }
  // The faults do strike.
  for (int fault = Simulation::Death; fault < Simulation::Faults; ++fault)
    EXPECT_GT(failures[fault], 20) << Simulation::nameOf(static_cast<Simulation::Fault>(fault));
}
INSTANTIATE_TEST_SUITE_P(Seeds, Wires, testing::Values(1, 2));

TEST(Wire, ManyRanks) {
  for (int fault = 0; fault < Simulation::Faults; ++fault) {
    Simulation simulation(32, 7 + fault, static_cast<Simulation::Fault>(fault), false, 4);
    EXPECT_EQ(simulation.run(), "") << Simulation::nameOf(static_cast<Simulation::Fault>(fault));
  }
}

TEST(Wire, WhereOnlySomeAreConnectedAllHear) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto fault = static_cast<Simulation::Fault>(seed % Simulation::Faults);
    int ranks = 12 + static_cast<int>(seed) % 9;
    Simulation simulation(ranks, seed, fault, /*sparse=*/true);
    EXPECT_EQ(simulation.run(), "") << Simulation::nameOf(fault) << ", " << ranks << " ranks, seed " << seed;
  }
}

TEST(Wire, AConnectionThatIsNotThereIsNamed) {
  Wire wire(0, {"a", "b"}, {false, false}, {}, [](int) {});
  Communicator group = everyone(2, 0);
  Transfer transfer;
  transfer.reset(Transfer::Agreement, &group);
  int64_t record = 0;
  transfer.record = &record;
  transfer.shape = {1, 0, 0};
  wire.start(7, transfer);
  ASSERT_TRUE(wire.failure());
  EXPECT_TRUE(wire.failure()->loud);
  EXPECT_EQ(wire.failure()->text,
            "rank 0 and rank 1 on b are not connected, but the program has them send to each other");
}

/// All that `from` has for `to`, handed over.
std::string take(Wire &from, int to) {
  std::string all;
  for (Wire::Bytes bytes = from.outgoing(to); bytes.size() > 0; bytes = from.outgoing(to)) {
    all.append(bytes.head, bytes.headBytes);
    if (bytes.bodyBytes)
      all.append(bytes.body, bytes.bodyBytes);
    from.sent(to, bytes.size());
  }
  return all;
}

TEST(Wire, AnyFlippedBitIsDamage) {
  // A heartbeat, a credit, a record and bytes with their headers, and a farewell.
  Communicator group = everyone(2, 0), other = everyone(2, 1);
  auto two = [&](const std::function<void(Wire &, Wire &)> &body) {
    Wire left(0, {"a", "b"}, {false, true}, {}, [](int) {}),
        right(1, {"a", "b"}, {true, false}, {}, [](int) {});
    body(left, right);
  };
  int64_t value[4] = {1, 2, 3, 4}, target[4], record[2] = {5, 6}, records[4] = {};
  Transfer sends, receives, exchange;
  sends.reset(Transfer::Value, nullptr);
  sends.sends.push_back({1, reinterpret_cast<char *>(value), nullptr, sizeof value});
  receives.reset(Transfer::Value, nullptr);
  receives.receives.push_back({0, nullptr, reinterpret_cast<char *>(target), sizeof target});
  exchange.reset(Transfer::Exchange, &group);
  records[0] = record[0];
  exchange.target = reinterpret_cast<char *>(records);
  exchange.bytes = 16;
  auto said = [&](Wire &left, Wire &right) {
    left.start(0, sends);
    right.start(0, receives);
    left.feed(1, take(right, 0).data(), sizeof(Frame), {}); // the credit
    left.start(1, exchange);
    left.tick(Wire::Time() + std::chrono::seconds(5));
    std::string bytes = take(left, 1);
    left.end(/*bye=*/true, 0);
    return bytes + take(left, 1);
  };
  size_t size = 0;
  two([&](Wire &left, Wire &right) {
    std::string bytes = said(left, right);
    size = bytes.size();
    right.feed(0, bytes.data(), size, {});
    EXPECT_FALSE(right.failure());
  });
  ASSERT_EQ(size, 4 * sizeof(Frame) + sizeof value + 16);
  for (size_t bit = 0; bit < size * 8; ++bit)
    two([&](Wire &left, Wire &right) {
      std::string bytes = said(left, right);
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
      right.feed(0, bytes.data(), size, {});
      ASSERT_TRUE(right.undecided()) << "bit " << bit;
      take(right, 0);
      right.decide({});
      ASSERT_TRUE(right.failure()) << "bit " << bit;
      EXPECT_EQ(right.failure()->about, 0);
      EXPECT_NE(right.failure()->text.find("rank 0 on a sent to rank 1 arrived damaged"), std::string::npos)
          << right.failure()->text;
    });
}

TEST(Wire, RankZeroHearsWhyThoughItIsNotHeard) {
  Wire left(0, {"a", "b"}, {false, true}, {}, [](int) {}),
      right(1, {"a", "b"}, {true, false}, {}, [](int) {});
  left.tick(Wire::Time() + std::chrono::seconds(5));
  std::string bytes = take(left, 1);
  bytes[20] ^= 4;
  right.feed(0, bytes.data(), static_cast<int64_t>(bytes.size()), {});
  right.decide({});
  EXPECT_FALSE(right.failure()); // not yet on its way
  bytes = take(right, 0);
  right.decide({});
  ASSERT_TRUE(right.failure());
  EXPECT_FALSE(right.failure()->loud);
  left.feed(1, bytes.data(), static_cast<int64_t>(bytes.size()), {});
  ASSERT_TRUE(left.failure());
  EXPECT_TRUE(left.failure()->loud);
  EXPECT_EQ(left.failure()->text, right.failure()->text);
}

TEST(Wire, WhoLosesRankZeroAsksWhetherItIsThere) {
  for (bool there : {false, true}) {
    Wire wire(1, {"a", "b", "c"}, {true, false, true}, {}, [](int) {});
    EXPECT_FALSE(wire.asksForFirst());
    wire.closed(0, "the test wants it");
    wire.decide({});
    EXPECT_TRUE(wire.undecided() && wire.asksForFirst());
    wire.firstIsThere(there);
    wire.decide({});
    ASSERT_TRUE(wire.failure());
    EXPECT_EQ(wire.failure()->loud, !there);
  }
}

TEST(Wire, TheFirstThatIsLeftSpeaks) {
  Wire wire(2, {"a", "b", "c", "d"}, {true, true, false, true}, {}, [](int) {});
  wire.closed(0, "the test wants it");
  wire.firstIsThere(false);
  wire.decide({});
  EXPECT_FALSE(wire.failure()); // rank 1 does
  wire.closed(3, "the test wants it");
  wire.decide({});
  EXPECT_FALSE(wire.failure());
  wire.closed(1, "the test wants it");
  wire.decide({});
  ASSERT_TRUE(wire.failure());
  EXPECT_TRUE(wire.failure()->loud);
  EXPECT_EQ(wire.failure()->about, 0);
}

TEST(Wire, WhoWaitsInVainSpeaksInTurn) {
  Wire::Time now = Wire::Time() + std::chrono::hours(1);
  for (int rank : {1, 2}) {
    std::vector<bool> linked(3, true);
    linked[rank] = false;
    Wire wire(rank, {"a", "b", "c"}, linked, now, [](int) {});
    wire.notice(StatusFailure, 0, "rank 0 stands still");
    wire.decide(now);
    wire.decide(now + Wire::kUnsaid + rank * Wire::kUnsaidTurn);
    EXPECT_FALSE(wire.failure());
    wire.decide(now + Wire::kUnsaid + rank * Wire::kUnsaidTurn + std::chrono::milliseconds(1));
    ASSERT_TRUE(wire.failure());
    EXPECT_TRUE(wire.failure()->loud);
  }
}

TEST(Wire, ARankThatComputesPassesAFailureOn) {
  std::vector<std::string> names = {"a", "b", "c"};
  Wire first(0, names, {false, true, false}, {}, [](int) {}),
      middle(1, names, {true, false, true}, {}, [](int) {}),
      last(2, names, {false, true, false}, {}, [](int) {});
  first.end(/*bye=*/false, StatusInput);
  std::string bytes = take(first, 1);
  middle.feed(0, bytes.data(), static_cast<int64_t>(bytes.size()), {});
  bytes = take(middle, 2); // its rank has not looked yet
  last.feed(1, bytes.data(), static_cast<int64_t>(bytes.size()), {});
  ASSERT_TRUE(last.failure());
  EXPECT_EQ(last.failure()->about, 0);
  EXPECT_EQ(last.failure()->status, StatusInput);
  EXPECT_EQ(last.failure()->text, "rank 0 on a failed");
}

TEST(Wire, OperationsThatDoNotMatchAreNamed) {
  Communicator one = everyone(2, 0), other = everyone(2, 1);
  struct Case {
    Transfer::Kind first, second;
    int64_t bytes;
    const char *text;
  };
  for (const Case &c : {Case{Transfer::Gather, Transfer::Reduce, 64, "has a reduction of 64 bytes"},
                        Case{Transfer::Gather, Transfer::Gather, 128, "has a gather of 128 bytes"},
                        Case{Transfer::Exchange, Transfer::Agreement, 64, "has an agreement of 64 bytes"},
                        Case{Transfer::Agreement, Transfer::Agreement, 72, "has an agreement of 72 bytes"},
                        Case{Transfer::Exchange, Transfer::Gather, 64, "has a gather of 64 bytes"}})
    // How much of what the other says is there before the operation begins: nothing, a frame in part, all.
    for (size_t early : {size_t(0), sizeof(Frame) + 8, SIZE_MAX}) {
      Wire wires[2] = {{0, {"a", "b"}, {false, true}, {}, [](int) {}},
                       {1, {"a", "b"}, {true, false}, {}, [](int) {}}};
      std::vector<char> memory(4096);
      std::vector<int64_t> record(16);
      Transfer transfers[2];
      for (int rank : {0, 1}) {
        const Communicator &group = rank ? other : one;
        Transfer &transfer = transfers[rank];
        transfer.reset(rank ? c.second : c.first, &group);
        int64_t bytes = rank ? c.bytes : 64;
        transfer.bytes = bytes;
        transfer.source = memory.data();
        transfer.target = memory.data() + 1024;
        transfer.record = record.data();
        transfer.shape = {bytes / 8, 0, 0};
        wires[rank].setStaging(memory.data() + 2048, 2048);
        if (transfer.kind == Transfer::Gather) {
          transfer.sends.push_back({1 - rank, memory.data(), nullptr, bytes});
          transfer.receives.push_back({1 - rank, nullptr, memory.data() + 1024, bytes});
        }
      }
      wires[1].start(3, transfers[1]);
      std::string bytes = take(wires[1], 0);
      early = std::min(early, bytes.size());
      wires[0].feed(1, bytes.data(), static_cast<int64_t>(early), {});
      wires[0].start(3, transfers[0]);
      wires[0].feed(1, bytes.data() + early, static_cast<int64_t>(bytes.size() - early), {});
      ASSERT_TRUE(wires[0].failure()) << c.text;
      EXPECT_TRUE(wires[0].failure()->loud);
      EXPECT_NE(wires[0].failure()->text.find(std::string("operations do not match: rank 1 on b ") + c.text),
                std::string::npos)
          << wires[0].failure()->text;
    }
}

/// A peer that waits for bytes which nobody will send it is no rank of the same program.
TEST(Wire, WhoWaitsForWhatNobodySendsIsNamed) {
  for (bool first : {false, true}) { // whether it said so before the operation begins
    Communicator one = everyone(2, 0), other = everyone(2, 1);
    Wire wires[2] = {{0, {"a", "b"}, {false, true}, {}, [](int) {}},
                     {1, {"a", "b"}, {true, false}, {}, [](int) {}}};
    char memory[128] = {};
    Transfer nothing, waits;
    nothing.reset(Transfer::Gather, &one);
    nothing.receives.push_back({1, nullptr, memory, 64});
    waits.reset(Transfer::Gather, &other);
    waits.receives.push_back({0, nullptr, memory + 64, 64});
    wires[1].start(3, waits);
    std::string bytes = take(wires[1], 0);
    if (!first)
      wires[0].start(3, nothing);
    wires[0].feed(1, bytes.data(), static_cast<int64_t>(bytes.size()), {});
    if (first)
      wires[0].start(3, nothing);
    ASSERT_TRUE(wires[0].failure()) << first;
    EXPECT_NE(wires[0].failure()->text.find("operations do not match: rank 1 on b has a gather of 64 bytes"),
              std::string::npos)
        << wires[0].failure()->text;
  }
}

TEST(Wire, AnAgreementOf512RanksIsNineMessagesOfEach) {
  for (int size : {512, 511, 3}) {
    Simulation simulation(size, 1, Simulation::None, /*sparse=*/true, /*operations=*/1);
    EXPECT_EQ(simulation.run(), "");
    int64_t messages = 0, bytes = 0;
    for (int rank = 0; rank < size; ++rank) {
      messages = std::max(messages, simulation.framesSent(rank));
      bytes = std::max(bytes, simulation.bytesSent(rank));
    }
    EXPECT_EQ(messages, size == 3 ? 2 : 9);
    // And a word of farewell to each peer, of exchanges too.
    int64_t frame = sizeof(Frame);
    EXPECT_LE(bytes, messages * (frame + Simulation::kFirstWords * 8) + 3 * messages * frame);
    printf("%d ranks: %d messages and %d bytes a rank\n", size, int(messages), int(bytes));
  }
}

/// All ranks' rounds in one process, without wires: of any number of ranks.
TEST(Rounds, AnyNumberOfRanks) {
  for (int size = 1; size <= 70; ++size)
    for (bool agrees : {false, true}) {
      std::vector<Communicator> groups;
      std::vector<Rounds> rounds(size);
      std::vector<std::vector<int64_t>> memory(size);
      for (int rank = 0; rank < size; ++rank)
        groups.push_back(everyone(size, rank));
      for (int rank = 0; rank < size; ++rank) {
        memory[rank].assign(agrees ? 3 : size, -1);
        if (agrees) {
          memory[rank] = {rank * 5 + 1, int64_t(1) << rank % 60, 100 - rank};
          rounds[rank].startAgreement(groups[rank], memory[rank].data(), {1, 1, 1});
        } else {
          memory[rank][rank] = rank * 3;
          rounds[rank].startExchange(groups[rank], 8, reinterpret_cast<char *>(memory[rank].data()));
        }
      }
      // Each goes as far as it can, until nobody can.
      std::vector<int> at(size, 0), sent(size, -1);
      for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < size; ++rank) {
          if (at[rank] == rounds[rank].count())
            continue;
          const Rounds::Round &round = rounds[rank].round(at[rank]);
          if (sent[rank] < at[rank]) {
            sent[rank] = at[rank];
            moved = true;
            if (round.to >= 0) {
              const char *out = rounds[rank].outgoing(at[rank]);
              for (int i = 0; i < rounds[round.to].count(); ++i)
                if (rounds[round.to].round(i).from == rank) {
                  ASSERT_EQ(rounds[round.to].round(i).receives, round.sends);
                  // What is received is not looked at before its round: mark that it is there.
                  std::memcpy(rounds[round.to].incoming(i), out, round.sends);
                }
            }
          }
          bool there = round.from < 0;
          if (!there)
            for (int i = 0; i <= sent[round.from] && i < rounds[round.from].count(); ++i)
              there |= rounds[round.from].round(i).to == rank;
          if (!there)
            continue;
          rounds[rank].take(at[rank]++);
          moved = true;
        }
      }
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(at[rank], rounds[rank].count()) << size;
        if (agrees) {
          int64_t bits = 0;
          for (int r = 0; r < size; ++r)
            bits |= int64_t(1) << r % 60;
          EXPECT_EQ(memory[rank], (std::vector<int64_t>{size * (size - 1) / 2 * 5 + size, bits, 101 - size}));
        } else {
          for (int r = 0; r < size; ++r)
            EXPECT_EQ(memory[rank][r], r * 3) << size;
        }
      }
    }
}

int longRun(uint64_t seeds, int ranks, uint64_t first) {
  struct Row {
    int runs = 0, failures = 0, wrong = 0;
  } rows[Simulation::Faults];
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    auto fault = static_cast<Simulation::Fault>(seed % Simulation::Faults);
    Simulation simulation(ranks, seed, fault, /*sparse=*/seed % 5 == 0, /*operations=*/4);
    std::string problem = simulation.run();
    Row &row = rows[fault];
    ++row.runs;
    row.failures += simulation.failures() > 0;
    row.wrong += !problem.empty();
    if (!problem.empty())
      printf("seed %llu (%s): %s\n", static_cast<unsigned long long>(seed), Simulation::nameOf(fault),
             problem.c_str());
  }
  int wrong = 0;
  for (int fault = 0; fault < Simulation::Faults; ++fault) {
    const Row &row = rows[fault];
    printf("%-14s %5d runs of %d ranks, %5d with ranks that failed, %d wrong\n",
           Simulation::nameOf(static_cast<Simulation::Fault>(fault)), row.runs, ranks, row.failures,
           row.wrong);
    wrong += row.wrong;
  }
  return wrong > 0;
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  uint64_t seeds = 0, first = 0;
  int ranks = 64;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seeds=", 8) == 0)
      seeds = strtoull(argv[i] + 8, nullptr, 10);
    if (std::strncmp(argv[i], "--ranks=", 8) == 0)
      ranks = atoi(argv[i] + 8);
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      first = strtoull(argv[i] + 7, nullptr, 10);
  }
  return seeds ? longRun(seeds, ranks, first) : RUN_ALL_TESTS();
}
