//===- Scatter.cu - rows put at indices ------------------------------------===//
//
// A warp has 32 columns of a range of the result's rows. It looks at 32 indices at a time
// and applies those that are its own in order: an element has one thread.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

namespace {
constexpr int kThreads = 128;

/// Integers wrap around; a NaN replaces everything and nothing replaces it.
template <typename T, typename Wide> DEVICE T combine(int64_t mode, T x, T y) {
  switch (mode) {
  case DSOPT_SCATTER_ADD:
    return T(Wide(x) + Wide(y));
  case DSOPT_SCATTER_MUL:
    return T(Wide(x) * Wide(y));
  case DSOPT_SCATTER_MIN:
    return x != x || x < y ? x : y;
  case DSOPT_SCATTER_MAX:
    return x != x || x > y ? x : y;
  }
  return y;
}

template <typename T, typename Wide>
DEVICE void scatter(const dsopt_scatter &d, const void *indices, const T *updates, T *result,
                    int64_t rowsEach) {
  int64_t parts = (d.width + 31) / 32, warp = blockX() * (kThreads / 32) + warpX();
  int64_t column = warp % parts * 32 + laneX(), begin = warp / parts * rowsEach;
  int64_t end = least(begin + rowsEach, d.size);
  for (int64_t first = 0; first < d.count; first += 32) {
    int64_t i = first + laneX(), row = -1;
    if (i < d.count) {
      row = d.index_bytes == 4 ? static_cast<const int32_t *>(indices)[i]
                               : static_cast<const int64_t *>(indices)[i];
      if (row < 0)
        row += d.size;
    }
    uint32_t own = lanesWhere(i < d.count && row >= begin && row < end);
    for (; own; own &= own - 1) {
      int lane = __builtin_ctz(own);
      uint64_t low = uint32_t(__nvvm_shfl_sync_idx_i32(~0u, int(row), lane, 31));
      uint64_t high = uint32_t(__nvvm_shfl_sync_idx_i32(~0u, int(row >> 32), lane, 31));
      if (column >= d.width)
        continue;
      T &to = result[int64_t(high << 32 | low) * d.width + column];
      to = combine<T, Wide>(d.mode, to, updates[(first + lane) * d.width + column]);
    }
  }
}
} // namespace

#define SCATTER(name, T, Wide)                                                                               \
  KERNEL(kThreads)                                                                                           \
  void dsopt_scatter_##name(dsopt_scatter d, const void *indices, const T *updates, T *result,               \
                            int64_t rowsEach) {                                                              \
    scatter<T, Wide>(d, indices, updates, result, rowsEach);                                                 \
  }
SCATTER(f32, float, float)
SCATTER(i8, uint8_t, uint64_t)
SCATTER(i32, int32_t, uint64_t)
SCATTER(i64, int64_t, uint64_t)
