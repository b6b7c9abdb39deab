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
  int64_t begin;       ///< of the rank whose coordinate along sp is 0
  int64_t step;        ///< begin of each further one, less that of the one before
  int64_t whole_heads; ///< of which `heads` are some, as many or more
  int64_t threads;     ///< that the workspace has room for
  double scale;
  int64_t q[3], k[3], v[3], out[3];
  int64_t grad[3], q_grad[3], k_grad[3], v_grad[3];
  int64_t mask[4];
} dsopt_attention;

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
  int64_t pairs = d->batch * d->whole_heads;
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

/// Bytes of workspace for the threads of the descriptor.
static inline int64_t dsopt_attention_workspace(const dsopt_attention *d, int backward) {
  int64_t floats = d->threads * dsopt_attention_scratch(d, backward), chunks = dsopt_attention_chunks(d);
  if (backward)
    floats += (chunks > 1 ? chunks * d->batch * d->heads : d->threads) * dsopt_attention_sum(d);
  return floats * 4;
}

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_ATTENTION_H
