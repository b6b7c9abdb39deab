//===- ABI.h - what generated code and the runtime call of each other -*- C -*-===//
//
// The C interface between a compiled program (one shared object) and the
// runtime that loads it. The object exports
//   dsopt_program        the program table, JSON text (see Program.h), and
//   dsopt_program_bytes  its length (uint64_t),
//   dsopt_actions, dsopt_actions_bytes   what the positions do, where the table does not say it,
//   dsopt_model, dsopt_model_bytes   the model's protobuf without its parameters,
//   dsopt_texts, dsopt_texts_bytes   of one that generates, if it is known: its packed TokenizerFiles,
//   one function for each segment and each update kernel, named in the table,
//   one symbol for each constant, named in the table,
//   and if it is for a device: dsopt_images, dsopt_images_bytes   the device's code (Program::images), and
//   one dsopt_device_kernel for each kernel; update kernels are no functions then.
// It imports the dsopt_rt_* functions below. No C++ type crosses it.
//
// Threads: a segment is called by the thread that executes the schedule; kernels
// are called by any thread of the pool on disjoint ranges.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ABI_H
#define DSOPT_RUNTIME_ABI_H

#include "dsopt/Runtime/Attention.h"
#include "dsopt/Runtime/Gemm.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Raised with every change of this file, of what it includes, of Convolution.h, or of the program table.
#define DSOPT_ABI_VERSION 26

/// Bytes of the host's memory through which a rank's state goes to checkpoints while steps go on
/// (-save-async), beside what the program's own memories take.
#define DSOPT_SAVE_STAGING (INT64_C(32) << 20)

/// Where the images of a device begin in dsopt_images: at multiples of it.
#define DSOPT_IMAGE_ALIGNMENT INT64_C(64)

/// The calling rank's runtime; opaque to generated code.
typedef struct dsopt_rt dsopt_rt;

/// A kernel over `[begin, end)` of its range. `args` are its inputs, then its
/// outputs, as pointers; an update kernel's last argument is its scalars table.
typedef void (*dsopt_kernel)(int64_t begin, int64_t end, void *const *args);

/// A segment. `buffers` are its arguments, `temp` its scratch. `accumulate` is 0
/// where gradients are stored and 1 where they are added to.
typedef void (*dsopt_segment)(dsopt_rt *rt, void *const *buffers, char *temp, int64_t accumulate);

/// Runs a kernel over `[0, range)`, cut over the rank's threads at multiples of
/// `grain`. Returns when all of it is done.
void dsopt_rt_launch(dsopt_rt *rt, dsopt_kernel kernel, int64_t range, int64_t grain, void *const *args);

/// A kernel of a device, a constant of the program: where a segment of a program for the host names a
/// function, that of a program for a device names one of these. The image's function `name` takes a range's
/// begin and end and then `arguments` pointers. Blocks of `threads` threads do `per_block` elements of the
/// range each, or go on by as many as the grid does at once; its bits do not depend on the grid.
typedef struct dsopt_device_kernel {
  const char *name;
  int64_t arguments, threads, per_block;
} dsopt_device_kernel;

/// As dsopt_rt_launch, of a device's kernel: put behind what the segment has issued.
void dsopt_rt_launch_device(dsopt_rt *rt, const dsopt_device_kernel *kernel, int64_t range,
                            void *const *args);

/// Element types of matrices and gradients; f64 of products alone.
enum { DSOPT_F32 = 0, DSOPT_BF16 = 1, DSOPT_F64 = 2, DSOPT_F16 = 3 };
/// Leading dimensions of a batch at most.
enum { DSOPT_BATCH_RANK = 4 };

/// A batch of matrix products, a constant of the program. `a` holds op(a), an `[m, k]` matrix, as it is or,
/// with `transpose_a`, as `[k, m]`; its rows as stored begin `lda` elements apart; so for `b` (`[k, n]`) and
/// the result `c` (`[m, n]`, not transposed). Matrix (i0, i1, ...) of the batch begins at the sum of
/// `i_d * stride_[d]` elements; unused leading dimensions have extent 1.
typedef struct dsopt_gemm {
  int64_t m, n, k;
  int64_t transpose_a, transpose_b;
  int64_t lda, ldb, ldc;
  int64_t type_ab, type_c;
  int64_t batch[DSOPT_BATCH_RANK];
  int64_t stride_a[DSOPT_BATCH_RANK], stride_b[DSOPT_BATCH_RANK], stride_c[DSOPT_BATCH_RANK];
} dsopt_gemm;

/// `c = (accumulate ? c : 0) + op(a) * op(b)`, with sums in fp32 (of f64 in f64), rounded to c's type once.
/// Cut into tiles by bounds that depend on the product alone (DESIGN 2.1 rule 2). A device's products take a
/// workspace (DeviceWorkspaces.h), the host's none.
void dsopt_rt_gemm(dsopt_rt *rt, const dsopt_gemm *product, const void *a, const void *b, void *c,
                   void *workspace, int64_t accumulate);

/// A part of a product of `m` x `n` x `k`: some of the rows or columns of its result, or of its contraction.
/// It begins at a multiple of DSOPT_GEMM_CHUNK along the dimension that is cut. A result that has but some
/// columns has rows that begin `ldc` elements apart, equal to the whole's modulo DSOPT_GEMM_ALIGNMENT.
typedef struct dsopt_gemm_part {
  dsopt_gemm product;
  int64_t m, n, k;
} dsopt_gemm_part;

/// As dsopt_rt_gemm, with the bits of the whole product: of the rows or columns that the part has; or, where
/// the part has a range of the contraction, of the sums up to its end if `addend` (which lies as `c`; null
/// for none) has them up to its beginning.
void dsopt_rt_gemm_part(dsopt_rt *rt, const dsopt_gemm_part *part, const void *a, const void *b,
                        const float *addend, void *c, void *workspace, int64_t accumulate);

/// A kernel that is compiled for a product, and its range; its arguments are a, b, c and, where it
/// accumulates, an int64_t that is not 0 where it is to add to c. A null kernel: the library computes the
/// product.
typedef struct dsopt_product_kernel {
  dsopt_kernel kernel;
  int64_t range;
} dsopt_product_kernel;

/// A linear layer with its negative log-likelihood, a constant of the program (graph.linear_nll_grad).
typedef struct dsopt_linear_nll {
  int64_t rows, depth, classes;
  int64_t transpose_b; ///< the weight is `[classes, depth]`, else `[depth, classes]`
  int64_t ignore_index;
  int64_t label_bytes; ///< 4 or 8
  int64_t type;        ///< of x, weight, bias and the gradient of x
  int64_t type_weight_grad, type_bias_grad;
} dsopt_linear_nll;

/// Rows whose logits exist at a time: 64 MiB of them, but 256 rows at least, since each such tile adds to
/// the whole gradient of the weight. The workspace holds that many rows of fp32 logits.
static inline int64_t dsopt_linear_nll_chunk(int64_t rows, int64_t classes) {
  int64_t most = (INT64_C(1) << 24) / classes;
  if (most < 256)
    most = 256;
  if (rows <= most)
    return rows;
  int64_t count = (rows + most - 1) / most;
  return ((rows + count - 1) / count + 63) / 64 * 64;
}

/// `losses[i] = lse(logits[i]) - logits[i, labels[i]]` with `logits = x * op(weight) + bias`, and the
/// gradients of x, weight and bias where `grad` is that of `losses`. Rows with the ignored label give 0.
/// `bias` and each gradient may be null; those of weight and bias are added to where asked, rounded once for
/// each tile of rows. `kernels` (null: the library alone) are six: a tile's of logits, gradient of x and,
/// which accumulates, gradient of weight; then those of the last tile if that has fewer rows. A device takes
/// none.
void dsopt_rt_linear_nll(dsopt_rt *rt, const dsopt_linear_nll *loss, const void *x, const void *weight,
                         const void *bias, const void *labels, const float *grad, float *losses, void *x_grad,
                         void *weight_grad, void *bias_grad, void *workspace, int64_t accumulate_weight,
                         int64_t accumulate_bias, const dsopt_product_kernel *kernels);

/// Rows that are added where indices say, a constant of the program.
typedef struct dsopt_scatter_add {
  int64_t count, width; ///< of the rows
  int64_t size;         ///< rows of the result
  int64_t index_bytes;  ///< 4 or 8; negative indices count from the end
  int64_t type_rows, type_result;
  int64_t sums; ///< 1: the result is another gradient, which takes the sum of a row's at once
} dsopt_scatter_add;

/// Bytes of scratch: sums, and a result of less than fp32, need the order of the rows.
static inline int64_t dsopt_scatter_add_workspace(const dsopt_scatter_add *d) {
  return d->type_result == DSOPT_F32 && !d->sums ? 0 : d->count * 8;
}

/// `result[indices[i], :] += rows[i, :]` for i in order; first fills `result` with zeros unless `accumulate`.
/// In 16 bits the rows that go to one place are added in fp32, and their sum is rounded as it is added.
/// With `sums` the result is what adding it to a gradient of its own would give, bit for bit: each of its
/// elements takes one sum, made from zero and rounded to its type, and a zero where no row goes.
/// Up to 2^32 rows.
void dsopt_rt_scatter_add(dsopt_rt *rt, const dsopt_scatter_add *scatter, const void *rows,
                          const void *indices, void *result, void *workspace, int64_t accumulate);

/// How an update is combined with what is there.
enum {
  DSOPT_SCATTER_SET = 0,
  DSOPT_SCATTER_ADD = 1,
  DSOPT_SCATTER_MUL = 2,
  DSOPT_SCATTER_MIN = 3,
  DSOPT_SCATTER_MAX = 4
};

/// A scatter of rows, a constant of the program (graph.scatter).
typedef struct dsopt_scatter {
  int64_t count, width, size; ///< rows of updates, elements of a row, rows of data
  int64_t index_bytes;        ///< 4 or 8
  int64_t element_bytes;      ///< of fp32 (4) or of integers (1, 4 or 8)
  int64_t is_float;
  int64_t mode;
} dsopt_scatter;

/// `result = data`, then for i in order `result[indices[i], :] = combine(result[indices[i], :], updates[i,
/// :])`; negative indices count from the end, one outside changes nothing.
void dsopt_rt_scatter(dsopt_rt *rt, const dsopt_scatter *scatter, const void *data, const void *indices,
                      const void *updates, void *result);

/// Connectionist temporal classification, a constant of the program (graph.ctc): logarithms of probabilities
/// `[frames, batch, classes]`, and targets, for each sample so many or, `concatenated`, so many in all.
typedef struct dsopt_ctc {
  int64_t frames, batch, classes, targets;
  int64_t concatenated, blank;
  int64_t zero_infinity; ///< samples that cannot be written in their frames count nothing
} dsopt_ctc;

/// Bytes of scratch for the losses, or for their gradient.
static inline int64_t dsopt_ctc_workspace(const dsopt_ctc *d, int64_t is_gradient) {
  return d->batch * (2 * d->targets + 1) * (is_gradient ? d->frames + 3 : 2) * 8;
}

/// `losses[n]` of each sample: NaN where lengths or targets are out of range.
void dsopt_rt_ctc(dsopt_rt *rt, const dsopt_ctc *ctc, const float *logs, const int64_t *targets,
                  const int64_t *input_lengths, const int64_t *target_lengths, void *workspace,
                  float *losses);
/// The gradient of `logs` from that of the losses, as PyTorch's: right for what a log_softmax gives.
void dsopt_rt_ctc_grad(dsopt_rt *rt, const dsopt_ctc *ctc, const float *logs, const int64_t *targets,
                       const int64_t *input_lengths, const int64_t *target_lengths, const float *grad,
                       void *workspace, float *gradient);

/// `gradient = (accumulate ? gradient : 0) + value`, where the first is a store, rounded to the gradient's
/// `type`.
void dsopt_rt_accumulate(dsopt_rt *rt, int64_t elements, const float *value, void *gradient, int64_t type,
                         int64_t accumulate);

/// `out = softmax(scale * q k^T + mask) v` for each batch entry and head, and `lse` (fp32, contiguous
/// `[batch, heads, rows]`). `mask` may be null. Where there is `previous` (fp32, contiguous, as `out` is
/// shaped), the result of other columns, and `previous_lse`, the result is of those, too. `workspace` has
/// dsopt_attention_workspace(d, 0) bytes.
void dsopt_rt_attention(dsopt_rt *rt, const dsopt_attention *d, const void *q, const void *k, const void *v,
                        const void *mask, const float *previous, const float *previous_lse, void *out,
                        float *lse, void *workspace);

/// The gradients of q, k and v from that of `out`; `out` and `lse` are what forward returned of all columns.
/// What is not null of `q_previous`, `k_previous` and `v_previous` (fp32, contiguous) is added.
/// `workspace` has dsopt_attention_workspace(d, 1) bytes.
void dsopt_rt_attention_grad(dsopt_rt *rt, const dsopt_attention *d, const void *q, const void *k,
                             const void *v, const void *mask, const void *out, const float *lse,
                             const void *grad, const float *q_previous, const float *k_previous,
                             const float *v_previous, void *q_grad, void *k_grad, void *v_grad,
                             void *workspace);

/// Of rows that are each at a position of the sequence in a slot (-1: of none, the result is 0): k and v are
/// put there in `keys` and `values` (contiguous `[batch, key_heads, columns, depth or width]`), then each row
/// reads its slot up to its own position, as a row of dsopt_rt_attention does. `workspace` has
/// dsopt_attention_workspace(d, 0) bytes.
void dsopt_rt_cached_attention(dsopt_rt *rt, const dsopt_attention *d, const void *q, const void *k,
                               const void *v, const int64_t *slots, const int64_t *positions,
                               const void *mask, void *keys, void *values, void *out, void *workspace);

#ifdef __cplusplus
}
#endif

#endif // DSOPT_RUNTIME_ABI_H
