//===- GemmTest.cpp - products: right, and the same with any threads -------===//

#include "RandomNumbers.h"

#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace dsopt::runtime;

struct Shape {
  int64_t batch, m, n, k;
};

/// A product of contiguous matrices.
static dsopt_gemm contiguous(Shape s, int64_t ta, int64_t tb) {
  dsopt_gemm p = {s.m,       s.n, s.k, ta, tb, ta ? s.m : s.k, tb ? s.k : s.n, s.n, DSOPT_F32,
                  DSOPT_F32, {},  {},  {}, {}};
  int64_t batch[] = {1, 1, 1, s.batch};
  std::copy(batch, batch + DSOPT_BATCH_RANK, p.batch);
  p.stride_a[3] = s.m * s.k;
  p.stride_b[3] = s.k * s.n;
  p.stride_c[3] = s.m * s.n;
  return p;
}

TEST(Gemm, TilesDependOnShapeAlone) {
  GemmTiles tiles = gemmTiles(1, 2048, 2048, 512);
  EXPECT_EQ(tiles.tile, 512);
  EXPECT_EQ(tiles.chunk, 0);
  tiles = gemmTiles(1, 1024, 512, 4095); // 2 tiles of 512, 8 of 256
  EXPECT_EQ(tiles.tile, 256);
  EXPECT_EQ(tiles.chunk, 0);
  tiles = gemmTiles(1, 64, 64, 8192);
  EXPECT_EQ(tiles.tile, 256);
  EXPECT_EQ(tiles.chunk, 2048);
  tiles = gemmTiles(8, 64, 64, 8192);
  EXPECT_EQ(tiles.tile, 512);
  EXPECT_EQ(tiles.chunk, 2048);
}

TEST(Gemm, RightAndSameBitsWithAnyThreads) {
  for (Shape s :
       {Shape{1, 5, 7, 3}, Shape{3, 33, 20, 17}, Shape{1, 600, 300, 40}, Shape{1, 1030, 520, 64},
        Shape{1, 64, 64, 8192}, Shape{1, 1, 257, 100}, Shape{16, 32, 32, 16}, Shape{1, 96, 1, 5000}})
    for (int transposes = 0; transposes < 4; ++transposes) {
      int ta = transposes & 1, tb = transposes >> 1;
      dsopt_gemm product = contiguous(s, ta, tb);
      std::vector<float> a = randomNumbers(s.batch * s.m * s.k, 1), b = randomNumbers(s.batch * s.k * s.n, 2);
      std::vector<float> start = randomNumbers(s.batch * s.m * s.n, 3), first, firstAdded;
      for (int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads, 0, prepareThread);
        dsopt_rt rt;
        rt.pool = &pool;
        std::vector<float> c(start.size(), NAN), added = start;
        dsopt_rt_gemm(&rt, &product, a.data(), b.data(), c.data(), nullptr, 0);
        dsopt_rt_gemm(&rt, &product, a.data(), b.data(), added.data(), nullptr, 1);
        if (first.empty()) {
          first = c;
          firstAdded = added;
          for (int64_t item = 0; item < s.batch; ++item)
            for (int64_t i = 0; i < s.m; i += 13)
              for (int64_t j = 0; j < s.n; j += 11) {
                double sum = 0;
                for (int64_t l = 0; l < s.k; ++l)
                  sum += static_cast<double>(a[item * s.m * s.k + (ta ? l * s.m + i : i * s.k + l)]) *
                         b[item * s.k * s.n + (tb ? j * s.k + l : l * s.n + j)];
                int64_t at = (item * s.m + i) * s.n + j;
                ASSERT_NEAR(c[at], sum, 1e-4 * std::sqrt(s.k));
                ASSERT_NEAR(added[at], start[at] + sum, 1e-4 * std::sqrt(s.k));
              }
        }
        ASSERT_EQ(c, first) << s.m << "x" << s.n << "x" << s.k << " with " << threads << " threads";
        ASSERT_EQ(added, firstAdded);
      }
    }
}

/// Elements of a matrix of one type in the library's narrow or wide form.
static std::vector<char> bytesOf(const std::vector<float> &values, bool narrow) {
  std::vector<char> bytes(values.size() * (narrow ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i)
    if (narrow)
      reinterpret_cast<uint16_t *>(bytes.data())[i] = roundToBf16(values[i]);
    else
      reinterpret_cast<float *>(bytes.data())[i] = values[i];
  return bytes;
}

/// Computes a product in parts along dimension `cut` (0: m, 1: n, 2: k) of `most` elements.
static std::vector<char> inParts(dsopt_rt &rt, const dsopt_gemm &whole, int cut, int64_t most,
                                 const std::vector<char> &a, const std::vector<char> &b) {
  int64_t extents[] = {whole.m, whole.n, whole.k}, size = whole.type_ab == DSOPT_BF16 ? 2 : 4;
  int64_t resultSize = whole.type_c == DSOPT_BF16 ? 2 : 4;
  std::vector<char> c(whole.m * whole.n * resultSize);
  std::vector<float> sum, before;
  for (int64_t first = 0; first < extents[cut]; first += most) {
    int64_t count = std::min(most, extents[cut] - first);
    dsopt_gemm_part part = {whole, whole.m, whole.n, whole.k};
    dsopt_gemm &p = part.product;
    (cut == 0 ? p.m : cut == 1 ? p.n : p.k) = count;
    int64_t atA = cut == 0   ? first * (whole.transpose_a ? 1 : whole.lda)
                  : cut == 2 ? first * (whole.transpose_a ? whole.lda : 1)
                             : 0;
    int64_t atB = cut == 1   ? first * (whole.transpose_b ? whole.ldb : 1)
                  : cut == 2 ? first * (whole.transpose_b ? 1 : whole.ldb)
                             : 0;
    const char *ofA = a.data() + atA * size, *ofB = b.data() + atB * size;
    if (cut == 2) {
      bool last = first + count == extents[cut];
      before = sum;
      sum.assign(whole.m * whole.n, NAN);
      p.type_c = last ? whole.type_c : DSOPT_F32;
      void *to = last ? static_cast<void *>(c.data()) : sum.data();
      dsopt_rt_gemm_part(&rt, &part, ofA, ofB, before.empty() ? nullptr : before.data(), to, nullptr, 0);
    } else {
      p.ldc = cut == 0 ? whole.ldc : count + (whole.ldc - count) % DSOPT_GEMM_ALIGNMENT;
      std::vector<char> some(p.m * p.ldc * resultSize);
      dsopt_rt_gemm_part(&rt, &part, ofA, ofB, nullptr, some.data(), nullptr, 0);
      for (int64_t row = 0; row < p.m; ++row)
        std::copy_n(some.data() + row * p.ldc * resultSize, p.n * resultSize,
                    c.data() +
                        ((cut == 0 ? first + row : row) * whole.ldc + (cut == 1 ? first : 0)) * resultSize);
    }
  }
  return c;
}

TEST(Gemm, PartsHaveTheBitsOfTheWhole) {
  ThreadPool pool(3, 0, prepareThread);
  dsopt_rt rt;
  rt.pool = &pool;
  const int64_t others[][2] = {{2, 33}, {16, 256}, {300, 120}};
  for (int64_t extent : {4608, 8193})
    for (auto [first, second] : others)
      for (int cut = 0; cut < 3; ++cut)
        for (int mode = 0; mode < 16; ++mode) {
          bool narrow = mode >> 2 & 1, rounds = mode >> 3;
          if (rounds && !narrow)
            continue;
          Shape s = cut == 0   ? Shape{1, extent, first, second}
                    : cut == 1 ? Shape{1, first, extent, second}
                               : Shape{1, first, second, extent};
          dsopt_gemm product = contiguous(s, mode & 1, mode >> 1 & 1);
          product.type_ab = narrow ? DSOPT_BF16 : DSOPT_F32;
          product.type_c = rounds ? DSOPT_BF16 : DSOPT_F32;
          std::vector<char> a = bytesOf(randomNumbers(s.m * s.k, 1), narrow),
                            b = bytesOf(randomNumbers(s.k * s.n, 2), narrow), c(s.m * s.n * (rounds ? 2 : 4));
          dsopt_rt_gemm(&rt, &product, a.data(), b.data(), c.data(), nullptr, 0);
          ASSERT_TRUE(inParts(rt, product, cut, DSOPT_GEMM_CHUNK, a, b) == c)
              << s.m << "x" << s.n << "x" << s.k << " cut along " << cut << ", mode " << mode;
        }
}

static void bf16RightAndSameBits() {
  for (Shape s :
       {Shape{1, 1, 1, 1}, Shape{1, 15, 17, 1023}, Shape{3, 17, 15, 1}, Shape{1, 1023, 17, 15},
        Shape{1, 15, 1023, 17}, Shape{1, 1030, 520, 64}, Shape{1, 64, 64, 8192}, Shape{16, 32, 32, 16}})
    for (int mode = 0; mode < 12; ++mode) {
      int ta = mode & 1, tb = mode >> 1 & 1;
      // Stored in bf16, added to fp32, added to bf16.
      bool wide = mode >> 2 == 1, accumulates = mode >> 2;
      dsopt_gemm product = contiguous(s, ta, tb);
      product.type_ab = DSOPT_BF16;
      product.type_c = wide ? DSOPT_F32 : DSOPT_BF16;
      auto narrow = [](const std::vector<float> &values) {
        std::vector<uint16_t> result(values.size());
        std::transform(values.begin(), values.end(), result.begin(), roundToBf16);
        return result;
      };
      std::vector<uint16_t> a = narrow(randomNumbers(s.batch * s.m * s.k, 1)),
                            b = narrow(randomNumbers(s.batch * s.k * s.n, 2)), first;
      std::vector<float> start = randomNumbers(s.batch * s.m * s.n, 3), firstWide;
      for (int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads, 0, prepareThread);
        dsopt_rt rt;
        rt.pool = &pool;
        std::vector<uint16_t> c = accumulates ? narrow(start) : std::vector<uint16_t>(start.size(), 0x7fc0);
        std::vector<float> added = start;
        void *result = wide ? static_cast<void *>(added.data()) : c.data();
        dsopt_rt_gemm(&rt, &product, a.data(), b.data(), result, nullptr, accumulates);
        if (threads == 1) {
          first = c;
          firstWide = added;
          for (int64_t item = 0; item < s.batch; ++item)
            for (int64_t i = 0; i < s.m; i += 7)
              for (int64_t j = 0; j < s.n; j += 5) {
                double sum = 0;
                for (int64_t l = 0; l < s.k; ++l)
                  sum += static_cast<double>(
                             bf16ToFloat(a[item * s.m * s.k + (ta ? l * s.m + i : i * s.k + l)])) *
                         bf16ToFloat(b[item * s.k * s.n + (tb ? j * s.k + l : l * s.n + j)]);
                int64_t at = (item * s.m + i) * s.n + j;
                if (accumulates && !wide)
                  sum += bf16ToFloat(roundToBf16(start[at]));
                if (wide)
                  ASSERT_NEAR(added[at], start[at] + sum, 1e-4 * std::sqrt(s.k));
                else
                  ASSERT_NEAR(bf16ToFloat(c[at]), sum, 1e-4 * std::sqrt(s.k) + std::abs(sum) / 256);
              }
        }
        ASSERT_EQ(c, first) << s.m << "x" << s.n << "x" << s.k << " with " << threads << " threads";
        ASSERT_EQ(added, firstWide);
      }
    }
}

TEST(Gemm, Bf16RightAndSameBitsWithAnyThreads) {
  selectProducts({});
  bf16RightAndSameBits();
}

TEST(Gemm, Bf16OfTheLibraryRightAndSameBitsWithAnyThreads) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512bf16"))
    GTEST_SKIP() << "no AVX-512 BF16";
  selectProducts({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"});
  bf16RightAndSameBits();
  selectProducts({});
}

TEST(Gemm, Strides) {
  // Two heads side by side in rows of 3 parts; queries by keys, both parts of one matrix.
  constexpr int64_t batch = 3, rows = 17, size = 5, row = 3 * 2 * size;
  std::vector<float> x = randomNumbers(batch * rows * row, 1), scores(batch * 2 * rows * rows, NAN);
  dsopt_gemm p = {rows, rows, size, 0, 1, row, row, rows, DSOPT_F32, DSOPT_F32, {1, 1, batch, 2}, {}, {}, {}};
  p.stride_a[2] = p.stride_b[2] = rows * row;
  p.stride_a[3] = p.stride_b[3] = size;
  p.stride_c[2] = 2 * rows * rows;
  p.stride_c[3] = rows * rows;
  ThreadPool pool(2, 0, prepareThread);
  dsopt_rt rt;
  rt.pool = &pool;
  dsopt_rt_gemm(&rt, &p, x.data(), x.data() + 2 * size, scores.data(), nullptr, 0);
  for (int64_t item = 0; item < batch; ++item)
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < rows; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < size; ++l)
            sum += static_cast<double>(x[(item * rows + i) * row + head * size + l]) *
                   x[(item * rows + j) * row + (2 + head) * size + l];
          ASSERT_NEAR(scores[((item * 2 + head) * rows + i) * rows + j], sum, 1e-5);
        }
}

TEST(Gemm, F16RightAndSameBitsWithAnyThreads) {
  auto narrow = [](const std::vector<float> &values) {
    std::vector<_Float16> result(values.size());
    convert(values.data(), result.data(), static_cast<int64_t>(values.size()));
    return result;
  };
  for (Shape s : {Shape{1, 1, 1, 1}, Shape{1, 15, 17, 1023}, Shape{1, 1030, 520, 64}, Shape{1, 33, 20, 4100}})
    for (int mode = 0; mode < 8; ++mode) {
      int ta = mode & 1, tb = mode >> 1 & 1;
      bool rounds = mode >> 2;
      dsopt_gemm product = contiguous(s, ta, tb);
      product.type_ab = DSOPT_F16;
      product.type_c = rounds ? DSOPT_F16 : DSOPT_F32;
      std::vector<_Float16> a = narrow(randomNumbers(s.m * s.k, 1)), b = narrow(randomNumbers(s.k * s.n, 2));
      std::vector<float> first;
      for (int threads : {1, 3}) {
        ThreadPool pool(threads, 0, prepareThread);
        dsopt_rt rt;
        rt.pool = &pool;
        std::vector<float> c(s.m * s.n);
        std::vector<_Float16> rounded(c.size());
        dsopt_rt_gemm(&rt, &product, a.data(), b.data(),
                      rounds ? static_cast<void *>(rounded.data()) : c.data(), nullptr, 0);
        if (rounds)
          convert(rounded.data(), c.data(), static_cast<int64_t>(c.size()));
        if (first.empty())
          first = c;
        ASSERT_EQ(c, first);
      }
      for (int64_t i = 0; i < s.m; i += 13)
        for (int64_t j = 0; j < s.n; j += 11) {
          double sum = 0;
          for (int64_t l = 0; l < s.k; ++l)
            sum += static_cast<double>(static_cast<float>(a[ta ? l * s.m + i : i * s.k + l])) *
                   static_cast<float>(b[tb ? j * s.k + l : l * s.n + j]);
          ASSERT_NEAR(first[i * s.n + j], sum, 1e-4 * std::sqrt(s.k) + (rounds ? 1e-3 * std::abs(sum) : 0));
        }
    }
}
