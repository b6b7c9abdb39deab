//===- Sums.cpp - the sums of a product, in one order ---------------------===//
//
// Each element of the result has its sum: elements of the contraction in order, by fused
// multiplications and additions, in groups whose sums are added in order. Where in the
// result it is, and what is computed beside it, changes nothing.
//
//===----------------------------------------------------------------------===//

#include "Machine/Numbers.h"
#include "Objects.h"

#include <algorithm>
#include <cstring>
#include <vector>

// Fused multiplications in all of them: the same bits on every machine.
#if defined(__x86_64__)
#define SOFT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SOFT_CLONES
#endif

namespace softdevice {

/// Elements of a column that are summed at once, and columns.
static constexpr int64_t kRows = 32, kColumns = 4;

/// Sums of `kRows` x `kColumns`: `a` has `kRows` elements for each of the contraction's, `b` `kColumns`.
#define SOFT_SUMS(name, Element, fma)                                                                        \
  SOFT_CLONES static void name(int64_t k, int64_t group, const Element *a, const Element *b,                 \
                               Element *sums) {                                                              \
    Element total[kColumns][kRows] = {};                                                                     \
    for (int64_t begin = 0; begin < k; begin += group) {                                                     \
      int64_t end = std::min(k, begin + group);                                                              \
      Element part[kColumns][kRows] = {};                                                                    \
      for (int64_t l = begin; l < end; ++l)                                                                  \
        for (int64_t j = 0; j < kColumns; ++j)                                                               \
          for (int64_t i = 0; i < kRows; ++i)                                                                \
            part[j][i] = fma(a[l * kRows + i], b[l * kColumns + j], part[j][i]);                             \
      for (int64_t j = 0; j < kColumns; ++j)                                                                 \
        for (int64_t i = 0; i < kRows; ++i)                                                                  \
          total[j][i] += part[j][i];                                                                         \
    }                                                                                                        \
    std::memcpy(sums, total, sizeof(total));                                                                 \
  }
SOFT_SUMS(sumFloats, float, __builtin_fmaf)
SOFT_SUMS(sumDoubles, double, __builtin_fma)

static void sum(int64_t k, int64_t group, const float *a, const float *b, float *sums) {
  sumFloats(k, group, a, b, sums);
}
static void sum(int64_t k, int64_t group, const double *a, const double *b, double *sums) {
  sumDoubles(k, group, a, b, sums);
}

template <class Value> static Value load(const char *place, int64_t at, uint32_t type) {
  if (type == CUDA_R_64F)
    return static_cast<Value>(reinterpret_cast<const double *>(place)[at]);
  if (type == CUDA_R_32F)
    return static_cast<Value>(reinterpret_cast<const float *>(place)[at]);
  uint16_t bits = reinterpret_cast<const uint16_t *>(place)[at];
  return static_cast<Value>(type == CUDA_R_16F ? fromF16(bits) : fromBF16(bits));
}

/// To tf32, which has ten bits behind the point; half of the last one goes up.
static void shorten(float &value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7f800000) != 0x7f800000)
    bits = (bits + 0x1000) & ~0x1fffu;
  std::memcpy(&value, &bits, 4);
}
static void shorten(double &) {}

template <class Value> static void store(char *place, int64_t at, uint32_t type, Value value) {
  if (type == CUDA_R_64F) {
    reinterpret_cast<double *>(place)[at] = static_cast<double>(value);
    return;
  }
  float single = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    reinterpret_cast<float *>(place)[at] = single;
    return;
  }
  reinterpret_cast<uint16_t *>(place)[at] = type == CUDA_R_16F ? toF16(single) : toBF16(single);
}

float loadElement(const char *place, int64_t at, uint32_t type) { return load<float>(place, at, type); }
void storeElement(char *place, int64_t at, uint32_t type, float value) {
  store<float>(place, at, type, value);
}

template <class Value>
static void multiplyAs(const SumShape &s, double alpha, const char *a, const char *b, double beta,
                       const char *c, char *d, const EpiloguePlaces &places) {
  // Blocks of rows of op(A) and of columns of op(B), zeros behind the last.
  auto pack = [&](const char *from, int64_t extent, int64_t block, int64_t step, int64_t next) {
    std::vector<Value> packed((extent + block - 1) / block * block * s.k);
    for (int64_t i = 0; i < extent; ++i)
      for (int64_t l = 0; l < s.k; ++l) {
        Value &to = packed[(i / block * s.k + l) * block + i % block];
        to = load<Value>(from, i * step + l * next, s.typeAB);
        if (s.rounds)
          shorten(to);
      }
    return packed;
  };
  std::vector<Value> packedA = pack(a, s.m, kRows, s.transposeA ? s.lda : 1, s.transposeA ? 1 : s.lda),
                     packedB = pack(b, s.n, kColumns, s.transposeB ? 1 : s.ldb, s.transposeB ? s.ldb : 1);
  Value sums[kColumns * kRows];
  for (int64_t column = 0; column < s.n; column += kColumns)
    for (int64_t row = 0; row < s.m; row += kRows) {
      sum(s.k, s.group, &packedA[row * s.k], &packedB[column * s.k], sums);
      for (int64_t j = column; j < std::min(s.n, column + kColumns); ++j)
        for (int64_t i = row; i < std::min(s.m, row + kRows); ++i) {
          Value value = static_cast<Value>(alpha) * sums[(j - column) * kRows + i - row];
          if (beta != 0)
            value += static_cast<Value>(beta) * load<Value>(c, i + j * s.ldc, s.typeC);
          if (s.epilogue.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
            value = finish(s.epilogue, places, i, j, static_cast<float>(value));
          store(d, i + j * s.ldd, s.typeC, value);
        }
    }
}

void multiply(const SumShape &shape, double alpha, const char *a, const char *b, double beta, const char *c,
              char *d, const EpiloguePlaces &places) {
  if (shape.typeAB == CUDA_R_64F)
    multiplyAs<double>(shape, alpha, a, b, beta, c, d, places);
  else
    multiplyAs<float>(shape, alpha, a, b, beta, c, d, places);
}

} // namespace softdevice
