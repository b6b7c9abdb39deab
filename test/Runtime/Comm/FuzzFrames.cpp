//===- FuzzFrames.cpp - anything a peer may say ----------------------------===//
//
// A wire in the middle of its operations is fed bytes. They come as orders: how a frame is
// filled, so that its checks hold and what is behind them is reached, or bytes as they are.
// Whatever comes, nothing is written outside what the operations gave, and the wire goes on or
// names the peer.
//
//===----------------------------------------------------------------------===//

#include "Comm/Wire.h"
#include "Fuzz.h"

#include <cstring>

using namespace dsopt::runtime;

namespace {

/// Orders, one byte or word after the other; zeros behind the end.
struct Orders {
  const uint8_t *next, *end;
  template <typename T> T take() {
    T value{};
    size_t bytes = std::min<size_t>(sizeof value, end - next);
    std::memcpy(&value, next, bytes);
    next += bytes;
    return value;
  }
};

constexpr int64_t kBytes = 640;
/// Of a frame's body; what claims to be longer takes what comes next for the rest.
constexpr int64_t kMostBytes = 4096;

} // namespace

std::vector<std::string> dsopt::test::fuzzSeeds() { return orders(300); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Orders orders{data, data + size};
  constexpr int kRanks = 4;
  // What operations may write, between what nothing may.
  std::vector<char> memory(16 * kBytes * kRanks, 0x55), guard(4096, 0x55);
  std::vector<char> target(kBytes * kRanks + 2 * guard.size(), 0x55);
  char *place = target.data() + guard.size();
  std::vector<int64_t> record(24);
  Communicator groups[3];
  for (int i = 0; i < 3; ++i)
    groups[i] = Communicator(i, {0, 1, 2, 3}, 0);
  Transfer transfers[Engine::kSlots];
  Wire wire(0, {"a", "b", "c", "d"}, {false, true, true, true}, {}, [](int) {});
  wire.setStaging(memory.data(), kBytes * kRanks);
  wire.setPlace(3, 4);
  uint64_t numbers[3] = {};
  bool flies[Engine::kSlots] = {};
  auto start = [&](int what) {
    int slot = what % Engine::kSlots;
    if (flies[slot])
      return;
    flies[slot] = true;
    Transfer &transfer = transfers[slot];
    auto kind = static_cast<Transfer::Kind>(what / Engine::kSlots % 6);
    int group = slot % 3;
    transfer.reset(kind, kind == Transfer::Value ? nullptr : &groups[group]);
    transfer.number = kind == Transfer::Value ? 7 : numbers[group]++;
    transfer.source = memory.data();
    transfer.target = kind == Transfer::Agreement ? nullptr : place;
    transfer.bytes = kind == Transfer::Exchange ? 64 : kBytes;
    transfer.record = record.data();
    transfer.shape = {8, 8, 8};
    if (kind <= Transfer::AllToAll || kind == Transfer::Value)
      for (int peer = 1; peer < (kind == Transfer::Value ? 2 : kRanks); ++peer) {
        transfer.sends.push_back({peer, memory.data(), nullptr, kBytes});
        transfer.receives.push_back({peer, nullptr, place + peer * kBytes, kBytes});
      }
    wire.start(slot, transfer);
  };
  Wire::Time now{};
  start(0);
  std::string bytes;
  while (orders.next < orders.end) {
    uint8_t what = orders.take<uint8_t>();
    int peer = 1 + what % 3;
    if (what >= 250) {
      wire.tick(now += std::chrono::seconds(3));
      continue;
    }
    if (what >= 240) {
      wire.isOpen(peer) ? wire.closed(peer, "the fuzzer wants it") : void();
      continue;
    }
    if (what >= 200) {
      start(orders.take<uint8_t>());
      continue;
    }
    if (what >= 160) {
      for (Wire::Bytes out = wire.outgoing(peer); out.size() > 0; out = wire.outgoing(peer)) {
        int64_t some = std::min<int64_t>(out.size(), 1 + orders.take<uint16_t>());
        wire.sent(peer, some);
      }
      continue;
    }
    if (what == 159)
      wire.drop();
    if (what == 158)
      wire.end(orders.take<uint8_t>() % 2, 2);
    if (what >= 150) { // bytes as they are
      size_t some = std::min<size_t>(orders.end - orders.next, orders.take<uint8_t>());
      some = std::min<size_t>(some, orders.end - orders.next);
      wire.feed(peer, reinterpret_cast<const char *>(orders.next), static_cast<int64_t>(some), now);
      orders.next += some;
      continue;
    }
    // A frame: near to what is expected, in most of its fields.
    Frame frame;
    auto odd = [&] { return orders.take<uint8_t>() % 16 == 15; };
    static constexpr int64_t kSizes[] = {0, 64, 128, 192, kBytes, kBytes / 2, 1 << 20, -1};
    auto size = [&] { return odd() ? orders.take<int64_t>() : kSizes[orders.take<uint8_t>() % 8]; };
    frame.frame = static_cast<Frame::Kind>(odd() ? 5 : what & 1);
    if (what & 6)
      frame.frame = static_cast<Frame::Kind>(orders.take<uint8_t>() % 5);
    frame.kind = orders.take<uint8_t>() % (odd() ? 8 : Transfer::Value + 1);
    frame.space = frame.kind == Transfer::Value && !odd() ? Frame::kValues : orders.take<uint8_t>() % 3;
    frame.number = odd()                           ? orders.take<uint64_t>()
                   : frame.kind == Transfer::Value ? 7
                                                   : orders.take<uint8_t>() % 3;
    frame.total = size();
    frame.offset = odd() || what & 8 ? size() : 0;
    frame.length = odd() || what & 8 ? size() : frame.total;
    int64_t follows = std::min<int64_t>(std::max<int64_t>(frame.length, 0), kMostBytes);
    int64_t claimed = frame.length;
    bytes.assign(follows, static_cast<char>(what));
    frame.length = follows;
    frame.seal(bytes.data());
    frame.length = claimed;
    frame.headCheck = XXH3_64bits(&frame, offsetof(Frame, headCheck));
    if (what & 16 && follows > 0)
      bytes[orders.take<uint16_t>() % follows] ^= 1;
    bytes.insert(0, reinterpret_cast<const char *>(&frame), sizeof frame);
    // In pieces.
    size_t cut = std::min<size_t>(bytes.size(), orders.take<uint16_t>());
    wire.feed(peer, bytes.data(), static_cast<int64_t>(cut), now);
    wire.feed(peer, bytes.data() + cut, static_cast<int64_t>(bytes.size() - cut), now);
  }
  for (size_t i = 0; i < guard.size(); ++i)
    if (target[i] != 0x55 || target[target.size() - 1 - i] != 0x55)
      abort();
  if (wire.failure() && wire.failure()->text.empty())
    abort();
  return 0;
}
