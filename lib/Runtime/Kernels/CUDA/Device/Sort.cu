//===- Sort.cu - rows in the order of where they go ------------------------===//
//
// A stable sort by digits of 8 bits, the lowest first: how often each tile has each digit,
// where each tile's begin in the result, and the move. A row is a word: where it goes in
// the upper half, which it is in the lower one; rows that go nowhere come last.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"

namespace {
constexpr int kThreads = 256, kWarps = kThreads / 32, kScanned = 1024;
constexpr int kTile = DSOPT_DEVICE_SORT_TILE, kDigits = DSOPT_DEVICE_SORT_DIGITS;
static_assert(kDigits == kThreads);

template <typename Index>
DEVICE void fillOrder(const Index *indices, uint64_t *order, int64_t count, int64_t size) {
  int64_t i = blockX() * kThreads + threadX();
  if (i >= count)
    return;
  int64_t row = indices[i];
  if (row < 0)
    row += size;
  uint64_t to = row >= 0 && row < size ? row : size;
  order[i] = to << 32 | uint64_t(i);
}
} // namespace

KERNEL(kThreads)
void dsopt_sort_fill_4(const int32_t *indices, uint64_t *order, int64_t count, int64_t size) {
  fillOrder(indices, order, count, size);
}
KERNEL(kThreads)
void dsopt_sort_fill_8(const int64_t *indices, uint64_t *order, int64_t count, int64_t size) {
  fillOrder(indices, order, count, size);
}

/// A block a tile; `counts` are by digit, then by tile.
KERNEL(kThreads) void dsopt_sort_count(const uint64_t *order, int64_t count, int shift, int64_t *counts) {
  SHARED static uint32_t own[kDigits];
  own[threadX()] = 0;
  barrier();
  int64_t end = least((blockX() + 1) * kTile, count);
  for (int64_t i = blockX() * kTile + threadX(); i < end; i += kThreads)
    __atomic_fetch_add(own + (order[i] >> shift) % kDigits, 1u, __ATOMIC_RELAXED);
  barrier();
  counts[threadX() * blocksX() + blockX()] = own[threadX()];
}

/// One block: each count becomes the sum of those before.
KERNEL(kScanned) void dsopt_sort_scan(int64_t *counts, int64_t count) {
  SHARED static int64_t sums[2][kScanned];
  int64_t before = 0;
  for (int64_t first = 0; first < count; first += kScanned) {
    int64_t i = first + threadX(), own = i < count ? counts[i] : 0, sum = own;
    int turn = 0;
    for (int distance = 1; distance < kScanned; distance *= 2, turn ^= 1) {
      sums[turn][threadX()] = sum;
      barrier();
      if (threadX() >= distance)
        sum += sums[turn][threadX() - distance];
    }
    sums[turn][threadX()] = sum;
    barrier();
    if (i < count)
      counts[i] = before + sum - own;
    before += sums[turn][kScanned - 1];
    barrier();
  }
}

KERNEL(kThreads)
void dsopt_sort_move(const uint64_t *order, uint64_t *sorted, int64_t count, int shift,
                     const int64_t *counts) {
  SHARED static int64_t next[kDigits]; // place of the next row with a digit
  SHARED static uint32_t found[kWarps][kDigits];
  int thread = threadX();
  next[thread] = counts[thread * blocksX() + blockX()];
  int64_t end = least((blockX() + 1) * kTile, count);
  for (int64_t first = blockX() * kTile; first < end; first += kThreads) {
    for (int warp = 0; warp < kWarps; ++warp)
      found[warp][thread] = 0;
    barrier();
    int64_t i = first + thread;
    uint64_t row = i < end ? order[i] : 0;
    // Threads behind the end have a digit that no row has.
    uint32_t digit = i < end ? (row >> shift) % kDigits : kDigits;
    uint32_t equal = __nvvm_match_any_sync_i32(~0u, digit), before = equal & ((1u << laneX()) - 1);
    if (i < end && before == 0)
      found[warpX()][digit] = __builtin_popcount(equal);
    barrier();
    // A thread a digit: where each warp's begin.
    int64_t place = next[thread];
    uint32_t sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      uint32_t own = found[warp][thread];
      found[warp][thread] = sum;
      sum += own;
    }
    barrier();
    if (i < end)
      sorted[next[digit] + found[warpX()][digit] + __builtin_popcount(before)] = row;
    barrier();
    next[thread] = place + sum;
  }
}
