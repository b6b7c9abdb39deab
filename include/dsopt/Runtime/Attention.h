//===- Attention.h - what attention's routines are told ---------*- C -*-===//
//
// The descriptor that generated code hands to dsopt_rt_attention[_grad], and the
// bytes of the workspace that goes with it. Both sides of the ABI include this:
// the compiler plans the workspace, the runtime cuts it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ATTENTION_H
#define DSOPT_RUNTIME_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Sizes and layouts. Strides are in elements, of the batch entry, the head and the row; the last
/// dimension is contiguous (the mask has a stride for it too, 0 where it broadcasts). All fields take
/// 8 bytes, so that a constant array of int64_t can stand for it.
typedef struct dsopt_attention {
  int64_t batch, heads, rows, columns; ///< scores are [batch, heads, rows, columns]
  int64_t depth, width;                ///< last dimensions of q and k, and of v
  int64_t type;        ///< (DSOPT_F32, DSOPT_BF16 or DSOPT_F16) of q, k, v, the result and all gradients
  int64_t mask_type;   ///< of the mask
  int64_t widens;      ///< the host's products of bf16 are of fp32, whatever instructions there are for it
  int64_t causal;      ///< row t reads columns 0 to t + begin
  int64_t begin;       ///< of rows and columns of the first of `shards`
  int64_t row_step;    ///< what each further shard of rows adds to it
  int64_t column_step; ///< what each further shard of columns takes away
  int64_t shards;      ///< of the sequence
  int64_t distance;    ///< places from the shard of columns to that of rows, modulo `shards`
  int64_t entries;     ///< neighbouring shards that batch entries are of, one behind the other
  int64_t group;       ///< ranks along sp that have rows of the same shards; 0: all of them
  int64_t first;       ///< shard that entries begin with: of this rank, and by what runs there
  int64_t key_heads;   ///< of k and v, each of which as many of `heads` read
  int64_t pairs;       ///< of a batch entry and a head: work is cut as for so many
  int64_t partial, q_partial,
      column_partial; ///< the result, and the gradients of q, and of k and v, are fp32
  int64_t threads;    ///< that the workspace has room for
  double scale;
  int64_t q[3], k[3], v[3], out[3];
  int64_t grad[3], q_grad[3], k_grad[3], v_grad[3];
  int64_t mask_shard; ///< stride of the mask from shard to shard, where entries are of several
  int64_t mask[4];
} dsopt_attention;

#ifdef __CUDA__
#define DSOPT_ATTENTION_INLINE static inline __attribute__((device))
#else
#define DSOPT_ATTENTION_INLINE static inline
#endif

/// The shard that a rank's entries begin with.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_first(const dsopt_attention *d, int64_t rank) {
  return d->group ? rank / d->group * d->entries : 0;
}
/// Which of the shards here a batch entry is of.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_shard(const dsopt_attention *d, int64_t entry) {
  return entry / (d->batch / d->entries);
}
/// The batch entry of columns that one of rows reads: those of other ranks' shards lie where the ones that
/// this rank has of the same place lay.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_columns_of(const dsopt_attention *d, int64_t entry) {
  int64_t each = d->batch / d->entries;
  return (entry / each + d->shards - d->distance) % d->entries * each + entry % each;
}
/// The batch entry of rows that reads one of columns.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_rows_of(const dsopt_attention *d, int64_t entry) {
  int64_t each = d->batch / d->entries;
  return (entry / each + d->distance) % d->entries * each + entry % each;
}
/// How many columns before its own number the first row of one of the shards here reads behind.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_begin(const dsopt_attention *d, int64_t shard) {
  int64_t row = d->first + shard;
  return d->begin + row * d->row_step - (row + d->shards - d->distance) % d->shards * d->column_step;
}
/// Where the mask of a batch entry and head begins.
DSOPT_ATTENTION_INLINE int64_t dsopt_attention_mask(const dsopt_attention *d, int64_t entry, int64_t head) {
  int64_t shard = dsopt_attention_shard(d, entry);
  return shard * d->mask_shard + (entry - shard * (d->batch / d->entries)) * d->mask[0] + head * d->mask[1];
}

/// Query rows of a block, columns of a block forward and backward, and blocks of rows forward that read
/// the same packed columns. Part of the kernel table: results depend on the first three.
enum {
  DSOPT_ATTENTION_ROWS = 64,
  DSOPT_ATTENTION_COLUMNS = 256,
  DSOPT_ATTENTION_GRAD_COLUMNS = 64,
  DSOPT_ATTENTION_GROUP = 4,
  /// Backward cuts the columns into chunks where there are fewer (batch, head) pairs.
  DSOPT_ATTENTION_UNITS = 8
};

static inline int64_t dsopt_attention_padded(int64_t size) { return (size + 15) / 16 * 16; }

/// Chunks of columns that backward treats apart, to be added in order.
static inline int64_t dsopt_attention_chunks(const dsopt_attention *d) {
  int64_t pairs = d->pairs;
  int64_t blocks = (d->columns + DSOPT_ATTENTION_GRAD_COLUMNS - 1) / DSOPT_ATTENTION_GRAD_COLUMNS;
  int64_t chunks = pairs ? (DSOPT_ATTENTION_UNITS + pairs - 1) / pairs : 1;
  if (chunks > blocks)
    chunks = blocks;
  return chunks < 1 ? 1 : chunks;
}

/// Floats of a thread's scratch.
static inline int64_t dsopt_attention_scratch(const dsopt_attention *d, int backward) {
  int64_t depth = dsopt_attention_padded(d->depth), width = dsopt_attention_padded(d->width);
  int64_t rows = DSOPT_ATTENTION_ROWS;
  if (backward) {
    int64_t columns = DSOPT_ATTENTION_GRAD_COLUMNS;
    return d->rows * (depth + width) + 3 * columns * (depth + width) + 2 * rows * columns +
           dsopt_attention_padded(d->rows);
  }
  int64_t columns = DSOPT_ATTENTION_COLUMNS, group = DSOPT_ATTENTION_GROUP * rows;
  return (group + 2 * columns) * depth + columns * width + rows * columns + group * (width + 2);
}

/// Floats of one sum of q's gradient.
static inline int64_t dsopt_attention_sum(const dsopt_attention *d) {
  return d->rows * dsopt_attention_padded(d->depth);
}

/// Floats of a thread's sums of the gradients of columns that several heads read.
static inline int64_t dsopt_attention_shared(const dsopt_attention *d) {
  return d->key_heads < d->heads ? d->columns * (d->depth + d->width) : 0;
}

/// Bytes of workspace for the threads of the descriptor.
static inline int64_t dsopt_attention_workspace(const dsopt_attention *d, int backward) {
  int64_t floats = d->threads * dsopt_attention_scratch(d, backward), chunks = dsopt_attention_chunks(d);
  if (backward)
    floats += d->threads * dsopt_attention_shared(d);
  if (backward)
    floats += (chunks > 1 ? chunks * d->batch * d->heads : d->threads) * dsopt_attention_sum(d);
  return floats * 4;
}

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_ATTENTION_H
