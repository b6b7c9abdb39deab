// What a product's kernel has to give, bit for bit: runs of 1024 elements of the contraction, each a chain
// from 0.
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

void reference(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t turns_a,
               int64_t turns_b, const float *a, const float *b, const float *addend, const float *bias,
               float *c, int64_t accumulate) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float *to = c + i * ldc + j, total = 0;
      for (int64_t begin = 0; begin < k; begin += 1024) {
        float sum = 0;
        for (int64_t l = begin; l < k && l < begin + 1024; ++l)
          sum = fmaf(a[turns_a ? l * lda + i : i * lda + l], b[turns_b ? j * ldb + l : l * ldb + j], sum);
        if (begin)
          total += sum;
        else
          total = addend ? addend[i * ldc + j] + sum : accumulate ? *to + sum : sum;
      }
      *to = bias ? total + bias[j] : total;
    }
}

// The same of 16 bits; a result of them is rounded once.
static float load(const uint16_t *value, int64_t is_half) {
  if (is_half) {
    _Float16 half;
    memcpy(&half, value, 2);
    return half;
  }
  uint32_t bits = (uint32_t)*value << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
static uint16_t narrow(float value, int64_t is_half) {
  uint32_t bits;
  if (is_half) {
    _Float16 half = (_Float16)value;
    uint16_t result;
    memcpy(&result, &half, 2);
    return result;
  }
  memcpy(&bits, &value, 4);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// What an instruction adds to a sum: one element in fp32, two of bf16 with AVX-512, with AMX 32 (fewer at
/// the end), the even ones and the odd ones in a chain from 0 each (Intel's manual, TDPBF16PS).
static float multiply(float sum, int64_t count, const uint16_t *a, const uint16_t *b, int64_t is_half,
                      int64_t link) {
  if (link == 1)
    return fmaf(load(a, is_half), load(b, is_half), sum);
  if (link == 32) {
    float even = 0, odd = 0;
    for (int64_t l = 0; l < count; l += 2) {
      even = fmaf(load(a + l, 0), load(b + l, 0), even);
      odd = fmaf(load(a + l + 1, 0), load(b + l + 1, 0), odd);
    }
    return sum + (even + odd);
  }
#ifdef __AVX512BF16__
  int pairs[2];
  memcpy(pairs, a, 4);
  memcpy(pairs + 1, b, 4);
  return _mm_cvtss_f32(_mm_dpbf16_ps(_mm_set_ss(sum), (__m128bh)_mm_cvtsi32_si128(pairs[0]),
                                     (__m128bh)_mm_cvtsi32_si128(pairs[1])));
#endif
  return NAN;
}

void reference_narrow(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t turns_a,
                      int64_t turns_b, const uint16_t *a, const uint16_t *b, const float *addend,
                      const uint16_t *bias, void *c, int64_t accumulate, int64_t is_narrow, int64_t is_half,
                      int64_t link) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float *wide = (float *)c + i * ldc + j, total = 0;
      uint16_t *rounded = (uint16_t *)c + i * ldc + j;
      float before = !accumulate ? 0 : is_narrow ? load(rounded, is_half) : *wide;
      for (int64_t begin = 0; begin < k; begin += 1024) {
        float sum = 0;
        for (int64_t l = begin; l < k && l < begin + 1024; l += link) {
          uint16_t row[32] = {0}, column[32] = {0};
          int64_t count = k - l < link ? k - l : link;
          for (int64_t e = 0; e < count; ++e) {
            row[e] = a[turns_a ? (l + e) * lda + i : i * lda + l + e];
            column[e] = b[turns_b ? j * ldb + l + e : (l + e) * ldb + j];
          }
          sum = multiply(sum, count, row, column, is_half, link);
        }
        if (begin)
          total += sum;
        else
          total = addend ? addend[i * ldc + j] + sum : accumulate && !is_narrow ? before + sum : sum;
      }
      if (bias)
        total += load(bias + j, is_half);
      if (!is_narrow)
        *wide = total;
      else
        *rounded = narrow(accumulate ? before + total : total, is_half);
    }
}
