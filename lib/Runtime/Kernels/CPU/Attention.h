//===- Attention.h - units of attention's work ------------------*- C++ -*-===//
//
// What the entry points (Attention.cpp) ask of the code that is compiled once
// for each instruction set (AttentionTiles.inc).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H

#include "dsopt/Runtime/ABI.h"

namespace dsopt::runtime {

/// The tensors of one call; those of the gradient are null forward.
struct AttentionTensors {
  const void *q, *k, *v, *mask;
  void *out;
  float *lse;
  const void *grad;
  void *qGrad, *kGrad, *vGrad;
};

/// The routines of one instruction set.
struct AttentionKernels {
  /// Rows [first, last) of one batch entry and head; `first` is a multiple of the block.
  void (*forward)(const dsopt_attention &d, const AttentionTensors &t, int64_t batch, int64_t head,
                  int64_t first, int64_t last, float *scratch);
  /// What columns [first, last) of one batch entry and head contribute: their gradients of k and v are
  /// stored, that of q is left in `sum` (rows x padded depth).
  void (*backward)(const dsopt_attention &d, const AttentionTensors &t, int64_t batch, int64_t head,
                   int64_t first, int64_t last, float *sum, float *scratch);
  /// Stores rows [first, last) of q's gradient: `count` sums, `stride` floats apart, added in order.
  void (*store)(const dsopt_attention &d, const AttentionTensors &t, int64_t batch, int64_t head,
                int64_t first, int64_t last, float *sums, int64_t count, int64_t stride);
};

extern const AttentionKernels kAttentionBaseline;
#ifdef __x86_64__
extern const AttentionKernels kAttentionAVX2, kAttentionAVX512;
/// For tensors in bf16 alone.
extern const AttentionKernels kAttentionAVX512BF16;
#endif

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H
