//===- Numbers.h - 16-bit floats, rounding and NaNs as devices have them *- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_MACHINE_NUMBERS_H
#define DSOPT_TEST_SOFTDEVICE_MACHINE_NUMBERS_H

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace softdevice {

template <class To, class From> inline To bitsOf(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

inline float fromBF16(uint16_t bits) { return bitsOf<float>(uint32_t(bits) << 16); }

/// To the nearest, even in the middle; a NaN is 0x7fff.
inline uint16_t toBF16(float value) {
  uint32_t bits = bitsOf<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31)
    return bitsOf<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return bitsOf<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/// To the nearest, even in the middle; a NaN is 0x7fff.
inline uint16_t toF16(float value) {
  uint32_t bits = bitsOf<uint32_t>(value), magnitude = bits & 0x7fffffff;
  uint16_t sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7f800000)
    return 0x7fff;
  if (magnitude >= 0x477ff000) // what rounds to 2^16 and more
    return sign | 0x7c00;
  if (magnitude < 0x38800000) // subnormal: the sum rounds at the right place
    return sign | static_cast<uint16_t>(bitsOf<uint32_t>(bitsOf<float>(magnitude) + 0.5f) - 0x3f000000);
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

/// A subnormal becomes 0 of its sign.
inline float flush(float value) {
  uint32_t bits = bitsOf<uint32_t>(value);
  return bits & 0x7f800000 ? value : bitsOf<float>(bits & 0x80000000);
}

/// 10 bits of fraction, to the nearest.
inline float toTF32(float value) {
  uint32_t bits = bitsOf<uint32_t>(value);
  if ((bits & 0x7f800000) == 0x7f800000)
    return value;
  return bitsOf<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

/// A NaN operand is not taken, and +0 is above -0.
template <class T> inline T lesser(T a, T b) {
  if (std::isnan(a))
    return b;
  if (std::isnan(b))
    return a;
  return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
template <class T> inline T greater(T a, T b) {
  if (std::isnan(a))
    return b;
  if (std::isnan(b))
    return a;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}

/// Saturates to 0 to 1; a NaN becomes 0.
template <class T> inline T saturate(T value) { return value > T(0) ? (value < T(1) ? value : T(1)) : T(0); }

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_MACHINE_NUMBERS_H
