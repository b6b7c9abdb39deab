//===- DeviceWorkspaces.h - scratch of a device's routines ------*- C -*-===//
//
// The bytes of scratch that the dsopt_rt_* routines take where buffers are a device's. As
// those of ABI.h, both sides include them: the compiler plans the workspaces, the runtime
// cuts them. A scatter (dsopt_rt_scatter) takes none.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_DEVICEWORKSPACES_H
#define DSOPT_RUNTIME_DEVICEWORKSPACES_H

#include "dsopt/Runtime/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Whether sums of a contraction are made in chunks of DSOPT_GEMM_CHUNK, in order.
static inline int dsopt_device_product_has_chunks(int64_t contraction, int64_t type_ab) {
  return type_ab != DSOPT_F64 && contraction >= 2 * DSOPT_GEMM_CHUNK;
}

/// Whether elements have 16 bits.
static inline int dsopt_device_is_narrow(int64_t type) { return type == DSOPT_BF16 || type == DSOPT_F16; }

/// Rows of such sums that are rounded to 16 bits together, lines of `leading` elements: 32 MiB of them, but
/// 256 rows at least.
static inline int64_t dsopt_device_product_rows(int64_t leading) {
  int64_t most = (INT64_C(1) << 23) / leading / 256 * 256;
  return most < 256 ? 256 : most;
}

/// The sums of a product or part whose rows begin `leading` elements apart; `contraction` is the whole's.
/// At a multiple of 64 bytes.
static inline int64_t dsopt_device_product_workspace(int64_t rows, int64_t leading, int64_t contraction,
                                                     int64_t type_c) {
  if (!dsopt_device_is_narrow(type_c) || !dsopt_device_product_has_chunks(contraction, type_c))
    return 0;
  int64_t most = dsopt_device_product_rows(leading);
  return (rows < most ? rows : most) * leading * 4;
}

/// Forward takes none; backward keeps the product of the result and its gradient, a float a row.
static inline int64_t dsopt_device_attention_workspace(const dsopt_attention *d, int backward) {
  return backward ? d->batch * d->heads * d->rows * 4 : 0;
}

/// Floats between rows of logits: rows begin at multiples of 128 bytes, also as gradients of 16 bits.
static inline int64_t dsopt_device_linear_nll_stride(int64_t classes) { return (classes + 31) / 32 * 32; }

/// Rows whose logits exist at a time: 256 MiB of them, but 512 rows at least, since each such tile adds to
/// the whole gradient of the weight.
static inline int64_t dsopt_device_linear_nll_chunk(int64_t rows, int64_t classes) {
  int64_t most = (INT64_C(1) << 26) / dsopt_device_linear_nll_stride(classes);
  if (most < 512)
    most = 512;
  if (rows <= most)
    return rows;
  int64_t count = (rows + most - 1) / most;
  return ((rows + count - 1) / count + 63) / 64 * 64;
}

/// Of a tile of rows: the logits' bytes, behind which its products have their workspace.
static inline int64_t dsopt_device_linear_nll_logits(const dsopt_linear_nll *d) {
  return dsopt_device_linear_nll_chunk(d->rows, d->classes) * dsopt_device_linear_nll_stride(d->classes) * 4;
}

/// The logits of a tile of rows, and the sums of those gradients that are rounded: by classes that of x, by
/// rows that of the weight.
static inline int64_t dsopt_device_linear_nll_workspace(const dsopt_linear_nll *d) {
  int64_t rows = dsopt_device_linear_nll_chunk(d->rows, d->classes);
  int64_t ofX = dsopt_device_product_workspace(rows, d->depth, d->classes, d->type);
  int64_t ofWeight =
      dsopt_device_product_workspace(d->transpose_b ? d->classes : d->depth,
                                     d->transpose_b ? d->depth : d->classes, rows, d->type_weight_grad);
  return dsopt_device_linear_nll_logits(d) + (ofX > ofWeight ? ofX : ofWeight);
}

/// Indices that a block sorts at a time, and values of a digit that they are sorted by.
enum { DSOPT_DEVICE_SORT_TILE = 2048, DSOPT_DEVICE_SORT_DIGITS = 256 };

/// The rows in the order of where they go: two lists of them, and counts by tile and digit.
static inline int64_t dsopt_device_scatter_add_workspace(const dsopt_scatter_add *d) {
  int64_t tiles = (d->count + DSOPT_DEVICE_SORT_TILE - 1) / DSOPT_DEVICE_SORT_TILE;
  return d->count * 16 + tiles * DSOPT_DEVICE_SORT_DIGITS * 8;
}

/// As on the host: the states of each sample, in double.
static inline int64_t dsopt_device_ctc_workspace(const dsopt_ctc *d, int64_t is_gradient) {
  return dsopt_ctc_workspace(d, is_gradient);
}

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_DEVICEWORKSPACES_H
