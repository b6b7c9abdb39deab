//===- Gemm.cpp - matrix products by serial library tiles ------------------===//
//
// DESIGN 2.1 rule 2: libraries do not give equal bits with different numbers of
// threads, so a product is cut here by bounds that depend on its shape alone and
// each tile is one serial call.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.h>
#include <type_traits>

extern "C" void omp_set_num_threads(int);

// oneDNN exports it beside dnnl_sgemm, but declares it nowhere.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float alpha, const uint16_t *a, dnnl_dim_t lda,
                                               const uint16_t *b, dnnl_dim_t ldb, float beta, float *c,
                                               dnnl_dim_t ldc);

namespace dsopt::runtime {

void prepareThread() { omp_set_num_threads(1); }

bool hasAll(const std::vector<std::string> &features, std::initializer_list<const char *> names) {
  return std::all_of(names.begin(), names.end(), [&](const char *name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  });
}

/// Whether the library multiplies bf16.
static bool multipliesBf16 = false;

bool extendsOperands(int64_t type) { return type == DSOPT_F16 || (type == DSOPT_BF16 && !multipliesBf16); }

/// Whether the library has kernels for vectors of 512 bits.
static bool isWide(const std::vector<std::string> &features) {
  return hasAll(features, {"avx512f", "avx512bw", "avx512dq", "avx512vl"});
}

void selectProducts(const std::vector<std::string> &features) {
  multipliesBf16 = isWide(features) && hasAll(features, {"avx512bf16"});
}

void limitLibraries(const std::vector<std::string> &features) {
  selectProducts(features);
  selectAttention(features);
  selectPeak(features);
  allowTiles(features);
  auto has = [&](std::initializer_list<const char *> names) { return hasAll(features, names); };
  dnnl_cpu_isa_t isa = multipliesBf16         ? dnnl_cpu_isa_avx512_core_bf16
                       : isWide(features)     ? dnnl_cpu_isa_avx512_core
                       : has({"avx2", "fma"}) ? dnnl_cpu_isa_avx2
                       : has({"avx"})         ? dnnl_cpu_isa_avx
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
  if (cut(512) < 8)
    cut(256);
  if (k >= 2 * DSOPT_GEMM_CHUNK)
    tiles.chunk = DSOPT_GEMM_CHUNK;
  return tiles;
}

static void multiply(const dsopt_gemm &p, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     bool add, float *c, int64_t ldc) {
  dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, p.lda, b, p.ldb,
             add ? 1.0f : 0.0f, c, ldc);
}
static void multiplyPairs(const dsopt_gemm &p, int64_t m, int64_t n, int64_t k, const uint16_t *a,
                          const uint16_t *b, bool add, float *c, int64_t ldc) {
  dnnl_gemm_bf16bf16f32(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, p.lda, b,
                        p.ldb, add ? 1.0f : 0.0f, c, ldc);
}

/// Elements of the contraction that operands are extended for at once; chunks are multiples of it.
static constexpr int64_t kExtended = 512;
static_assert(DSOPT_GEMM_CHUNK % kExtended == 0);

/// What has no products of its own: values are exact in fp32, where they are multiplied, `extended` at a
/// time.
template <typename Element>
static void multiplyExtended(const dsopt_gemm &p, int64_t m, int64_t n, int64_t k, const Element *a,
                             const Element *b, bool add, float *c, int64_t ldc, float *extended) {
  auto extend = [](const Element *from, int64_t ld, int64_t rows, int64_t columns, float *to) {
    for (int64_t row = 0; row < rows; ++row)
      convert(from + row * ld, to + row * columns, columns);
  };
  float *left = extended, *right = extended + dsopt_rt::kTile;
  for (int64_t l = 0; l < k; l += kExtended) {
    int64_t depth = std::min(kExtended, k - l);
    p.transpose_a ? extend(a + l * p.lda, p.lda, depth, m, left) : extend(a + l, p.lda, m, depth, left);
    p.transpose_b ? extend(b + l, p.ldb, n, depth, right) : extend(b + l * p.ldb, p.ldb, depth, n, right);
    dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m, n, depth, 1.0f, left,
               p.transpose_a ? m : depth, right, p.transpose_b ? depth : n, add || l ? 1.0f : 0.0f, c, ldc);
  }
}

/// One result tile: `rows` x `columns` at (i, j) of matrices that begin at `a`, `b` and `c`. The sums go on
/// from those of `addend`, if it is there, which lie as `c` does.
template <typename Element>
static void multiplyTile(const dsopt_gemm &p, const GemmTiles &tiles, int64_t i, int64_t j, const Element *a,
                         const Element *b, const float *addend, void *result, int64_t at, bool accumulate,
                         float *scratch) {
  int64_t rows = std::min(tiles.tile, p.m - i), columns = std::min(tiles.tile, p.n - j);
  at += i * p.ldc + j;
  // Rounded once, when the sum is complete.
  bool rounds = p.type_c != DSOPT_F32;
  float *c = rounds ? scratch : static_cast<float *>(result) + at;
  int64_t ldc = rounds ? columns : p.ldc;
  for (int64_t row = 0; addend && row < rows; ++row)
    std::copy_n(addend + at + row * p.ldc, columns, c + row * ldc);
  bool adds = (accumulate && !rounds) || addend;
  int64_t step = tiles.chunk ? tiles.chunk : std::max<int64_t>(p.k, 1);
  for (int64_t l = 0; l < p.k; l += step) {
    const Element *left = a + (p.transpose_a ? l * p.lda + i : i * p.lda + l),
                  *right = b + (p.transpose_b ? j * p.ldb + l : l * p.ldb + j);
    int64_t depth = std::min(step, p.k - l);
    if constexpr (std::is_same_v<Element, float>)
      multiply(p, rows, columns, depth, left, right, adds || l, c, ldc);
    else if (extendsOperands(p.type_ab))
      multiplyExtended(p, rows, columns, depth, left, right, adds || l, c, ldc, scratch + dsopt_rt::kTile);
    else if constexpr (std::is_same_v<Element, uint16_t>)
      multiplyPairs(p, rows, columns, depth, left, right, adds || l, c, ldc);
  }
  if constexpr (!std::is_same_v<Element, float>) {
    if (!rounds)
      return;
    Element *target = static_cast<Element *>(result) + at;
    for (int64_t row = 0; row < rows; ++row)
      if (accumulate)
        addInto(target + row * p.ldc, scratch + row * columns, columns);
      else
        convert(scratch + row * columns, target + row * p.ldc, columns);
  }
}

/// The same in f64, for models that compute a little in it: no library, each sum in order.
static void multiplyTile(const dsopt_gemm &p, const GemmTiles &tiles, int64_t i, int64_t j, const double *a,
                         const double *b, double *c, bool accumulate) {
  int64_t lastRow = std::min(i + tiles.tile, p.m), lastColumn = std::min(j + tiles.tile, p.n);
  for (int64_t row = i; row < lastRow; ++row) {
    double *to = c + row * p.ldc;
    if (!accumulate)
      std::fill(to + j, to + lastColumn, 0.0);
    for (int64_t l = 0; l < p.k; ++l) {
      double factor = a[p.transpose_a ? l * p.lda + row : row * p.lda + l];
      const double *from = p.transpose_b ? b + l : b + l * p.ldb;
      int64_t step = p.transpose_b ? p.ldb : 1;
      for (int64_t column = j; column < lastColumn; ++column)
        to[column] += factor * from[column * step];
    }
  }
}

/// Products of fewer multiplications run on the caller's thread.
static constexpr int64_t kSmallProduct = 1 << 19;

static int64_t batchOf(const dsopt_gemm &product) {
  int64_t batch = 1;
  for (int64_t extent : product.batch)
    batch *= extent;
  return batch;
}

static void multiply(dsopt_rt &rt, const dsopt_gemm &p, const GemmTiles &tiles, const void *a, const void *b,
                     const float *addend, void *c, bool accumulate) {
  int64_t batch = batchOf(p);
  ThreadPool &pool = *rt.pool;
  rt.prepareTiles(p.type_ab);
  auto body = [&](int64_t index, int thread) {
    int64_t column = index % tiles.columns, row = index / tiles.columns % tiles.rows;
    int64_t item = index / tiles.columns / tiles.rows;
    int64_t atA = 0, atB = 0, atC = 0;
    for (int d = DSOPT_BATCH_RANK - 1; d >= 0; item /= p.batch[d--]) {
      int64_t at = item % p.batch[d];
      atA += at * p.stride_a[d];
      atB += at * p.stride_b[d];
      atC += at * p.stride_c[d];
    }
    int64_t i = row * tiles.tile, j = column * tiles.tile;
    if (p.type_ab == DSOPT_F64)
      multiplyTile(p, tiles, i, j, static_cast<const double *>(a) + atA, static_cast<const double *>(b) + atB,
                   static_cast<double *>(c) + atC, accumulate);
    else if (p.type_ab == DSOPT_BF16)
      multiplyTile(p, tiles, i, j, static_cast<const uint16_t *>(a) + atA,
                   static_cast<const uint16_t *>(b) + atB, addend, c, atC, accumulate, rt.tileOf(thread));
    else if (p.type_ab == DSOPT_F16)
      multiplyTile(p, tiles, i, j, static_cast<const _Float16 *>(a) + atA,
                   static_cast<const _Float16 *>(b) + atB, addend, c, atC, accumulate, rt.tileOf(thread));
    else
      multiplyTile(p, tiles, i, j, static_cast<const float *>(a) + atA, static_cast<const float *>(b) + atB,
                   addend, c, atC, accumulate, rt.tileOf(thread));
  };
  int64_t count = batch * tiles.rows * tiles.columns;
  bool small = batch * p.m * p.n * p.k < kSmallProduct;
  // Many small matrices: some at a time for each thread.
  int64_t together = std::max<int64_t>(1, count / (8 * pool.threads()));
  pool.forEach(count, small ? count : together, body);
}

void multiply(dsopt_rt &rt, const dsopt_gemm &p, const void *a, const void *b, void *c, bool accumulate) {
  multiply(rt, p, gemmTiles(batchOf(p), p.m, p.n, p.k), a, b, nullptr, c, accumulate);
}

void multiply(dsopt_rt &rt, const dsopt_product_kernel &compiled, const dsopt_gemm &p, const void *a,
              const void *b, void *c, bool accumulate) {
  if (!compiled.kernel)
    return multiply(rt, p, a, b, c, accumulate);
  int64_t flag = accumulate;
  void *args[] = {const_cast<void *>(a), const_cast<void *>(b), c, &flag};
  launch(rt, compiled.kernel, compiled.range, /*grain=*/1, args);
}

/// A part's calls of the library are some of the whole's: tiles and chunks begin where the whole's do.
static GemmTiles partTiles(const dsopt_gemm_part &part) {
  const dsopt_gemm &p = part.product;
  GemmTiles tiles = gemmTiles(batchOf(p), part.m, part.n, part.k);
  tiles.rows = (p.m + tiles.tile - 1) / tiles.tile;
  tiles.columns = (p.n + tiles.tile - 1) / tiles.tile;
  return tiles;
}

} // namespace dsopt::runtime

using namespace dsopt::runtime;

extern "C" void dsopt_rt_gemm(dsopt_rt *rt, const dsopt_gemm *product, const void *a, const void *b, void *c,
                              void *workspace, int64_t accumulate) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->gemm(*product, a, b, c, workspace, accumulate);
    return;
  }
  multiply(*rt, *product, a, b, c, accumulate);
}

extern "C" void dsopt_rt_gemm_part(dsopt_rt *rt, const dsopt_gemm_part *part, const void *a, const void *b,
                                   const float *addend, void *c, void *workspace, int64_t accumulate) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->gemmPart(*part, a, b, addend, c, workspace, accumulate);
    return;
  }
  multiply(*rt, part->product, partTiles(*part), a, b, addend, c, accumulate);
}
