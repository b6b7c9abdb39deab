//===- FloatTypes.h - floats of 16 bits to and from f32 ---------*- C++ -*-===//
//
// Parameters may be of fewer bits in their files than they are trained in.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_FLOATTYPES_H
#define DSOPT_LIB_RUNTIME_CORE_FLOATTYPES_H

#include "Kernels/CPU/Bf16.h"

#include <string>

namespace dsopt::runtime {

/// Whether f32 is converted to and from this type: "bf16" or "f16".
inline bool isNarrowFloat(const std::string &type) { return type == "bf16" || type == "f16"; }

/// The value of two bytes.
inline float widened(const std::string &type, const char *from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  if (type == "bf16")
    return bf16ToFloat(bits);
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}

/// The bits of the nearest value, to even of two.
inline uint16_t narrowed(const std::string &type, float value) {
  if (type == "bf16")
    return roundToBf16(value);
  _Float16 half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_FLOATTYPES_H
