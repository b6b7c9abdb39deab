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

} // namespace dsopt::runtime

using namespace dsopt::runtime;

/// Products of fewer multiplications run on the caller's thread.
static constexpr int64_t kSmallProduct = 1 << 19;

extern "C" void dsopt_rt_gemm_f32(dsopt_rt *rt, int64_t batch, int64_t m, int64_t n, int64_t k,
                                  int transpose_a, int transpose_b, const float *a, const float *b, float *c,
                                  int64_t accumulate) {
  GemmTiles tiles = gemmTiles(batch, m, n, k);
  int64_t lda = transpose_a ? m : k, ldb = transpose_b ? k : n;
  auto body = [&](int64_t index, int) {
    int64_t column = index % tiles.columns, row = index / tiles.columns % tiles.rows;
    int64_t item = index / tiles.columns / tiles.rows;
    int64_t i = row * tiles.tile, j = column * tiles.tile;
    int64_t rows = std::min(tiles.tile, m - i), columns = std::min(tiles.tile, n - j);
    const float *left = a + item * m * k, *right = b + item * k * n;
    float *result = c + item * m * n + i * n + j;
    int64_t step = tiles.chunk ? tiles.chunk : std::max<int64_t>(k, 1);
    for (int64_t l = 0; l < k; l += step) {
      const float *leftTile = left + (transpose_a ? l * m + i : i * k + l);
      const float *rightTile = right + (transpose_b ? j * k + l : l * n + j);
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', rows, columns, std::min(step, k - l), 1.0f,
                 leftTile, lda, rightTile, ldb, accumulate || l ? 1.0f : 0.0f, result, n);
    }
  };
  int64_t count = batch * tiles.rows * tiles.columns;
  bool small = batch * m * n * k < kSmallProduct;
  // Many small matrices: some at a time for each thread.
  int64_t together = std::max<int64_t>(1, count / (8 * rt->pool->threads()));
  rt->pool->forEach(count, small ? count : together, body);
}
