//===- Attention.cpp - attention over the rank's threads -------------------===//
//
// Forward, a unit is a batch entry, a head and some blocks of rows; backward, a
// batch entry and a head, or a chunk of their columns where there are few. Units
// depend on shapes alone and write what is theirs, so any thread may take one.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Attention.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <initializer_list>

using namespace dsopt::runtime;

static const AttentionKernels *wide = &kAttentionBaseline, *narrow = wide;

void dsopt::runtime::selectAttention(const std::vector<std::string> &features) {
  wide = narrow = &kAttentionBaseline;
#ifdef __x86_64__
  if (hasAll(features, {"avx2", "fma"}))
    wide = narrow = &kAttentionAVX2;
  if (hasAll(features, {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    wide = narrow = &kAttentionAVX512;
    if (hasAll(features, {"avx512bf16"}))
      narrow = &kAttentionAVX512BF16;
  }
#endif
}

const AttentionKernels &dsopt::runtime::kernelsOf(const dsopt_attention &d) {
  return d.type == DSOPT_BF16 && !d.widens ? *narrow : *wide;
}

/// The descriptor as this rank's rows have it.
static dsopt_attention placed(const dsopt_rt &rt, const dsopt_attention &d) {
  dsopt_attention own = d;
  own.first = dsopt_attention_first(&d, rt.sequenceRank);
  return own;
}

extern "C" void dsopt_rt_attention(dsopt_rt *rt, const dsopt_attention *whole, const void *q, const void *k,
                                   const void *v, const void *mask, const float *previous,
                                   const float *previous_lse, void *out, float *lse, void *workspace) {
  CallTimer timer(rt->profile);
  const dsopt_attention own = placed(*rt, *whole), *d = &own;
  AttentionTensors tensors{};
  tensors.q = q;
  tensors.k = k;
  tensors.v = v;
  tensors.mask = mask;
  tensors.previous = previous;
  tensors.previousLse = previous_lse;
  tensors.out = out;
  tensors.lse = lse;
  if (rt->device) {
    rt->device->attention(*d, tensors);
    return;
  }
  auto *scratch = static_cast<float *>(workspace);
  int64_t size = dsopt_attention_scratch(d, 0), pairs = d->batch * d->heads;
  // What a row's result is does not depend on the rows that share a unit with it.
  int64_t rows = DSOPT_ATTENTION_ROWS * DSOPT_ATTENTION_GROUP;
  if (pairs * ((d->rows + rows - 1) / rows) < 2 * DSOPT_ATTENTION_UNITS)
    rows = DSOPT_ATTENTION_ROWS;
  int64_t groups = (d->rows + rows - 1) / rows;
  rt->pool->forEach(pairs * groups, 1, [&](int64_t unit, int thread) {
    // The longest rows of a causal mask first.
    int64_t pair = unit / groups, first = (groups - 1 - unit % groups) * rows;
    kernelsOf(*d).forward(*d, tensors, pair / d->heads, pair % d->heads, first,
                          std::min(first + rows, d->rows), scratch + thread * size);
  });
}

extern "C" void dsopt_rt_attention_grad(dsopt_rt *rt, const dsopt_attention *whole, const void *q,
                                        const void *k, const void *v, const void *mask, const void *out,
                                        const float *lse, const void *grad, const float *q_previous,
                                        const float *k_previous, const float *v_previous, void *q_grad,
                                        void *k_grad, void *v_grad, void *workspace) {
  CallTimer timer(rt->profile);
  const dsopt_attention own = placed(*rt, *whole), *d = &own;
  AttentionTensors tensors{q,
                           k,
                           v,
                           mask,
                           nullptr,
                           nullptr,
                           const_cast<void *>(out),
                           const_cast<float *>(lse),
                           grad,
                           q_previous,
                           k_previous,
                           v_previous,
                           q_grad,
                           k_grad,
                           v_grad};
  if (rt->device) {
    rt->device->attentionGrad(*d, tensors, workspace);
    return;
  }
  int64_t size = dsopt_attention_scratch(d, 1), sum = dsopt_attention_sum(d);
  int64_t shared = dsopt_attention_shared(d), readers = d->heads / d->key_heads;
  auto *scratch = static_cast<float *>(workspace), *kept = scratch + d->threads * size,
       *sums = kept + d->threads * shared;
  int64_t pairs = d->batch * d->heads, chunks = dsopt_attention_chunks(d);
  int64_t blocks = (d->columns + DSOPT_ATTENTION_GRAD_COLUMNS - 1) / DSOPT_ATTENTION_GRAD_COLUMNS;
  rt->pool->forEach(d->batch * d->key_heads * chunks, 1, [&](int64_t unit, int thread) {
    int64_t columns = unit / chunks, chunk = unit % chunks, columnBatch = columns / d->key_heads;
    int64_t first = blocks * chunk / chunks * DSOPT_ATTENTION_GRAD_COLUMNS;
    int64_t last = std::min(blocks * (chunk + 1) / chunks * DSOPT_ATTENTION_GRAD_COLUMNS, d->columns);
    int64_t batch = dsopt_attention_rows_of(d, columnBatch);
    auto from = [&](const float *previous, int64_t width) {
      return previous ? previous + columns * d->columns * width : nullptr;
    };
    AttentionSums parts{from(k_previous, d->depth), from(v_previous, d->width), nullptr, nullptr};
    float *keys = kept + thread * shared, *values = keys + d->columns * d->depth;
    // Heads that read the same columns add to them one after the other.
    for (int64_t reader = 0; reader < readers; ++reader) {
      int64_t head = columns % d->key_heads * readers + reader, pair = batch * d->heads + head;
      parts.kTo = reader + 1 < readers ? keys : nullptr;
      parts.vTo = reader + 1 < readers ? values : nullptr;
      float *result = sums + (chunks > 1 ? pair * chunks + chunk : thread) * sum;
      kernelsOf(*d).backward(*d, tensors, batch, head, first, last, parts, result, scratch + thread * size);
      if (chunks == 1)
        kernelsOf(*d).store(*d, tensors, batch, head, 0, d->rows, result, 1, sum);
      parts.kFrom = keys;
      parts.vFrom = values;
    }
  });
  if (chunks == 1)
    return;
  int64_t parts = (d->rows + DSOPT_ATTENTION_ROWS - 1) / DSOPT_ATTENTION_ROWS;
  rt->pool->forEach(pairs * parts, 1, [&](int64_t unit, int) {
    int64_t pair = unit / parts, first = unit % parts * DSOPT_ATTENTION_ROWS;
    kernelsOf(*d).store(*d, tensors, pair / d->heads, pair % d->heads, first,
                        std::min<int64_t>(first + DSOPT_ATTENTION_ROWS, d->rows), sums + pair * chunks * sum,
                        chunks, sum);
  });
}
