//===- RandomNumbers.h - what kernels are tried with -------------*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_RANDOMNUMBERS_H
#define DSOPT_TEST_RUNTIME_KERNELS_RANDOMNUMBERS_H

#include <cstdint>
#include <random>
#include <vector>

namespace dsopt::runtime {

/// Evenly between -1.73 and 1.73 times `scale`, so that their variance is its square; equal ones for equal
/// seeds. Normal numbers would take longer than the products of them.
inline std::vector<float> randomNumbers(int64_t count, int seed, float scale = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<int32_t>(random()) * (1.7320508f / 2147483648.0f) * scale;
  return values;
}

} // namespace dsopt::runtime

#endif // DSOPT_TEST_RUNTIME_KERNELS_RANDOMNUMBERS_H
