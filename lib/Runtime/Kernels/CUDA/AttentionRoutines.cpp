//===- AttentionRoutines.cpp - attention and its gradient ------------------===//

#include "Kernels/CUDA/Grids.h"
#include "Kernels/CUDA/Routines.h"
#include "dsopt/Runtime/RoutineImages.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

static constexpr int64_t kTile = 64;

namespace {
/// The kernel for a result of `width`, and its grid over `size` rows or columns.
struct Kernel {
  std::string name;
  int64_t blocks, threads;
};

/// `suffix` tells directions apart. Heads of bf16 and f16 that are not too large go through matrix
/// instructions, with all of a result's width in a block; others have one or two times 64 of it.
Kernel kernelFor(const dsopt_attention &d, const char *suffix, int64_t heads, int64_t size, int64_t width) {
  int64_t blocks = d.batch * heads * blocksFor(size, kTile), head = std::max(d.depth, d.width);
  bool isNarrow = d.type != DSOPT_F32;
  if (isNarrow && head <= kMatrixHead)
    return {"dsopt_attention_matrix" + std::string(suffix) + "_" + suffixOf(d.type) +
                (head <= 64 ? "_64" : "_128"),
            blocks, 128};
  int64_t chunks = isNarrow || width > kTile ? 2 : 1;
  return {"dsopt_attention" + std::string(suffix) + "_" + suffixOf(d.type) + "_" + std::to_string(chunks),
          blocks * blocksFor(width, chunks * kTile), 256};
}
} // namespace

void attention(Device &device, StreamHandle stream, const dsopt_attention &d, const AttentionTensors &t) {
  Kernel kernel = kernelFor(d, "", d.heads, d.rows, d.width);
  launchBlocks(device, stream, kernel.name, kernel.blocks, kernel.threads, d, t.q, t.k, t.v, t.mask,
               t.previous, t.previousLse, t.out, t.lse);
}

void attentionGrad(Device &device, StreamHandle stream, const dsopt_attention &d, const AttentionTensors &t,
                   void *workspace) {
  constexpr int64_t kRowsOfDots = 8;
  auto *dots = static_cast<float *>(workspace);
  launchBlocks(device, stream, "dsopt_attention_dots_" + suffixOf(d.type),
               blocksFor(d.batch * d.heads * d.rows, kRowsOfDots), 32 * kRowsOfDots, d,
               static_cast<const void *>(t.out), t.grad, dots);
  Kernel rows = kernelFor(d, "_rows", d.heads, d.rows, d.depth);
  launchBlocks(device, stream, rows.name, rows.blocks, rows.threads, d, t.q, t.k, t.v, t.mask, t.lse, dots,
               t.grad, t.qPrevious, t.qGrad);
  Kernel columns = kernelFor(d, "_columns", d.key_heads, d.columns, std::max(d.depth, d.width));
  launchBlocks(device, stream, columns.name, columns.blocks, columns.threads, d, t.q, t.k, t.v, t.mask, t.lse,
               dots, t.grad, t.kPrevious, t.vPrevious, t.kGrad, t.vGrad);
}

} // namespace dsopt::runtime::cuda
