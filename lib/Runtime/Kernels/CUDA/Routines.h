//===- Routines.h - the runtime's routines on a CUDA device -----*- C++ -*-===//
//
// Each puts its work on the stream and returns: no allocation, no wait for the device.
// ABI.h says what they compute, DeviceWorkspaces.h how much scratch they take. Pointers
// are the device's. Their bits follow from shapes and types alone. Their kernels
// (RoutineImages.h) have been loaded.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUTINES_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUTINES_H

#include "Kernels/AttentionTensors.h"
#include "Kernels/CUDA/Driver.h"
#include "Kernels/CUDA/SquarePiece.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"

#include <functional>
#include <vector>

namespace dsopt::runtime::cuda {

/// dsopt_rt_accumulate.
void accumulate(Device &device, StreamHandle stream, int64_t elements, const float *value, void *gradient,
                int64_t type, bool accumulates);
/// target[i] += source[i], both of a type.
void addInto(Device &device, StreamHandle stream, void *target, const void *source, int64_t elements,
             int64_t type);
/// Running values take a statistic (f32) of each micro-batch: that of `places[i]` lies `places[i] * bytes`
/// behind `statistics`. In the order of `places`, which is the host's.
void fold(Device &device, StreamHandle stream, float *running, const void *statistics, int64_t bytes,
          int64_t elements, const int64_t *places, int64_t count, double momentum);

/// Sums squares as SquareSums::compute does. `pieces` are the host's, their values the device's; `record` has
/// 21 words: the digits of the sum, then the first parameter that is not finite, or -1. `sums` are the digits
/// of `sumCount` parameters, made anew. Either may be null.
void squareSums(Device &device, StreamHandle stream, const SquarePiece *pieces, int64_t count, int64_t type,
                int64_t *record, int64_t *sums, int64_t sumCount);

/// A table of scalars for elements of one parameter: that of `group`, but for the ratio of norms, which goes
/// by the sums at `places` of each rank's record.
struct TrustTable {
  const float *group;
  float *table;
  const std::vector<int64_t> *places;
  double root;    ///< of the parameter's elements, where a step is as long as its mean square; else 0
  float *numbers; ///< coefficients, which change with the step; null where none are kept
};
/// Writes tables. `records` are those of `ranks` ranks, of `words` words each: at a place the digits of two
/// sums of squares, of the parameter and of its direction, or what lambSums writes. `scratch` has room for
/// two sums. With the host's bits.
void writeTrustTables(Device &device, StreamHandle stream, const TrustTable *tables, int64_t count,
                      const LambRule &rule, const int64_t *records, int64_t ranks, int64_t words,
                      int64_t *scratch);

/// Adds what 1-bit LAMB measures behind the freeze to `sums` of so many, which squareSums has made.
void lambSums(Device &device, StreamHandle stream, const LambPiece *pieces, int64_t count, float eps,
              int64_t *sums, int64_t sumCount);

/// dsopt_rt_scatter_add, with the host's bits.
void scatterAdd(Device &device, StreamHandle stream, const dsopt_scatter_add &scatter, const void *rows,
                const void *indices, void *result, void *workspace, bool accumulates);
/// dsopt_rt_scatter, with the host's bits; `result` may be `data`.
void scatter(Device &device, StreamHandle stream, const dsopt_scatter &scatter, const void *data,
             const void *indices, const void *updates, void *result);

/// Puts a product on the routine's stream: dsopt_rt_gemm.
using Multiply = std::function<void(const dsopt_gemm &product, const void *a, const void *b, void *c,
                                    void *workspace, bool accumulates)>;
/// dsopt_rt_linear_nll. The workspace begins at a multiple of 64 bytes.
void linearNll(Device &device, StreamHandle stream, const Multiply &multiply, const dsopt_linear_nll &loss,
               const void *x, const void *weight, const void *bias, const void *labels, const float *grad,
               float *losses, void *xGrad, void *weightGrad, void *biasGrad, void *workspace,
               bool accumulateWeight, bool accumulateBias);

/// dsopt_rt_attention; takes no scratch.
void attention(Device &device, StreamHandle stream, const dsopt_attention &d,
               const AttentionTensors &tensors);
/// dsopt_rt_attention_grad.
void attentionGrad(Device &device, StreamHandle stream, const dsopt_attention &d,
                   const AttentionTensors &tensors, void *workspace);

/// dsopt_rt_ctc and dsopt_rt_ctc_grad.
void ctc(Device &device, StreamHandle stream, const dsopt_ctc &ctc, const float *logs, const int64_t *targets,
         const int64_t *inputLengths, const int64_t *targetLengths, void *workspace, float *losses);
void ctcGrad(Device &device, StreamHandle stream, const dsopt_ctc &ctc, const float *logs,
             const int64_t *targets, const int64_t *inputLengths, const int64_t *targetLengths,
             const float *grad, void *workspace, float *gradient);

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_ROUTINES_H
