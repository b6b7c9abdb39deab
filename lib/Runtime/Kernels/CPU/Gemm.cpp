//===- Gemm.cpp - matrix products by serial library tiles ------------------===//
//
// DESIGN 2.1 rule 2: libraries do not give equal bits with different numbers of
// threads, so a product is cut here by bounds that depend on its shape alone and
// each tile is one serial call.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.h>

extern "C" void omp_set_num_threads(int);

namespace dsopt::runtime {

void prepareThread() { omp_set_num_threads(1); }

void limitLibraries(const std::vector<std::string> &features) {
  selectAttention(features);
  auto has = [&](std::initializer_list<const char *> names) {
    return std::all_of(names.begin(), names.end(), [&](const char *name) {
      return std::find(features.begin(), features.end(), name) != features.end();
    });
  };
  dnnl_cpu_isa_t isa = has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}) ? dnnl_cpu_isa_avx512_core
                       : has({"avx2", "fma"})                               ? dnnl_cpu_isa_avx2
                       : has({"avx"})                                       ? dnnl_cpu_isa_avx
                                                                            : dnnl_cpu_isa_sse41;
  if (dnnl_set_max_cpu_isa(isa) != dnnl_success && dnnl_get_effective_cpu_isa() != isa)
    throw Error(StatusFailure,
                "oneDNN was used before its instruction set could be limited to the program's");
}

GemmTiles gemmTiles(int64_t batch, int64_t m, int64_t n, int64_t k) {
  GemmTiles tiles;
  auto cut = [&](int64_t tile) {
    tiles.tile = tile;
    tiles.rows = (m + tile - 1) / tile;
    tiles.columns = (n + tile - 1) / tile;
    return batch * tiles.rows * tiles.columns;
  };
  if (cut(512) < 8 && cut(256) < 8 && k >= 4096)
    tiles.chunk = 2048;
  return tiles;
}

/// Products of fewer multiplications run on the caller's thread.
static constexpr int64_t kSmallProduct = 1 << 19;

void multiply(ThreadPool &pool, const dsopt_gemm &p, const void *a, const void *b, void *c, bool accumulate) {
  int64_t batch = 1;
  for (int64_t extent : p.batch)
    batch *= extent;
  GemmTiles tiles = gemmTiles(batch, p.m, p.n, p.k);
  auto body = [&](int64_t index, int) {
    int64_t column = index % tiles.columns, row = index / tiles.columns % tiles.rows;
    int64_t item = index / tiles.columns / tiles.rows;
    int64_t i = row * tiles.tile, j = column * tiles.tile;
    int64_t rows = std::min(tiles.tile, p.m - i), columns = std::min(tiles.tile, p.n - j);
    const float *left = static_cast<const float *>(a), *right = static_cast<const float *>(b);
    float *result = static_cast<float *>(c) + i * p.ldc + j;
    for (int d = DSOPT_BATCH_RANK - 1; d >= 0; item /= p.batch[d--]) {
      int64_t at = item % p.batch[d];
      left += at * p.stride_a[d];
      right += at * p.stride_b[d];
      result += at * p.stride_c[d];
    }
    int64_t step = tiles.chunk ? tiles.chunk : std::max<int64_t>(p.k, 1);
    for (int64_t l = 0; l < p.k; l += step)
      dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', rows, columns, std::min(step, p.k - l),
                 1.0f, left + (p.transpose_a ? l * p.lda + i : i * p.lda + l), p.lda,
                 right + (p.transpose_b ? j * p.ldb + l : l * p.ldb + j), p.ldb,
                 accumulate || l ? 1.0f : 0.0f, result, p.ldc);
  };
  int64_t count = batch * tiles.rows * tiles.columns;
  bool small = batch * p.m * p.n * p.k < kSmallProduct;
  // Many small matrices: some at a time for each thread.
  int64_t together = std::max<int64_t>(1, count / (8 * pool.threads()));
  pool.forEach(count, small ? count : together, body);
}

} // namespace dsopt::runtime

using namespace dsopt::runtime;

extern "C" void dsopt_rt_gemm(dsopt_rt *rt, const dsopt_gemm *product, const void *a, const void *b, void *c,
                              int64_t accumulate) {
  CallTimer timer(rt->profile);
  multiply(*rt->pool, *product, a, b, c, accumulate);
}
