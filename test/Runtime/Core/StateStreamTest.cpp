//===- StateStreamTest.cpp - state that is taken while steps go on --------===//

#include "Core/StateStream.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

using namespace dsopt::runtime;

namespace {
/// Has every other 64 bytes of the state: what it does not bring is at no address.
struct Remote final : RemoteState {
  bool has(const char *address) const override { return reinterpret_cast<uintptr_t>(address) / 64 % 2; }
  void fetch(char *to, const char *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
    ++fetched;
  }
  void bringTo(char *, int64_t) override {}
  std::atomic<int64_t> fetched{0};
};

/// Regions of bytes that are cut into pieces.
struct State {
  explicit State(const std::vector<std::vector<int64_t>> &regions, int64_t staging,
                 RemoteState *remote = nullptr)
      : staging(staging) {
    int64_t bytes = 0;
    for (const std::vector<int64_t> &sizes : regions)
      bytes = std::accumulate(sizes.begin(), sizes.end(), bytes);
    values.resize(bytes);
    fill(0);
    int64_t at = 0;
    for (size_t region = 0; region < regions.size(); ++region)
      for (int64_t size : regions[region]) {
        pieces.push_back({values.data() + at, size, region});
        at += size;
      }
    stream.emplace(pieces, regions.size(), this->staging.data(), staging, waker, remote);
  }
  void fill(int step) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<char>(i * 7 + step * 31);
  }
  std::vector<char> values, staging;
  std::vector<StreamPiece> pieces;
  Waker::Bell bell{};
  Waker waker{bell, false, {}};
  std::optional<StateStream> stream;
};

TEST(StateStream, PiecesComeInOrderAndStagedOnesFirst) {
  State state({{4, 4}, {4}, {4}}, 8);
  EXPECT_FALSE(state.stream->next()) << "nothing has begun";
  state.stream->begin();
  for (size_t region = 0; region < 3; ++region)
    EXPECT_TRUE(state.stream->holds(region));
  auto first = state.stream->next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->piece, 0u);
  EXPECT_EQ(first->bytes, state.values.data());
  // The writer has the first piece of region 0: the second may be staged, no third.
  EXPECT_TRUE(state.stream->stage(0));
  EXPECT_FALSE(state.stream->stage(0));
  EXPECT_TRUE(state.stream->holds(0)) << "the writer still reads the first";
  EXPECT_TRUE(state.stream->stage(2));
  EXPECT_FALSE(state.stream->holds(2));
  EXPECT_FALSE(state.stream->stage(1)) << "there is no more room";
  uint32_t rung = state.waker.count();
  state.stream->release(*first);
  EXPECT_NE(state.waker.count(), rung);
  EXPECT_FALSE(state.stream->holds(0));
  std::fill(state.values.begin(), state.values.end(), 0);
  std::vector<size_t> order;
  while (auto taken = state.stream->next()) {
    order.push_back(taken->piece);
    EXPECT_EQ(taken->isStaged, taken->piece != 2);
    EXPECT_EQ(taken->bytes[0], taken->isStaged ? static_cast<char>(taken->piece * 4 * 7) : 0);
    state.stream->release(*taken);
  }
  EXPECT_EQ(order, (std::vector<size_t>{1, 3, 2}));
  EXPECT_FALSE(state.stream->holds(1));
}

TEST(StateStream, WhatHasNoRoomIsLeftToTheWriter) {
  State state({{16}}, 8);
  state.stream->begin();
  EXPECT_FALSE(state.stream->stage(0));
  auto taken = state.stream->next();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->isStaged);
}

TEST(StateStream, TheWriterHoldsNothingThatItHasFetched) {
  struct All final : RemoteState {
    bool has(const char *) const override { return true; }
    void fetch(char *to, const char *from, int64_t bytes) override { std::memcpy(to, from, bytes); }
    void bringTo(char *, int64_t) override {}
  } remote;
  State state({{4}, {4}, {4}}, 8, &remote);
  const std::vector<char> before = state.values;
  state.stream->begin();
  uint32_t rung = state.waker.count();
  auto taken = state.stream->next();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(state.stream->holds(0));
  EXPECT_NE(state.waker.count(), rung);
  // There is room for one piece beside the writer's.
  EXPECT_TRUE(state.stream->stage(1));
  EXPECT_FALSE(state.stream->stage(2));
  std::fill(state.values.begin(), state.values.end(), 0);
  EXPECT_EQ(std::memcmp(taken->bytes, before.data(), 4), 0);
  state.stream->release(*taken);
  taken = state.stream->next();
  ASSERT_TRUE(taken && taken->isStaged);
  EXPECT_EQ(std::memcmp(taken->bytes, before.data() + 4, 4), 0);
  state.stream->release(*taken);
  EXPECT_TRUE(state.stream->holds(2));
}

TEST(StateStream, EndedTakesNoMore) {
  State state({{4}, {4}}, 8);
  state.stream->begin();
  state.stream->end();
  EXPECT_TRUE(state.stream->hasEnded());
  EXPECT_FALSE(state.stream->next());
}

// A writer and a rank that changes region after region, as soon as each is taken: what is written is what was
// there before, whatever the sizes, wherever pieces are and however slow the writer.
TEST(StateStream, NothingIsOvertaken) {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<int64_t>> sizes(1 + random() % 8);
    for (auto &region : sizes)
      for (size_t i = 0, count = random() % 6; i < count; ++i)
        region.push_back(1 + random() % 5000);
    Remote remote;
    bool isRemote = random() % 2;
    int64_t least = isRemote ? 5000 : 0;
    State state(sizes, random() % 3 ? static_cast<int64_t>(least + 1 + random() % 12000) : least,
                isRemote ? &remote : nullptr);
    for (int step = 0; step < 3; ++step) {
      state.fill(step);
      const std::vector<char> before = state.values;
      std::vector<char> written(state.values.size());
      state.stream->begin();
      std::thread writer([&, slow = random() % 2] {
        while (auto taken = state.stream->next()) {
          if (slow)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          const StreamPiece &piece = state.pieces[taken->piece];
          std::copy_n(taken->bytes, piece.bytes, written.data() + (piece.address - state.values.data()));
          state.stream->release(*taken);
        }
      });
      for (size_t region = 0; region < sizes.size(); ++region) {
        while (true) {
          uint32_t seen = state.waker.count();
          if (!state.stream->holds(region))
            break;
          if (!state.stream->stage(region))
            state.waker.sleep(seen);
        }
        for (const StreamPiece &piece : state.pieces)
          if (piece.region == region)
            std::fill_n(state.values.begin() + (piece.address - state.values.data()), piece.bytes, 77);
      }
      writer.join();
      ASSERT_EQ(written, before) << "round " << round << ", step " << step;
    }
  }
}
} // namespace
