//===- LinearNllRoutine.cpp - the loss over a vocabulary, tile by tile -----===//
//
// As on the host: a tile of rows' logits, their losses and gradients in place, and the
// products that lead on. Tiles follow from the shape alone.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CUDA/Grids.h"
#include "Kernels/CUDA/Routines.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

static dsopt_gemm matrixProduct(int64_t m, int64_t n, int64_t k, int64_t type) {
  dsopt_gemm p{};
  p.type_ab = type;
  p.m = m;
  p.n = n;
  p.k = k;
  p.ldc = n;
  std::fill_n(p.batch, DSOPT_BATCH_RANK, 1);
  return p;
}

void linearNll(Device &device, StreamHandle stream, const Multiply &multiply, const dsopt_linear_nll &d,
               const void *x, const void *weight, const void *bias, const void *labels, const float *grad,
               float *losses, void *xGrad, void *weightGrad, void *biasGrad, void *workspace,
               bool accumulateWeight, bool accumulateBias) {
  constexpr int64_t kRowThreads = 512, kColumns = 32, kColumnThreads = 256;
  bool isNarrow = d.type != DSOPT_F32;
  int64_t bytes = isNarrow ? 2 : 4, step = dsopt_device_linear_nll_stride(d.classes);
  int64_t stride = isNarrow ? 2 * step : step; // of a row of gradients
  int64_t chunk = dsopt_device_linear_nll_chunk(d.rows, d.classes);
  auto *logits = static_cast<float *>(workspace);
  void *sums = static_cast<char *>(workspace) + dsopt_device_linear_nll_logits(&d);
  for (int64_t first = 0; first < d.rows; first += chunk) {
    int64_t rows = std::min(chunk, d.rows - first);
    const void *inputs = static_cast<const char *>(x) + first * d.depth * bytes;
    dsopt_gemm p = matrixProduct(rows, d.classes, d.depth, d.type);
    p.lda = d.depth;
    p.transpose_b = d.transpose_b;
    p.ldb = d.transpose_b ? d.depth : d.classes;
    p.ldc = step;
    multiply(p, inputs, weight, logits, sums, false);
    launchBlocks(device, stream, "dsopt_nll_rows_" + suffixOf(d.type), rows, kRowThreads, logits, step,
                 d.classes, bias, static_cast<const char *>(labels) + first * d.label_bytes, d.label_bytes,
                 d.ignore_index, grad + first, losses + first);
    if (xGrad) {
      p = matrixProduct(rows, d.depth, d.classes, d.type);
      p.type_c = d.type;
      p.lda = stride;
      p.transpose_b = !d.transpose_b;
      p.ldb = d.transpose_b ? d.depth : d.classes;
      multiply(p, logits, weight, static_cast<char *>(xGrad) + first * d.depth * bytes, sums, false);
    }
    if (weightGrad) {
      p = d.transpose_b ? matrixProduct(d.classes, d.depth, rows, d.type)
                        : matrixProduct(d.depth, d.classes, rows, d.type);
      p.type_c = d.type_weight_grad;
      p.transpose_a = 1;
      p.lda = d.transpose_b ? stride : d.depth;
      p.ldb = d.transpose_b ? d.depth : stride;
      multiply(p, d.transpose_b ? logits : inputs, d.transpose_b ? inputs : logits, weightGrad, sums,
               first || accumulateWeight);
    }
    if (biasGrad) {
      std::string kernel = "dsopt_nll_columns_" + suffixOf(d.type) + "_" + suffixOf(d.type_bias_grad);
      launchBlocks(device, stream, kernel, blocksFor(d.classes, kColumns), kColumnThreads, logits, stride,
                   rows, d.classes, biasGrad, static_cast<int>(first || accumulateBias));
    }
  }
}

} // namespace dsopt::runtime::cuda
