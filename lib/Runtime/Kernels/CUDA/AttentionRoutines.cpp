//===- AttentionRoutines.cpp - attention and its gradient ------------------===//

#include "Kernels/CUDA/Grids.h"
#include "Kernels/CUDA/Routines.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

static constexpr int64_t kThreads = 256, kTile = 64;

/// The name of a kernel whose blocks have one or two times 64 columns of a result that is so wide.
static std::string named(const char *name, const dsopt_attention &d, int64_t width) {
  return std::string(name) + (d.type == DSOPT_BF16 ? "_bf16" : "_f32") + (width > kTile ? "_2" : "_1");
}

/// Blocks for `size` rows or columns, and results that are so wide.
static int64_t blocksOf(const dsopt_attention &d, int64_t size, int64_t width) {
  return d.batch * d.heads * blocksFor(size, kTile) * blocksFor(width, width > kTile ? 2 * kTile : kTile);
}

void attention(Device &device, StreamHandle stream, const dsopt_attention &d, const void *q, const void *k,
               const void *v, const void *mask, void *out, float *lse) {
  launchBlocks(device, stream, named("dsopt_attention", d, d.width), blocksOf(d, d.rows, d.width), kThreads,
               d, q, k, v, mask, out, lse);
}

void attentionGrad(Device &device, StreamHandle stream, const dsopt_attention &d, const void *q,
                   const void *k, const void *v, const void *mask, const void *out, const float *lse,
                   const void *grad, void *qGrad, void *kGrad, void *vGrad, void *workspace) {
  auto *dots = static_cast<float *>(workspace);
  launchBlocks(device, stream,
               d.type == DSOPT_BF16 ? "dsopt_attention_dots_bf16" : "dsopt_attention_dots_f32",
               blocksFor(d.batch * d.heads * d.rows, kThreads / 32), kThreads, d, out, grad, dots);
  launchBlocks(device, stream, named("dsopt_attention_rows", d, d.depth), blocksOf(d, d.rows, d.depth),
               kThreads, d, q, k, v, mask, lse, dots, grad, qGrad);
  int64_t width = std::max(d.depth, d.width);
  launchBlocks(device, stream, named("dsopt_attention_columns", d, width), blocksOf(d, d.columns, width),
               kThreads, d, q, k, v, mask, lse, dots, grad, kGrad, vGrad);
}

} // namespace dsopt::runtime::cuda
