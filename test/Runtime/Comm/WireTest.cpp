//===- WireTest.cpp - simulated ranks on a seeded scheduler ----------------===//
//
// usage: WireTest --seeds=N [--ranks=N] [--seed=FIRST]: a long run, one line for each
// fault; without arguments a sample of it.
//
//===----------------------------------------------------------------------===//

#include "Comm/Rounds.h"
#include "Simulation.h"

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
  EXPECT_EQ(wire.failure()->text,
            "rank 0 and rank 1 on b are not connected, but the program has them send to each other");
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
           Simulation::nameOf(static_cast<Simulation::Fault>(fault)), row.runs, ranks, row.failures, row.wrong);
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
