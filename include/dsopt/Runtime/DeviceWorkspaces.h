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

/// Forward takes none; backward keeps the product of the result and its gradient, a float a row.
static inline int64_t dsopt_device_attention_workspace(const dsopt_attention *d, int backward) {
  return backward ? d->batch * d->heads * d->rows * 4 : 0;
}

/// Floats between rows of logits: rows begin at multiples of 128 bytes, also as bf16 gradients.
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

/// The logits of a tile of rows.
static inline int64_t dsopt_device_linear_nll_workspace(const dsopt_linear_nll *d) {
  return dsopt_device_linear_nll_chunk(d->rows, d->classes) * dsopt_device_linear_nll_stride(d->classes) * 4;
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
