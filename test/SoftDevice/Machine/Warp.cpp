//===- Warp.cpp - lanes that part and meet again --------------------------===//

#include "Warp.h"
#include "Wide.h"

#include <algorithm>

namespace softdevice {

#if defined(__x86_64__)
const bool kHasWide = __builtin_cpu_supports("x86-64-v3");
#else
const bool kHasWide = false;
#endif

std::string describePlace(const Warp &warp, const Op &op, uint32_t lane) {
  const Grid &grid = warp.block.grid;
  uint32_t thread = warp.number * kLanes + lane, x = grid.threads[0], y = grid.threads[1];
  auto triple = [](uint32_t a, uint32_t b, uint32_t c) {
    return "(" + std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + ")";
  };
  const uint32_t *at = warp.block.position;
  return "kernel " + grid.kernel.name + " block " + triple(at[0], at[1], at[2]) + " thread " +
         triple(thread % x, thread / x % y, thread / x / y) + ", PTX line " + std::to_string(op.line) + ": " +
         op.text;
}

/// The lowest place of some lanes.
SOFT_CLONES static int lowestOf(const int *pcs, uint32_t lanes) {
  int lowest = INT_MAX;
  for (int lane = 0; lane < kLanes; ++lane)
    lowest = std::min(lowest, lanes >> lane & 1 ? pcs[lane] : INT_MAX);
  return lowest;
}

/// Puts lanes to a place; the lowest place of others then.
SOFT_CLONES static int firstOf(int *pcs, uint32_t here, int pc, uint32_t lanes) {
  int lowest = INT_MAX;
  for (int lane = 0; lane < kLanes; ++lane) {
    int at = here >> lane & 1 ? pc : pcs[lane];
    pcs[lane] = at;
    lowest = std::min(lowest, lanes >> lane & 1 ? at : INT_MAX);
  }
  return lowest;
}

SOFT_CLONES static uint32_t whoIsAt(const int *pcs, int place) {
  uint32_t lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    lanes |= static_cast<uint32_t>(pcs[lane] == place) << lane;
  return lanes;
}

/// The lanes with the lowest place go on, others wait: those that take the shorter way of a branch meet the
/// others where they join.
void Warp::schedule() {
  int first = firstOf(pcs, active, pc, alive & ~parked);
  active = waiting = 0;
  lowest = INT_MAX;
  if (!alive) {
    stops = true;
    return;
  }
  if (first == INT_MAX) {
    int lane = __builtin_ctz(parked);
    char lanes[16];
    uint32_t here = 0;
    for (int other = 0; other < kLanes; ++other)
      if ((parked >> other & 1) && pcs[other] == pcs[lane])
        here |= 1u << other;
    std::snprintf(lanes, sizeof(lanes), "%08x", here);
    throw Fault("divergent lanes: others of the warp never come to where lanes " + std::string(lanes) +
                " wait for them: " + describePlace(*this, block.grid.kernel.ops[pcs[lane]], lane));
  }
  active = whoIsAt(pcs, first) & alive;
  waiting = alive & ~active;
  // None is before the first: what is left are those behind it.
  lowest = lowestOf(pcs, waiting & ~parked);
  parked &= ~active;
  pc = first;
}

void Warp::run() {
  const std::vector<Op> &ops = block.grid.kernel.ops;
  stops = false;
  if (!active)
    schedule();
  while (!stops) {
    if (waiting && (parked || pc >= lowest))
      schedule();
    const Op &op = ops[pc];
    next = pc + 1;
    try {
      op.run(*this, op);
    } catch (const Fault &fault) {
      // Handlers that know the lane say the place themselves.
      if (std::strstr(fault.what(), "PTX line"))
        throw;
      throw Fault(std::string(fault.what()) + ": " +
                  describePlace(*this, op, __builtin_ctz(active | 1u << 31)));
    }
    pc = next;
    if (!active && !stops)
      schedule();
  }
}

void Warp::jump(uint32_t taken, int target) {
  if (taken == active) {
    next = target;
    return;
  }
  if (!taken)
    return;
  for (uint32_t left = taken; left; left &= left - 1)
    pcs[__builtin_ctz(left)] = target;
  active &= ~taken;
  waiting |= taken;
  lowest = std::min(lowest, target);
}

void Warp::leave(uint32_t lanes) {
  alive &= ~lanes;
  active &= ~lanes;
  if (!alive)
    stops = true;
}

bool Warp::gather(uint32_t needed, const Op &op) {
  if ((active & needed) == needed)
    return true;
  if (uint32_t gone = needed & ~alive)
    throw Fault("divergent lanes: lane " + std::to_string(__builtin_ctz(gone)) +
                " has left, and others of its warp wait for it: " +
                describePlace(*this, op, __builtin_ctz(active | 1u << 31)));
  for (uint32_t left = active; left; left &= left - 1)
    pcs[__builtin_ctz(left)] = pc;
  parked |= active;
  waiting |= active;
  active = 0;
  return false;
}

} // namespace softdevice
