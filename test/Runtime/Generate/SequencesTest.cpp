//===- SequencesTest.cpp - sequences on their way --------------------------===//

#include "Generate/Sequences.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace dsopt::runtime;

namespace {
Sequence of(std::vector<int64_t> tokens) {
  Sequence sequence;
  sequence.given = static_cast<int64_t>(tokens.size());
  sequence.tokens = std::move(tokens);
  return sequence;
}

TEST(Sequences, TakesPromptsInPieces) {
  Sequences sequences({of({1, 2, 3, 4, 5})}, 1);
  Rows rows;
  sequences.next(2, rows);
  EXPECT_EQ(rows.tokens, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(rows.positions, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(rows.picks.empty());
  sequences.next(2, rows);
  sequences.next(2, rows);
  EXPECT_EQ(rows.tokens, (std::vector<int64_t>{5}));
  EXPECT_EQ(rows.picks, (std::vector<int64_t>{0}));
}

TEST(Sequences, AnswersComeBeforePrompts) {
  Sequences sequences({of({1}), of({2, 3, 4})}, 2);
  Rows rows;
  sequences.next(2, rows);
  EXPECT_EQ(rows.slots, (std::vector<int64_t>{0, 1}));
  sequences[0].tokens.push_back(9);
  sequences.next(2, rows);
  EXPECT_EQ(rows.tokens, (std::vector<int64_t>{9, 3}));
  EXPECT_EQ(rows.sequences, (std::vector<int64_t>{0}));
}

TEST(Sequences, SlotsAreTakenAgain) {
  Sequences sequences({of({1}), of({2}), of({3})}, 1);
  Rows rows;
  for (int64_t number = 0; number < 3; ++number) {
    sequences.next(8, rows);
    EXPECT_EQ(rows.sequences, (std::vector<int64_t>{number}));
    EXPECT_EQ(rows.slots, (std::vector<int64_t>{0}));
    sequences.finish(sequences[number]);
  }
  sequences.next(8, rows);
  EXPECT_TRUE(rows.tokens.empty());
}

/// Whatever comes when, each position of each sequence is seen once, in order, in the sequence's own slot.
TEST(Sequences, EachPositionIsSeenOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    int64_t slots = 1 + random() % 4, most = 1 + random() % 9;
    std::vector<Sequence> all(1 + random() % 6);
    for (Sequence &sequence : all)
      sequence = of(std::vector<int64_t>(1 + random() % 20, 1));
    Sequences sequences(all, slots);
    std::map<int64_t, int64_t> seen; // by slot
    Rows rows;
    int64_t done = 0;
    for (;;) {
      sequences.next(most, rows);
      if (rows.tokens.empty())
        break;
      ASSERT_LE(static_cast<int64_t>(rows.tokens.size()), most);
      ASSERT_LE(rows.picks.size(), static_cast<size_t>(slots));
      for (size_t i = 0; i < rows.tokens.size(); ++i)
        ASSERT_EQ(rows.positions[i], seen[rows.slots[i]]++);
      for (size_t i = 0; i < rows.picks.size(); ++i) {
        Sequence &sequence = sequences[rows.sequences[i]];
        ASSERT_EQ(rows.positions[rows.picks[i]] + 1, static_cast<int64_t>(sequence.tokens.size()));
        ASSERT_EQ(rows.slots[rows.picks[i]], sequence.slot);
        sequence.tokens.push_back(2);
        if (random() % 3 == 0) {
          seen[sequence.slot] = 0;
          sequences.finish(sequence);
          ++done;
        }
      }
    }
    ASSERT_EQ(done, sequences.size());
  }
}
} // namespace
