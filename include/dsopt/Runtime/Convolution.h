//===- Convolution.h - what convolutions are told ---------------*- C -*-===//
//
// The descriptor that generated code hands to dsopt_rt_convolution, the table of the
// algorithms that convolutions take, and the bytes of the workspace that goes with them.
// Both sides of the ABI include this: the compiler chooses and plans, the runtime obeys.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_CONVOLUTION_H
#define DSOPT_RUNTIME_CONVOLUTION_H

#include "dsopt/Runtime/ABI.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What is computed of y = convolution(x, w): y of x and w, the gradient of x of y's and w, or the gradient
/// of w of x and y's.
enum { DSOPT_CONVOLUTION_FORWARD = 0, DSOPT_CONVOLUTION_DATA = 1, DSOPT_CONVOLUTION_WEIGHT = 2 };

/// Dimensions that a window moves over.
enum { DSOPT_CONVOLUTION_RANK = 3 };

/// x is `[batch, channels, size...]`, y `[batch, outputs, count...]` and w `[outputs, channels / groups,
/// kernel...]`, or all three have their second dimension last. The element `o` of y reads the elements
/// `o * stride + k * dilation - pad` of x; as many are padded behind as before. `count` is
/// `(size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1`. A line is an image of one row.
typedef struct dsopt_convolution {
  int64_t kind;
  int64_t algorithm; ///< as dsopt_convolution_algorithm gives it
  int64_t type;      ///< of all three
  int64_t channels_last;
  int64_t rank; ///< of the lists: 2 or 3
  int64_t batch, channels, outputs, groups;
  int64_t size[DSOPT_CONVOLUTION_RANK], count[DSOPT_CONVOLUTION_RANK], kernel[DSOPT_CONVOLUTION_RANK];
  int64_t strides[DSOPT_CONVOLUTION_RANK], dilations[DSOPT_CONVOLUTION_RANK], pads[DSOPT_CONVOLUTION_RANK];
} dsopt_convolution;

static inline int64_t dsopt_convolution_places(const dsopt_convolution *d, const int64_t *extents) {
  int64_t places = 1;
  for (int64_t i = 0; i < d->rank; ++i)
    places *= extents[i];
  return places;
}
static inline int64_t dsopt_convolution_x(const dsopt_convolution *d) {
  return d->batch * d->channels * dsopt_convolution_places(d, d->size);
}
static inline int64_t dsopt_convolution_w(const dsopt_convolution *d) {
  return d->outputs * (d->channels / d->groups) * dsopt_convolution_places(d, d->kernel);
}
static inline int64_t dsopt_convolution_y(const dsopt_convolution *d) {
  return d->batch * d->outputs * dsopt_convolution_places(d, d->count);
}

/// The table's version: of the two functions below.
enum { DSOPT_CONVOLUTION_TABLE = 1 };

/// cuDNN's number of the algorithm, or DSOPT_CONVOLUTION_PRODUCTS where windows and products are better
/// known: the library gives no fp32 sums of bf16 gradients, takes copies with more channels where those of
/// bf16 are no multiples of 8 (up to eight times the input, and more scratch), documents bf16 by groups,
/// dilations and in three dimensions for some devices only, and has no deterministic gradients with
/// dilations in three dimensions. Those that are chosen are deterministic by documentation: none adds by
/// atomics.
enum {
  DSOPT_CONVOLUTION_PRODUCTS = -1,
  DSOPT_CONVOLUTION_IMPLICIT_GEMM = 0,         ///< forward
  DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM = 1, ///< forward, without dilations
  DSOPT_CONVOLUTION_DATA_1 = 1,
  DSOPT_CONVOLUTION_WEIGHT_1 = 1
};
static inline int64_t dsopt_convolution_algorithm(const dsopt_convolution *d) {
  int64_t most = INT64_C(0x7fffffff), dilated = 0;
  int64_t x = dsopt_convolution_x(d), w = dsopt_convolution_w(d), y = dsopt_convolution_y(d);
  if (x < 1 || w < 1 || y < 1 || x > most || w > most || y > most)
    return DSOPT_CONVOLUTION_PRODUCTS;
  for (int64_t i = 0; i < d->rank; ++i)
    dilated |= d->dilations[i] > 1;
  if (d->type == DSOPT_BF16) {
    if (d->kind == DSOPT_CONVOLUTION_WEIGHT || !d->channels_last || d->rank != 2 || d->groups != 1 ||
        dilated || d->channels % 8 || d->outputs % 8)
      return DSOPT_CONVOLUTION_PRODUCTS;
  } else if (d->type != DSOPT_F32 || d->channels_last ||
             (dilated && d->rank == 3 && d->kind != DSOPT_CONVOLUTION_FORWARD)) {
    return DSOPT_CONVOLUTION_PRODUCTS;
  }
  switch (d->kind) {
  case DSOPT_CONVOLUTION_FORWARD:
    return dilated ? DSOPT_CONVOLUTION_IMPLICIT_GEMM : DSOPT_CONVOLUTION_IMPLICIT_PRECOMP_GEMM;
  case DSOPT_CONVOLUTION_DATA:
    return DSOPT_CONVOLUTION_DATA_1;
  default:
    return DSOPT_CONVOLUTION_WEIGHT_1;
  }
}

/// Bytes of scratch, of which the library may ask for fewer: x, w and y in another layout, and 1 MiB of
/// indices.
static inline int64_t dsopt_convolution_workspace(const dsopt_convolution *d) {
  int64_t bytes = d->type == DSOPT_BF16 ? 2 : 4;
  int64_t copies = (dsopt_convolution_x(d) + dsopt_convolution_w(d) + dsopt_convolution_y(d)) * bytes;
  return (copies + 255) / 256 * 256 + (INT64_C(1) << 20);
}

/// A convolution on a device, or one of its gradients: `result = (accumulate ? result : 0) + ...` of `a` and
/// `b`, which are x and w, the gradient of y and w, or x and the gradient of y. The workspace has the bytes
/// of dsopt_convolution_workspace. The host has none: its convolutions are products.
void dsopt_rt_convolution(dsopt_rt *rt, const dsopt_convolution *convolution, const void *a, const void *b,
                          void *result, void *workspace, int64_t accumulate);

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_CONVOLUTION_H
