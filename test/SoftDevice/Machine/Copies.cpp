//===- Copies.cpp - asynchronous copies to shared memory ------------------===//
//
// A copy is made when its group is waited for, the latest moment that is allowed, and
// until then what it goes to is as if nobody had written it.
//
//===----------------------------------------------------------------------===//

#include "Access.h"

#include <algorithm>

namespace softdevice {

/// `op.a` is the target's address, `op.b` the source's, `op.c` the bytes to take, the rest are zeros.
static void begin(Warp &warp, const Op &op) {
  eachLane(warp.lanes(op), [&](int lane) {
    uint64_t to = addressOf(warp, op, lane);
    if (to - kSharedWindow < kWindowBytes)
      to -= kSharedWindow;
    uint64_t from = warp.row<uint64_t>(op.b)[lane] + static_cast<int32_t>(op.second);
    uint32_t taken = std::min(warp.row<uint32_t>(op.c)[lane], op.bytes);
    if (to % op.bytes || from % op.bytes)
      throw Fault("a copy of " + std::to_string(op.bytes) +
                  " bytes between addresses that are no multiples of that: " + describePlace(warp, op, lane));
    if (taken)
      reach(warp, op, Space::Global, lane, from, op.bytes, op.bytes, true, false);
    try {
      warp.block.shared.announce(to, op.bytes, warp.number);
    } catch (const Fault &fault) {
      throw Fault(std::string(fault.what()) + ": " + describePlace(warp, op, lane));
    }
    warp.copies.push_back({static_cast<uint32_t>(lane), from, to, op.bytes, taken, warp.committed[lane]});
  });
}

static void commit(Warp &warp, const Op &op) {
  eachLane(warp.lanes(op), [&](int lane) { ++warp.committed[lane]; });
}

/// All but the last `op.number` groups; -1: also what belongs to none.
static void wait(Warp &warp, const Op &op) {
  uint32_t lanes = warp.lanes(op);
  auto isDue = [&](const PendingCopy &copy) {
    return (lanes >> copy.lane & 1) && (op.number < 0 || copy.group < warp.committed[copy.lane] - op.number);
  };
  for (const PendingCopy &copy : warp.copies) {
    if (!isDue(copy))
      continue;
    char *to = warp.block.shared.reach(copy.to, copy.bytes, warp.number, false, true);
    std::memset(to, 0, copy.bytes);
    if (copy.taken)
      std::memcpy(to,
                  warp.block.grid.memory.reach(copy.from, copy.taken, true, false, "an asynchronous copy"),
                  copy.taken);
  }
  warp.copies.erase(std::remove_if(warp.copies.begin(), warp.copies.end(), isDue), warp.copies.end());
}

bool decodeCopies(Decoder &decoder, Op &op) {
  if (decoder.base() != "cp" || !decoder.take("async"))
    return false;
  if (decoder.take("commit_group")) {
    op.run = commit;
    return decoder.has(0);
  }
  if (decoder.take("wait_all")) {
    op.number = -1;
    op.run = wait;
    return decoder.has(0);
  }
  if (decoder.take("wait_group")) {
    auto groups = decoder.constant(decoder.operand(0));
    op.number = groups.value_or(0);
    op.run = wait;
    return groups.has_value();
  }
  bool isKnown = !decoder.takeOne({"ca", "cg"}).empty() &&
                 !decoder.takeOne({"shared", "shared::cta"}).empty() && decoder.take("global");
  decoder.takeOne({"L2::64B", "L2::128B", "L2::256B"});
  if (!isKnown || decoder.statement->operands.size() < 3)
    return false;
  auto bytes = decoder.constant(decoder.operand(2));
  if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16))
    return false;
  Op source;
  decoder.address(decoder.operand(1), source);
  decoder.address(decoder.operand(0), op);
  if (source.width != 8)
    return false;
  op.b = source.a;
  op.second = static_cast<uint32_t>(source.number);
  op.bytes = static_cast<uint32_t>(*bytes);
  op.c = decoder.has(4) ? decoder.read(decoder.operand(3), Type::U32) : decoder.constantRow(*bytes, 4);
  op.run = begin;
  return true;
}

} // namespace softdevice
