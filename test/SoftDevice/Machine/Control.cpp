//===- Control.cpp - branches, ends and barriers --------------------------===//

#include "Decoder.h"
#include "Lanes.h"

namespace softdevice {

static void branch(Warp &warp, const Op &op) { warp.jump(warp.lanes(op), static_cast<int>(op.number)); }

/// Each lane to the label that its index says.
static void branchByTable(Warp &warp, const Op &op) {
  uint32_t lanes = warp.lanes(op);
  for (uint32_t target : op.rows) {
    uint32_t there = 0;
    eachLane(lanes, [&](int lane) {
      uint32_t index = warp.row<uint32_t>(op.a)[lane];
      if (index >= op.rows.size())
        throw Fault("a branch by index " + std::to_string(index) + " of " + std::to_string(op.rows.size()) +
                    ": " + describePlace(warp, op, lane));
      if (op.rows[index] == target)
        there |= 1u << lane;
    });
    lanes &= ~there;
    warp.jump(there & warp.active, static_cast<int>(target));
  }
}

static void leave(Warp &warp, const Op &op) { warp.leave(warp.lanes(op)); }
static void nothing(Warp &, const Op &) {}
static void trap(Warp &warp, const Op &op) {
  if (uint32_t lanes = warp.lanes(op))
    throw Fault("a trap: " + describePlace(warp, op, __builtin_ctz(lanes)));
}

/// All threads of a block come to a barrier, and all lanes of a warp together.
static void waitForBlock(Warp &warp, const Op &op) {
  if (uint32_t lanes = warp.lanes(op); lanes != warp.active) {
    if (!lanes)
      return;
    throw Fault("a barrier that some lanes skip: " + describePlace(warp, op, __builtin_ctz(lanes)));
  }
  if (!warp.gather(warp.all, op)) {
    warp.next = warp.pc;
    return;
  }
  warp.barrier = static_cast<int>(op.number);
  warp.stops = true;
}

static void waitForLanes(Warp &warp, const Op &op) {
  uint32_t needed = warp.row<uint32_t>(op.a)[__builtin_ctz(warp.active)];
  if (!warp.gather(needed & warp.all, op))
    warp.next = warp.pc;
}

static bool decodeBarrier(Decoder &decoder, Op &op) {
  if (decoder.take("warp")) {
    op.run = waitForLanes;
    op.a = decoder.read(decoder.operand(0), Type::B32);
    return decoder.take("sync");
  }
  decoder.take("cta");
  decoder.take("aligned");
  // With a count not all threads take part.
  if (!decoder.take("sync") || !decoder.has(1))
    return false;
  auto number = decoder.constant(decoder.operand(0));
  op.number = number.value_or(0);
  op.run = waitForBlock;
  return number.has_value();
}

bool decodeControl(Decoder &decoder, Op &op) {
  const std::string &base = decoder.base();
  if (base == "bra") {
    decoder.take("uni");
    op.number = decoder.label(decoder.operand(0).symbol);
    op.run = branch;
    return decoder.has(1);
  }
  if (base == "brx") {
    decoder.take("uni");
    for (const std::string &name : decoder.branchTable(decoder.operand(1).symbol))
      op.rows.push_back(decoder.label(name));
    op.a = decoder.read(decoder.operand(0), Type::U32);
    op.run = branchByTable;
    return decoder.take("idx");
  }
  if (base == "bar" || base == "barrier")
    return decodeBarrier(decoder, op);
  if (base == "membar" || base == "fence") {
    // Blocks run one after the other, and each access is done when its operation is.
    while (!decoder.takeOne({"sc", "acq_rel", "acquire", "release", "cta", "gl", "gpu", "sys", "cluster"})
                .empty())
      ;
    op.run = nothing;
    return true;
  }
  op.run = base == "ret" || base == "exit" ? leave
           : base == "trap"                ? trap
           : base == "pragma"              ? nothing
                                           : nullptr;
  decoder.take("uni");
  return op.run && decoder.has(0);
}

} // namespace softdevice
