//===- LinearNll.cpp - the loss over a vocabulary, tile by tile -----------===//
//
// Some rows of the logits at a time: a product, then each row becomes its loss
// and its gradient in place, then the products that lead on. Rows in a tile
// follow from the shape alone.
//
// In 16 bits the gradient is rounded where it stands, in the first half of its row.
// Sums that are kept in them are rounded once a tile: sums in fp32 over all tiles
// would take as much memory as the weight twice over.
//
// Elementwise code has no fused multiplications and sums in 16 lanes whatever
// the instruction set, so that every clone gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Bf16.h"
#include "Kernels/CPU/Clones.h"
#include "Kernels/CPU/Elementwise.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/ABI.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace dsopt::runtime;

namespace {
constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

/// exp(x[i]) for x[i] <= 0: 2^n * 2^r with |r| <= 1/2 by a polynomial (Cephes' expf); 0 below -87.
[[gnu::always_inline]] inline void exponentials(float *x, const Floats &base, Floats &sum) {
  Floats v;
  std::memcpy(&v, x, sizeof(v));
  v = v - base;
  Ints underflow = v < -87.0f;
  Floats n = v * 1.44269504088896341f + 12582912.0f; // rounds to an integer in the low bits
  Ints power;
  std::memcpy(&power, &n, sizeof(n));
  n = n - 12582912.0f;
  v = v - n * 0.693359375f;
  v = v - n * -2.12194440e-4f;
  Floats p = v * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * v + 8.3334519073e-3f;
  p = p * v + 4.1665795894e-2f;
  p = p * v + 1.6666665459e-1f;
  p = p * v + 5.0000001201e-1f;
  p = p * v * v + v + 1.0f;
  power = (power + 127) << 23;
  Floats scale;
  std::memcpy(&scale, &power, sizeof(scale));
  p = underflow ? Floats{} : p * scale;
  sum = sum + p;
  std::memcpy(x, &p, sizeof(p));
}

DSOPT_CLONES void addBias(float *row, const float *bias, int64_t classes) {
  for (int64_t i = 0; i < classes; ++i)
    row[i] = row[i] + bias[i];
}
DSOPT_CLONES void addBias(float *row, const uint16_t *bias, int64_t classes) {
  for (int64_t i = 0; i < classes; ++i)
    row[i] = row[i] + bf16ToFloat(bias[i]);
}
DSOPT_HALF_CLONES void addBias(float *row, const _Float16 *bias, int64_t classes) {
  for (int64_t i = 0; i < classes; ++i)
    row[i] = row[i] + static_cast<float>(bias[i]);
}

inline void roundTo(float value, uint16_t &to) { to = roundToBf16(value); }
inline void roundTo(float value, _Float16 &to) { to = static_cast<_Float16>(value); }

/// Rounds a row where it stands: what is written lies before what is still to be read.
template <typename Narrow> [[gnu::always_inline]] inline void roundInPlace(float *row, int64_t classes) {
  auto round = [&](int64_t begin, int64_t count) {
    float from[kLanes];
    Narrow rounded[kLanes];
    std::memcpy(from, row + begin, count * sizeof(float));
    for (int64_t lane = 0; lane < count; ++lane)
      roundTo(from[lane], rounded[lane]);
    std::memcpy(reinterpret_cast<char *>(row) + begin * sizeof(Narrow), rounded, count * sizeof(Narrow));
  };
  int64_t whole = classes / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    round(i, kLanes);
  if (whole < classes)
    round(whole, classes - whole);
}
void roundRow(float *, int64_t, float) {}
DSOPT_CLONES void roundRow(float *row, int64_t classes, uint16_t) { roundInPlace<uint16_t>(row, classes); }
DSOPT_HALF_CLONES void roundRow(float *row, int64_t classes, _Float16) {
  roundInPlace<_Float16>(row, classes);
}

/// Turns a row of logits into the gradient `factor * (softmax - onehot)` and returns its loss.
DSOPT_CLONES float finishRow(float *row, int64_t classes, int64_t label, float factor) {
  int64_t whole = classes / kLanes * kLanes;
  float largest = row[0];
  Floats most = largest - Floats{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    Floats v;
    std::memcpy(&v, row + i, sizeof(v));
    most = v > most ? v : most;
  }
  for (int64_t lane = 0; lane < kLanes; ++lane)
    largest = std::max(largest, most[lane]);
  for (int64_t i = whole; i < classes; ++i)
    largest = std::max(largest, row[i]);
  float target = row[label] - largest;
  Floats sums[4] = {}, base = largest - Floats{};
  int64_t i = 0;
  for (; i + 4 * kLanes <= classes; i += 4 * kLanes)
    for (int64_t part = 0; part < 4; ++part)
      exponentials(row + i + part * kLanes, base, sums[part]);
  for (; i < classes; i += kLanes) {
    float rest[kLanes];
    int64_t count = std::min(kLanes, classes - i);
    std::fill_n(rest, kLanes, largest - 100.0f);
    std::copy_n(row + i, count, rest);
    exponentials(rest, base, sums[0]);
    std::copy_n(rest, count, row + i);
  }
  Floats lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    sum += lanes[lane];
  float scale = static_cast<float>(factor / sum);
  for (i = 0; i < classes; ++i)
    row[i] = row[i] * scale;
  row[label] = row[label] - factor;
  return static_cast<float>(std::log(sum) - target);
}

/// Adds rows in order to columns [begin, end) of a bias' gradient, or stores their sum.
template <typename Element, typename Sum>
void addColumns(const Element *rows, int64_t count, int64_t stride, Sum *result, bool accumulate,
                int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  float sums[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    int64_t size = std::min(kBlock, end - at);
    if (accumulate)
      convert(result + at, sums, size);
    else
      std::fill_n(sums, size, 0.0f);
    for (int64_t row = 0; row < count; ++row)
      addInto(sums, rows + row * stride + at, size);
    convert(sums, result + at, size);
  }
}

dsopt_gemm matrixProduct(int64_t m, int64_t n, int64_t k, int64_t type) {
  dsopt_gemm p{};
  p.type_ab = type;
  p.m = m;
  p.n = n;
  p.k = k;
  p.ldc = n;
  std::fill_n(p.batch, DSOPT_BATCH_RANK, 1);
  return p;
}

/// `Element` is what x, weight, bias and the gradients that products read are stored as.
template <typename Element>
void linearNll(dsopt_rt &rt, const dsopt_linear_nll &d, const Element *x, const Element *weight,
               const Element *bias, const void *labels, const float *grad, float *losses, Element *x_grad,
               void *weight_grad, void *bias_grad, float *logits, bool accumulate_weight,
               bool accumulate_bias, const dsopt_product_kernel *kernels) {
  constexpr bool isNarrow = sizeof(Element) < sizeof(float);
  int64_t chunk = dsopt_linear_nll_chunk(d.rows, d.classes);
  int64_t stride = isNarrow ? 2 * d.classes : d.classes; // of a row of gradients
  for (int64_t first = 0; first < d.rows; first += chunk) {
    int64_t rows = std::min(chunk, d.rows - first);
    const dsopt_product_kernel *compiled = rows == chunk ? kernels : kernels + 3;
    const Element *inputs = x + first * d.depth;
    const auto *gradients = reinterpret_cast<const Element *>(logits);
    dsopt_gemm p = matrixProduct(rows, d.classes, d.depth, d.type);
    p.lda = d.depth;
    p.transpose_b = d.transpose_b;
    p.ldb = d.transpose_b ? d.depth : d.classes;
    multiply(rt, compiled[0], p, inputs, weight, logits, false);
    rt.pool->split(0, rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t label = d.label_bytes == 8 ? static_cast<const int64_t *>(labels)[first + i]
                                           : static_cast<const int32_t *>(labels)[first + i];
        float *row = logits + i * d.classes;
        // A label out of range has been refused already, where data is read.
        if (label == d.ignore_index || label < 0 || label >= d.classes) {
          std::fill_n(row, d.classes, 0.0f);
          losses[first + i] = 0;
        } else {
          if (bias)
            addBias(row, bias, d.classes);
          losses[first + i] = finishRow(row, d.classes, label, grad[first + i]);
        }
        roundRow(row, d.classes, Element());
      }
    });
    if (x_grad) {
      p = matrixProduct(rows, d.depth, d.classes, d.type);
      p.type_c = d.type;
      p.lda = stride;
      p.transpose_b = !d.transpose_b;
      p.ldb = d.transpose_b ? d.depth : d.classes;
      multiply(rt, compiled[1], p, gradients, weight, x_grad + first * d.depth, false);
    }
    if (weight_grad) {
      p = d.transpose_b ? matrixProduct(d.classes, d.depth, rows, d.type)
                        : matrixProduct(d.depth, d.classes, rows, d.type);
      p.type_c = d.type_weight_grad;
      p.transpose_a = 1;
      p.lda = d.transpose_b ? stride : d.depth;
      p.ldb = d.transpose_b ? d.depth : stride;
      const Element *left = d.transpose_b ? gradients : inputs, *right = d.transpose_b ? inputs : gradients;
      multiply(rt, compiled[2], p, left, right, weight_grad, first || accumulate_weight);
    }
    if (bias_grad)
      withElement(dsopt::runtime::Element(d.type_bias_grad), [&](auto sum) {
        rt.pool->split(0, d.classes, 64, [&](int64_t begin, int64_t end, int) {
          addColumns(gradients, rows, stride, static_cast<decltype(sum) *>(bias_grad),
                     first || accumulate_bias, begin, end);
        });
      });
  }
}
} // namespace

extern "C" void dsopt_rt_linear_nll(dsopt_rt *rt, const dsopt_linear_nll *loss, const void *x,
                                    const void *weight, const void *bias, const void *labels,
                                    const float *grad, float *losses, void *x_grad, void *weight_grad,
                                    void *bias_grad, void *workspace, int64_t accumulate_weight,
                                    int64_t accumulate_bias, const dsopt_product_kernel *kernels) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->linearNll(*loss, x, weight, bias, labels, grad, losses, x_grad, weight_grad, bias_grad,
                          workspace, accumulate_weight, accumulate_bias);
    return;
  }
  static constexpr dsopt_product_kernel kLibrary[6] = {};
  withElement(dsopt::runtime::Element(loss->type), [&](auto element) {
    using Element = decltype(element);
    linearNll(*rt, *loss, static_cast<const Element *>(x), static_cast<const Element *>(weight),
              static_cast<const Element *>(bias), labels, grad, losses, static_cast<Element *>(x_grad),
              weight_grad, bias_grad, static_cast<float *>(workspace), accumulate_weight != 0,
              accumulate_bias != 0, kernels ? kernels : kLibrary);
  });
}
