//===- LinearNllReference.h - the loss over a vocabulary in double -*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_LINEARNLLREFERENCE_H
#define DSOPT_TEST_RUNTIME_KERNELS_LINEARNLLREFERENCE_H

#include "Kernels/CPU/Bf16.h"

#include <cmath>
#include <cstdlib>
#include <vector>

namespace dsopt::runtime {

inline float widen(float value) { return value; }
inline float widen(uint16_t value) { return bf16ToFloat(value); }
inline float widen(_Float16 value) { return static_cast<float>(value); }
struct LinearNllShape {
  int64_t rows, depth, classes;
};

/// What is computed, in double, from what the inputs are rounded to; and how large the terms of sums are.
struct LinearNllReference {
  std::vector<double> losses, dx, dw, db, sizeX, sizeW, sizeB;
};

template <typename T>
LinearNllReference referenceOf(LinearNllShape s, bool transposed, const std::vector<T> &givenX,
                               const std::vector<T> &givenW, const std::vector<T> *bias,
                               const std::vector<int64_t> &labels, const std::vector<float> &grad) {
  LinearNllReference r;
  // Each element of f16 would be a call of a library, again and again.
  auto widened = [](const std::vector<T> &values) {
    std::vector<float> result;
    for (T value : values)
      result.push_back(widen(value));
    return result;
  };
  std::vector<float> x = widened(givenX), w = widened(givenW);
  r.losses.resize(s.rows);
  for (auto *values : {&r.dx, &r.sizeX})
    values->resize(s.rows * s.depth);
  for (auto *values : {&r.dw, &r.sizeW})
    values->resize(s.classes * s.depth);
  for (auto *values : {&r.db, &r.sizeB})
    values->resize(s.classes);
  auto place = [&](int64_t c, int64_t k) { return transposed ? c * s.depth + k : k * s.classes + c; };
  for (int64_t i = 0; i < s.rows; ++i) {
    if (labels[i] == -100)
      continue;
    std::vector<double> logits(s.classes);
    double sum = 0;
    for (int64_t c = 0; c < s.classes; ++c) {
      logits[c] = bias ? widen((*bias)[c]) : 0;
      for (int64_t k = 0; k < s.depth; ++k)
        logits[c] += double(x[i * s.depth + k]) * w[place(c, k)];
      sum += std::exp(logits[c]);
    }
    r.losses[i] = std::log(sum) - logits[labels[i]];
    for (int64_t c = 0; c < s.classes; ++c) {
      double z = grad[i] * (std::exp(logits[c]) / sum - (c == labels[i]));
      auto add = [](double &total, double &size, double term) {
        total += term;
        size += std::abs(term);
      };
      add(r.db[c], r.sizeB[c], z);
      for (int64_t k = 0; k < s.depth; ++k) {
        add(r.dx[i * s.depth + k], r.sizeX[i * s.depth + k], z * w[place(c, k)]);
        add(r.dw[place(c, k)], r.sizeW[place(c, k)], z * x[i * s.depth + k]);
      }
    }
  }
  return r;
}

} // namespace dsopt::runtime

#endif // DSOPT_TEST_RUNTIME_KERNELS_LINEARNLLREFERENCE_H
