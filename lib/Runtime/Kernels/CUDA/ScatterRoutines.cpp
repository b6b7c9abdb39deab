//===- ScatterRoutines.cpp - rows that go where indices say ----------------===//

#include "Kernels/CUDA/Grids.h"
#include "Kernels/CUDA/Routines.h"

#include <algorithm>
#include <utility>

namespace dsopt::runtime::cuda {

static constexpr int64_t kSortThreads = 256, kScanThreads = 1024, kThreads = 128;

/// The rows in the order of where they go, as words (Device/Sort.cu), in the workspace.
static const uint64_t *sortRows(Device &device, StreamHandle stream, const dsopt_scatter_add &d,
                                const void *indices, void *workspace) {
  auto *order = static_cast<uint64_t *>(workspace), *other = order + d.count;
  auto *counts = reinterpret_cast<int64_t *>(other + d.count);
  int64_t tiles = blocksFor(d.count, DSOPT_DEVICE_SORT_TILE);
  launchBlocks(device, stream, d.index_bytes == 4 ? "dsopt_sort_fill_4" : "dsopt_sort_fill_8",
               blocksFor(d.count, kSortThreads), kSortThreads, indices, order, d.count, d.size);
  // As many digits as `size`, which stands for nowhere, has.
  for (int shift = 32; shift == 32 || (shift < 64 && d.size >> (shift - 32)); shift += 8) {
    launchBlocks(device, stream, "dsopt_sort_count", tiles, kSortThreads, order, d.count, shift, counts);
    launchBlocks(device, stream, "dsopt_sort_scan", 1, kScanThreads, counts,
                 tiles * DSOPT_DEVICE_SORT_DIGITS);
    launchBlocks(device, stream, "dsopt_sort_move", tiles, kSortThreads, order, other, d.count, shift,
                 counts);
    std::swap(order, other);
  }
  return order;
}

void scatterAdd(Device &device, StreamHandle stream, const dsopt_scatter_add &d, const void *rows,
                const void *indices, void *result, void *workspace, bool accumulates) {
  if (int64_t bytes = d.size * d.width * (d.type_result == DSOPT_F32 ? 4 : 2);
      !accumulates && !d.sums && bytes)
    DSOPT_CUDA(cuMemsetD8Async, addressOf(result), 0, bytes, stream);
  const uint64_t *order = d.count ? sortRows(device, stream, d, indices, workspace) : nullptr;
  std::string kernel = d.sums ? "dsopt_add_sums_" : "dsopt_scatter_add_";
  kernel += suffixOf(d.type_result) + "_" + suffixOf(d.type_rows);
  launchBlocks(device, stream, kernel, (d.sums ? d.size : d.count) * blocksFor(d.width, kThreads), kThreads,
               d, rows, order, result);
}

void scatter(Device &device, StreamHandle stream, const dsopt_scatter &d, const void *data,
             const void *indices, const void *updates, void *result) {
  if (int64_t bytes = d.size * d.width * d.element_bytes; bytes && data != result)
    DSOPT_CUDA(cuMemcpyDtoDAsync_v2, addressOf(result), addressOf(data), bytes, stream);
  // Each warp reads all indices: rows are cut where columns give too few warps.
  constexpr int64_t kWarps = 512;
  int64_t columns = blocksFor(d.width, 32);
  if (!d.count || !columns || !d.size)
    return;
  int64_t rowsEach = blocksFor(d.size, std::clamp<int64_t>(kWarps / columns, 1, d.size));
  const char *kernel = d.is_float             ? "dsopt_scatter_f32"
                       : d.element_bytes == 1 ? "dsopt_scatter_i8"
                       : d.element_bytes == 4 ? "dsopt_scatter_i32"
                                              : "dsopt_scatter_i64";
  launchBlocks(device, stream, kernel, blocksFor(columns * blocksFor(d.size, rowsEach), kThreads / 32),
               kThreads, d, indices, updates, result, rowsEach);
}

} // namespace dsopt::runtime::cuda
