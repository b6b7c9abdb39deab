//===- AttentionReference.h - attention's definition in double --*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONREFERENCE_H
#define DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONREFERENCE_H

#include "dsopt/Runtime/ABI.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace dsopt::runtime::attention {

/// How q, k and v lie in memory.
enum class Layout {
  Separate, ///< [batch, heads, rows, size], one tensor each
  Packed,   ///< [batch, rows, 3, heads, size], for equal sizes
  Heads,    ///< [batch, rows, heads, size]
};

constexpr int kBeginsAt = 2;
struct Case {
  int64_t batch, heads, rows, columns, depth, width;
  int causal = 0; ///< from kBeginsAt on: row t reads columns 0 to t + causal - kBeginsAt
  int mask = -1;  ///< bits: the batch, head, row and column dimensions are whole; -1: no mask
  Layout layout = Layout::Separate;
  int64_t type = DSOPT_F32;
  bool otherMask = false; ///< the mask is of the other type
};

inline int64_t bytesOf(int64_t type) { return type == DSOPT_F32 ? 4 : 2; }

/// Writes a value that is exact in the type, and reads it.
inline void store(uint8_t *to, float value, int64_t type) {
  if (type == DSOPT_F16) {
    auto half = static_cast<_Float16>(value);
    std::memcpy(to, &half, 2);
    return;
  }
  // The first half of a float's bits is a bf16.
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits >>= 32 - 8 * bytesOf(type);
  std::memcpy(to, &bits, bytesOf(type));
}
inline float load(const uint8_t *from, int64_t type) {
  if (type == DSOPT_F16) {
    _Float16 half;
    std::memcpy(&half, from, 2);
    return static_cast<float>(half);
  }
  uint32_t bits = 0;
  std::memcpy(&bits, from, bytesOf(type));
  bits <<= 32 - 8 * bytesOf(type);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline float rounded(float value, int64_t type) {
  uint8_t bytes[4];
  store(bytes, value, type);
  return load(bytes, type);
}

/// A tensor of the case's type whose elements lie where the strides say.
struct Tensor {
  std::vector<float> values; ///< [batch, heads, rows, size], exact in the type
  std::vector<uint8_t> bytes;
  const int64_t *strides = nullptr;
  int64_t rows = 0, size = 0, heads = 0, type = DSOPT_F32, offset = 0;

  int64_t at(int64_t i) const {
    int64_t column = i % size, row = i / size % rows, head = i / size / rows % heads,
            batch = i / size / rows / heads;
    return offset + batch * strides[0] + head * strides[1] + row * strides[2] + column;
  }
  float read(const uint8_t *from, int64_t i) const { return load(from + bytesOf(type) * at(i), type); }
  void write(uint8_t *to, int64_t i, float value) const { store(to + bytesOf(type) * at(i), value, type); }
};

/// Inputs of a case and what must come out.
struct AttentionProblem {
  explicit AttentionProblem(const Case &c) {
    d.batch = c.batch;
    d.heads = c.heads;
    d.rows = c.rows;
    d.columns = c.columns;
    d.depth = c.depth;
    d.width = c.width;
    d.type = d.mask_type = c.type;
    if (c.otherMask)
      d.mask_type = c.type == DSOPT_F32 ? DSOPT_BF16 : DSOPT_F32;
    d.causal = c.causal > 0;
    d.begin = c.causal > 1 ? c.causal - kBeginsAt : c.columns - c.rows;
    d.key_heads = c.heads;
    d.pairs = c.batch * c.heads;
    d.shards = d.entries = 1;
    d.scale = 0.7 / std::sqrt(static_cast<double>(c.depth));
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    auto fill = [&](std::vector<float> &values, int64_t count) {
      values.resize(count);
      for (float &value : values)
        value = rounded(normal(random), c.type);
    };
    auto make = [&](Tensor &tensor, int64_t *strides, int64_t rows, int64_t size, int64_t slot) {
      fill(tensor.values, c.batch * c.heads * rows * size);
      tensor.strides = strides;
      tensor.rows = rows;
      tensor.size = size;
      tensor.heads = c.heads;
      tensor.type = c.type;
      int64_t parts = slot >= 0 && c.layout == Layout::Packed ? 3 : 1;
      tensor.offset = parts == 3 ? slot * c.heads * size : 0;
      bool rowsFirst = c.layout != Layout::Separate;
      strides[0] = parts * c.heads * rows * size;
      strides[1] = rowsFirst ? size : rows * size;
      strides[2] = rowsFirst ? parts * c.heads * size : size;
      tensor.bytes.resize(c.batch * strides[0] * bytesOf(c.type));
      for (size_t i = 0; i < tensor.values.size(); ++i)
        tensor.write(tensor.bytes.data(), i, tensor.values[i]);
    };
    make(q, d.q, c.rows, c.depth, 0);
    make(k, d.k, c.columns, c.depth, 1);
    make(v, d.v, c.columns, c.width, 2);
    make(out, d.out, c.rows, c.width, -1);
    make(grad, d.grad, c.rows, c.width, -1);
    make(qGrad, d.q_grad, c.rows, c.depth, 0);
    make(kGrad, d.k_grad, c.columns, c.depth, 1);
    make(vGrad, d.v_grad, c.columns, c.width, 2);
    if (c.mask >= 0) {
      int64_t extents[] = {c.batch, c.heads, c.rows, c.columns}, count = 1;
      for (int i = 3; i >= 0; --i)
        if (c.mask >> (3 - i) & 1) {
          d.mask[i] = count;
          count *= extents[i];
        }
      mask.resize(count);
      for (float &value : mask)
        value = rounded(normal(random), d.mask_type);
      // Some columns are not read at all.
      if (c.mask & 8)
        for (int64_t i = 0; i < count; i += 3)
          mask[i] = -INFINITY;
      maskBytes.resize(count * bytesOf(d.mask_type));
      for (int64_t i = 0; i < count; ++i)
        store(maskBytes.data() + i * bytesOf(d.mask_type), mask[i], d.mask_type);
    }
    compute();
  }

  /// The definition.
  void compute() {
    wantOut.assign(out.values.size(), 0);
    wantQ.assign(q.values.size(), 0);
    wantK.assign(k.values.size(), 0);
    wantV.assign(v.values.size(), 0);
    wantLse.assign(d.batch * d.heads * d.rows, 0);
    std::vector<double> p(d.columns), dp(d.columns);
    for (int64_t pair = 0; pair < d.batch * d.heads; ++pair)
      for (int64_t i = 0; i < d.rows; ++i) {
        int64_t row = pair * d.rows + i, limit = d.causal ? i + d.begin + 1 : d.columns;
        limit = std::clamp<int64_t>(limit, 0, d.columns);
        double largest = -INFINITY, sum = 0, dot = 0;
        for (int64_t j = 0; j < limit; ++j) {
          double s = 0;
          for (int64_t l = 0; l < d.depth; ++l)
            s += static_cast<double>(q.values[row * d.depth + l]) *
                 k.values[(pair * d.columns + j) * d.depth + l];
          p[j] = s * d.scale;
          if (!mask.empty())
            p[j] +=
                mask[pair / d.heads * d.mask[0] + pair % d.heads * d.mask[1] + i * d.mask[2] + j * d.mask[3]];
          largest = std::max(largest, p[j]);
        }
        for (int64_t j = 0; j < limit; ++j)
          sum += p[j] = std::exp(p[j] - largest);
        wantLse[row] = largest + std::log(sum);
        bool reads = limit > 0 && largest > -INFINITY;
        for (int64_t l = 0; l < d.width; ++l) {
          double o = reads ? 0 : NAN;
          for (int64_t j = 0; j < limit && reads; ++j)
            o += p[j] / sum * v.values[(pair * d.columns + j) * d.width + l];
          wantOut[row * d.width + l] = o;
        }
        for (int64_t j = 0; j < limit && reads; ++j) {
          p[j] /= sum;
          dp[j] = 0;
          for (int64_t l = 0; l < d.width; ++l) {
            double g = grad.values[row * d.width + l];
            dp[j] += g * v.values[(pair * d.columns + j) * d.width + l];
            wantV[(pair * d.columns + j) * d.width + l] += p[j] * g;
          }
          dot += p[j] * dp[j];
        }
        for (int64_t j = 0; j < limit && reads; ++j)
          for (int64_t l = 0; l < d.depth; ++l) {
            double ds = p[j] * (dp[j] - dot) * d.scale;
            wantQ[row * d.depth + l] += ds * k.values[(pair * d.columns + j) * d.depth + l];
            wantK[(pair * d.columns + j) * d.depth + l] += ds * q.values[row * d.depth + l];
          }
      }
  }

  void expectNear(const Tensor &tensor, const std::vector<uint8_t> &bytes, const std::vector<double> &want,
                  const char *what) {
    double largest = 0;
    for (double value : want)
      if (value == value)
        largest = std::max(largest, std::fabs(value));
    double unit = d.type == DSOPT_BF16 ? 1.6e-2 : d.type == DSOPT_F16 ? 2e-3 : 1e-5;
    double tolerance = unit * (largest + 1);
    for (size_t i = 0; i < want.size(); ++i) {
      float got = tensor.read(bytes.data(), i);
      if (want[i] != want[i])
        ASSERT_TRUE(got != got) << what << " " << i;
      else
        ASSERT_NEAR(got, want[i], tolerance) << what << " " << i;
    }
  }

  void expectLse() {
    for (size_t i = 0; i < lse.size(); ++i)
      if (wantLse[i] == -INFINITY || wantLse[i] != wantLse[i])
        ASSERT_EQ(lse[i], -INFINITY);
      else
        ASSERT_NEAR(lse[i], wantLse[i], 1e-5 * (1 + std::fabs(wantLse[i])));
  }

  dsopt_attention d{};
  Tensor q, k, v, out, grad, qGrad, kGrad, vGrad;
  std::vector<float> mask, lse;
  std::vector<uint8_t> maskBytes;
  std::vector<double> wantOut, wantQ, wantK, wantV, wantLse;
};

} // namespace dsopt::runtime::attention

#endif // DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONREFERENCE_H
