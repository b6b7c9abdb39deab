// What a product's kernel has to give, bit for bit: runs of 1024 elements of the contraction, each a chain from 0.
#include <math.h>
#include <stdint.h>

void reference(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t turns_a, int64_t turns_b,
               const float *a, const float *b, const float *addend, const float *bias, float *c, int64_t accumulate) {
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

#ifdef __AVX512BF16__
#include <immintrin.h>
#include <string.h>

// The same of bf16: neighbours along the contraction are one instruction's. A result in bf16 is rounded once.
static float load(const uint16_t *value) {
  uint32_t bits = (uint32_t)*value << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
static uint16_t narrow(float value) {
  __m128bh rounded = _mm_cvtneps_pbh(_mm_set_ss(value));
  uint16_t result;
  memcpy(&result, &rounded, 2);
  return result;
}
static float multiply(float sum, uint16_t a0, uint16_t a1, uint16_t b0, uint16_t b1) {
  __m128i a = _mm_cvtsi32_si128((int)((uint32_t)a1 << 16 | a0)), b = _mm_cvtsi32_si128((int)((uint32_t)b1 << 16 | b0));
  return _mm_cvtss_f32(_mm_dpbf16_ps(_mm_set_ss(sum), (__m128bh)a, (__m128bh)b));
}

void reference_bf16(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t turns_a, int64_t turns_b,
                    const uint16_t *a, const uint16_t *b, const float *addend, const uint16_t *bias, void *c, int64_t accumulate,
                    int64_t is_narrow) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float *wide = (float *)c + i * ldc + j, total = 0;
      uint16_t *rounded = (uint16_t *)c + i * ldc + j;
      float before = !accumulate ? 0 : is_narrow ? load(rounded) : *wide;
      for (int64_t begin = 0; begin < k; begin += 1024) {
        float sum = 0;
        for (int64_t l = begin; l < k && l < begin + 1024; l += 2) {
          uint16_t a0 = a[turns_a ? l * lda + i : i * lda + l], b0 = b[turns_b ? j * ldb + l : l * ldb + j], a1 = 0, b1 = 0;
          if (l + 1 < k) {
            a1 = a[turns_a ? (l + 1) * lda + i : i * lda + l + 1];
            b1 = b[turns_b ? j * ldb + l + 1 : (l + 1) * ldb + j];
          }
          sum = multiply(sum, a0, a1, b0, b1);
        }
        if (begin)
          total += sum;
        else
          total = addend ? addend[i * ldc + j] + sum : accumulate && !is_narrow ? before + sum : sum;
      }
      if (bias)
        total += load(bias + j);
      if (!is_narrow)
        *wide = total;
      else
        *rounded = narrow(accumulate ? before + total : total);
    }
}
#endif
