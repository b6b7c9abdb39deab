//===- DrawWeights.cpp - parameters from a normal distribution -------------===//
//
// Box and Muller's transform of Philox' words. Logarithm, sine and cosine are
// spelled in additions, products and square roots, so that no library's version
// and no machine changes a bit.
//
//===----------------------------------------------------------------------===//

#include "Core/FloatTypes.h"
#include "Core/InitialValues.h"
#include "dsopt/Runtime/Philox.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {
namespace {

/// ln(x) for 0 < x <= 1, to about 1e-15.
double logarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent); // in [0.5, 1): exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;
  for (int n = 23; n >= 1; n -= 2)
    sum = sum * square + 1.0 / n;
  return exponent * 0.69314718055994531 + 2 * s * sum;
}

/// Sine and cosine of a quarter turn's part: angle in [0, pi / 2].
void sineAndCosine(double angle, double &sine, double &cosine) {
  double square = angle * angle, odd = 1, even = 1;
  for (int n = 20; n >= 2; n -= 2) {
    odd = 1 - square / (n * (n + 1)) * odd;
    even = 1 - square / (n * (n - 1)) * even;
  }
  sine = angle * odd;
  cosine = even;
}

/// Elements 2 * pair and 2 * pair + 1.
void drawPair(uint64_t key, uint64_t pair, double deviation, float result[2]) {
  std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 0, 0},
             {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  uint64_t bits = (uint64_t(words[0]) << 20) | (words[1] >> 12);
  double uniform = static_cast<double>(bits + 1) * 0x1p-52; // in (0, 1]
  double radius = deviation * std::sqrt(-2 * logarithm(uniform));
  double sine, cosine;
  sineAndCosine(static_cast<double>(words[2]) * 0x1p-32 * 1.5707963267948966, sine, cosine);
  result[0] = static_cast<float>((words[3] & 1 ? -radius : radius) * cosine);
  result[1] = static_cast<float>((words[3] & 2 ? -radius : radius) * sine);
}

class DrawnValues final : public ParameterValues {
public:
  DrawnValues(double deviation, int64_t seed, ThreadPool *pool, std::unique_ptr<ParameterValues> model)
      : deviation(deviation), seed(static_cast<uint64_t>(seed)), pool(pool), model(std::move(model)) {}

  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override {
    bool draws = parameter.trainable && parameter.shape.size() >= 2 &&
                 (parameter.type == "f32" || isNarrowFloat(parameter.type));
    if (!draws)
      return model->read(parameter, begin, end, target);
    auto body = [&](int64_t first, int64_t last, int) {
      if (parameter.type == "f32")
        return drawNormal(seed, parameter.name, deviation, first, last,
                          reinterpret_cast<float *>(target) + (first - begin));
      std::vector<float> values(last - first);
      drawNormal(seed, parameter.name, deviation, first, last, values.data());
      std::transform(values.begin(), values.end(), reinterpret_cast<uint16_t *>(target) + (first - begin),
                     [&](float value) { return narrowed(parameter.type, value); });
    };
    if (pool)
      pool->split(begin, end, 4096, body);
    else if (begin < end)
      body(begin, end, 0);
  }

private:
  double deviation;
  uint64_t seed;
  ThreadPool *pool;
  std::unique_ptr<ParameterValues> model;
};
} // namespace

void drawNormal(uint64_t seed, const std::string &name, double deviation, int64_t begin, int64_t end,
                float *target) {
  uint64_t key = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  float values[2];
  for (int64_t at = begin; at < end;) {
    drawPair(key, at / 2, deviation, values);
    for (int64_t pair = at / 2; at < end && at / 2 == pair; ++at)
      target[at - begin] = values[at % 2];
  }
}

double initDeviation(const std::string &init) {
  const std::string prefix = "normal:";
  char *rest = nullptr;
  double deviation =
      init.compare(0, prefix.size(), prefix) == 0 ? std::strtod(init.c_str() + prefix.size(), &rest) : 0;
  if (!rest || *rest || !(deviation > 0) || !std::isfinite(deviation))
    throw Error(StatusInput, "option -init=" + init + ": expected model or normal:X with X above 0");
  return deviation;
}

std::unique_ptr<ParameterValues> drawWeights(const std::string &init, int64_t seed, ThreadPool *pool,
                                             std::unique_ptr<ParameterValues> model) {
  return std::make_unique<DrawnValues>(initDeviation(init), seed, pool, std::move(model));
}

} // namespace dsopt::runtime
