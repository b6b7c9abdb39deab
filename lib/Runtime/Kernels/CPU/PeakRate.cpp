//===- PeakRate.cpp - what this machine's processors can multiply ----------===//
//
// The limit that a report compares products with: fused multiplications and additions of
// the program's instruction set in as many chains as hide their latency, on registers
// alone, by all of the rank's threads at once.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Fastest.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <vector>
#ifdef __x86_64__
#include <immintrin.h>
#endif

using namespace dsopt::runtime;

namespace {
/// Operations of so many rounds, and the function that does them.
struct Chains {
  void (*run)(int64_t rounds);
  double operations; ///< of a round
};

/// Each begins elsewhere: equal chains would be one.
template <typename Vector, int kCount> struct Sums {
  Sums() {
    for (int i = 0; i < kCount; ++i)
      sums[i] = Vector{} + static_cast<float>(i);
  }
  /// Keeps what is computed from being left out.
  ~Sums() { asm volatile("" : : "m"(sums)); }
  Vector sums[kCount];
};

typedef float Floats4 __attribute__((vector_size(16)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef float Floats16 __attribute__((vector_size(64)));

/// For the instruction set of the function that it is in; the compiler fuses what that can.
template <typename Vector, int kCount> [[gnu::always_inline]] inline void runChains(int64_t rounds) {
  Sums<Vector, kCount> s;
  Vector x = Vector{} + 0.5f, y = Vector{} + 0.25f;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (Vector &sum : s.sums)
      sum = sum * x + y;
  }
}

constexpr int kWideChains = 24, kChains = 12;

#ifdef __x86_64__
__attribute__((target("avx512f"))) void runWide(int64_t rounds) { runChains<Floats16, kWideChains>(rounds); }
__attribute__((target("avx2,fma"))) void runHalf(int64_t rounds) { runChains<Floats8, kChains>(rounds); }
__attribute__((target("avx512f,avx512bf16"))) void runNarrow(int64_t rounds) {
  Sums<Floats16, kWideChains> s;
  auto x = (__m512bh)_mm512_set1_epi32(0);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (Floats16 &sum : s.sums)
      sum = (Floats16)_mm512_dpbf16_ps((__m512)sum, x, x);
  }
}

constexpr int kTileChains = 6;
/// Sums of tiles, of 16 rows of 64 bytes as all eight are.
__attribute__((target("amx-tile,amx-bf16"))) void runTiles(int64_t rounds) {
  struct alignas(64) {
    uint8_t palette = 1, first = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shapes;
  _tile_loadconfig(&shapes); // which zeroes them
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
}
#endif
void runPlain(int64_t rounds) { runChains<Floats4, kChains>(rounds); }

Chains wide = {runPlain, kChains * 4 * 2}, narrow = wide;
} // namespace

void dsopt::runtime::selectPeak(const std::vector<std::string> &features) {
#ifdef __x86_64__
  if (hasAll(features, {"avx512f"}))
    wide = {runWide, kWideChains * 16 * 2};
  else if (hasAll(features, {"avx2", "fma"}))
    wide = {runHalf, kChains * 8 * 2};
  narrow = wide;
  if (hasAll(features, {"avx512f", "avx512bf16"}))
    narrow = {runNarrow, kWideChains * 32 * 2};
  if (hasAll(features, {"amx-tile", "amx-bf16"}))
    narrow = {runTiles, kTileChains * 16 * 16 * 32 * 2};
#endif
}

double dsopt::runtime::measurePeak(ThreadPool &pool, int64_t type) {
  constexpr int64_t kRounds = 200000;
  int64_t threads = pool.threads();
  auto measure = [&](const Chains &chains) {
    double least =
        fastest(8, [&] { pool.split(0, threads, 1, [&](int64_t, int64_t, int) { chains.run(kRounds); }); });
    return chains.operations * kRounds * static_cast<double>(threads) / least;
  };
  double peak = measure(wide);
  // An instruction for bf16 may be slower than to extend it.
  if (type == DSOPT_BF16 && narrow.run != wide.run)
    peak = std::max(peak, measure(narrow));
  return type == DSOPT_F64 ? peak / 2 : peak;
}
