//===- CachedAttention.cpp - attention of rows of several sequences --------===//
//
// Rows that follow each other in one sequence are rows of one call of attention's own kernels, over what the
// cache has of it: what a row's result is does not depend on the rows beside it, nor on columns behind it.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Attention.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <cstring>

using namespace dsopt::runtime;

namespace {
/// Rows of one sequence, one behind the other.
struct Run {
  int64_t first, rows;
};

/// The rows of a call and where their sequences are kept.
struct Rows {
  const dsopt_attention &d;
  const int64_t *slots, *positions;
  int64_t width = d.type == DSOPT_F32 ? 4 : 2;

  const char *row(const void *data, const int64_t *strides, int64_t head, int64_t row) const {
    return static_cast<const char *>(data) + (head * strides[1] + row * strides[2]) * width;
  }
  char *cached(void *cache, int64_t slot, int64_t head, int64_t position, int64_t size) const {
    return static_cast<char *>(cache) + ((slot * d.key_heads + head) * d.columns + position) * size * width;
  }
  /// The run that begins at a row: at most as many rows as are one unit of work.
  Run runAt(int64_t first) const {
    constexpr int64_t kMost = DSOPT_ATTENTION_ROWS * DSOPT_ATTENTION_GROUP;
    int64_t rows = 1;
    while (rows < kMost && first + rows < d.rows && slots[first + rows] == slots[first] &&
           positions[first + rows] == positions[first] + rows)
      ++rows;
    return {first, rows};
  }
};
} // namespace

extern "C" void dsopt_rt_cached_attention(dsopt_rt *rt, const dsopt_attention *d, const void *q,
                                          const void *k, const void *v, const int64_t *slots,
                                          const int64_t *positions, const void *mask, void *keys,
                                          void *values, void *out, void *workspace) {
  CallTimer timer(rt->profile);
  Rows all{*d, slots, positions};
  rt->pool->forEach(d->key_heads, 1, [&](int64_t head, int) {
    for (int64_t row = 0; row < d->rows; ++row) {
      if (slots[row] < 0)
        continue;
      std::memcpy(all.cached(keys, slots[row], head, positions[row], d->depth), all.row(k, d->k, head, row),
                  d->depth * all.width);
      std::memcpy(all.cached(values, slots[row], head, positions[row], d->width), all.row(v, d->v, head, row),
                  d->width * all.width);
    }
  });
  // Runs are found again by each thread: nothing is allocated.
  int64_t runs = 0;
  for (int64_t row = 0; row < d->rows; row += all.runAt(row).rows)
    ++runs;
  auto *scratch = static_cast<float *>(workspace);
  int64_t size = dsopt_attention_scratch(d, 0), readers = d->heads / d->key_heads;
  rt->pool->forEach(runs * d->heads, 1, [&](int64_t unit, int thread) {
    int64_t head = unit % d->heads, keyHead = head / readers;
    Run run = all.runAt(0);
    for (int64_t i = 0; i < unit / d->heads; ++i)
      run = all.runAt(run.first + run.rows);
    int64_t slot = slots[run.first], position = positions[run.first];
    auto *result = const_cast<char *>(all.row(out, d->out, head, run.first));
    if (slot < 0) {
      for (int64_t i = 0; i < run.rows; ++i)
        std::memset(result + i * d->out[2] * all.width, 0, d->width * all.width);
      return;
    }
    dsopt_attention own = *d;
    own.batch = own.heads = own.key_heads = own.pairs = own.shards = 1;
    own.rows = run.rows;
    own.columns = position + run.rows;
    own.begin = position;
    own.causal = 1;
    own.k[2] = d->depth;
    own.v[2] = d->width;
    AttentionTensors tensors{};
    tensors.q = all.row(q, d->q, head, run.first);
    tensors.k = all.cached(keys, slot, keyHead, 0, d->depth);
    tensors.v = all.cached(values, slot, keyHead, 0, d->width);
    tensors.out = result;
    if (mask)
      tensors.mask = static_cast<const char *>(mask) +
                     (head * d->mask[1] + run.first * d->mask[2]) * (d->mask_type == DSOPT_F32 ? 4 : 2);
    kernelsOf(own).forward(own, tensors, 0, 0, 0, run.rows, scratch + thread * size);
  });
}
