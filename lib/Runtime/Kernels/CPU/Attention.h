//===- Attention.h - units of attention's work ------------------*- C++ -*-===//
//
// What the entry points (Attention.cpp) ask of the code that is compiled once
// for each instruction set (AttentionTiles.inc).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H

#include "Kernels/AttentionTensors.h"
#include "dsopt/Runtime/ABI.h"

namespace dsopt::runtime {

/// Sums of a batch entry's and a head's gradients of k and v, all its columns: what they begin with (null:
/// nothing) and where they are left (null: they are stored, as gradients are).
struct AttentionSums {
  const float *kFrom, *vFrom;
  float *kTo, *vTo;
};

/// The routines of one instruction set.
struct AttentionKernels {
  /// Rows [first, last) of one batch entry and head; `first` is a multiple of the block. A null lse is not
  /// stored.
  void (*forward)(const dsopt_attention &d, const AttentionTensors &t, int64_t batch, int64_t head,
                  int64_t first, int64_t last, float *scratch);
  /// What columns [first, last) of one batch entry of rows, and one head, contribute: to the gradients of k
  /// and v, as `columns` say, and that of q, which is left in `sum` (rows x padded depth).
  void (*backward)(const dsopt_attention &d, const AttentionTensors &t, int64_t batch, int64_t head,
                   int64_t first, int64_t last, const AttentionSums &columns, float *sum, float *scratch);
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

/// Those of the process's instruction set for a call.
const AttentionKernels &kernelsOf(const dsopt_attention &d);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_ATTENTION_H
