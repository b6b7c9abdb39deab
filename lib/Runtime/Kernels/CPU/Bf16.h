//===- Bf16.h - floats in 16 bits -------------------------------*- C++ -*-===//
//
// bf16 is the upper half of a float. The runtime rounds to nearest even, as
// AVX-512 BF16 does, but keeps denormals.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_BF16_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_BF16_H

#include <cstdint>
#include <cstring>

namespace dsopt::runtime {

inline float bf16ToFloat(uint16_t value) {
  uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

inline uint16_t roundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_BF16_H
