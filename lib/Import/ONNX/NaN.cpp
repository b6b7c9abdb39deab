//===- NaN.cpp - weights that are no numbers -------------------------------===//

#include "NaN.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>

using namespace mlir;

namespace dsopt::onnx_import {

/// Calls `f` with the bits of each element without its sign.
template <typename Bits, typename F> static void forEachMagnitude(StringRef bytes, F f) {
  for (size_t i = 0, count = bytes.size() / sizeof(Bits); i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(bits), sizeof(bits));
    f(Bits(bits & Bits(Bits(~Bits(0)) >> 1)));
  }
}

/// Calls `f` with a number of the type that holds an element's bits.
template <typename F> static auto withBitsOf(FloatType type, F f) {
  return type.getWidth() == 16 ? f(uint16_t()) : type.getWidth() == 32 ? f(uint32_t()) : f(uint64_t());
}

static uint64_t bitsOfInfinity(FloatType type) {
  return APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt().getZExtValue();
}

/// Whether an element is no number. All weights are looked at: without a branch, so that it takes many at
/// once.
bool hasNaN(StringRef bytes, FloatType type) {
  return withBitsOf(type, [&](auto zero) {
    // Without their sign they are as large in signed numbers, which every processor compares.
    using Bits = decltype(zero);
    using Magnitude = std::make_signed_t<Bits>;
    const auto infinity = static_cast<Magnitude>(bitsOfInfinity(type));
    Bits any = 0;
    forEachMagnitude<Bits>(bytes, [&](Bits bits) { any |= Bits(static_cast<Magnitude>(bits) > infinity); });
    return any != 0;
  });
}

void warnOfNaN(StringRef bytes, FloatType type, StringRef name, Location location) {
  int64_t count = 0, first = -1, at = 0;
  withBitsOf(type, [&](auto zero) {
    forEachMagnitude<decltype(zero)>(bytes, [&](auto bits) {
      if (bits > bitsOfInfinity(type))
        first = count++ ? first : at;
      ++at;
    });
    return true;
  });
  emitWarning(location) << "initializer '" << name << "' has " << count << " elements that are NaN of " << at
                        << ", the first at " << first;
}

} // namespace dsopt::onnx_import
