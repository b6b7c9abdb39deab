//===- NarrowFloats.cpp - the numbers that a narrow float type holds ------===//

#include "NarrowFloats.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dsopt::graph {

NarrowFormat::NarrowFormat(FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  mantissaBits = (int)llvm::APFloat::semanticsPrecision(semantics) - 1;
  minExponent = llvm::APFloat::semanticsMinExponent(semantics);
  llvm::APFloat largestNumber = llvm::APFloat::getLargest(semantics);
  bool lost;
  largestNumber.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  largest = largestNumber.convertToDouble();
  hasInfinity = llvm::APFloat::semanticsHasInf(semantics);
  hasNaN = llvm::APFloat::semanticsHasNaN(semantics);
  isPowerOfTwo = !llvm::APFloat::semanticsHasZero(semantics);
  hasNegativeZero = !isPowerOfTwo && llvm::APFloat::getZero(semantics, /*Negative=*/true).isNegative();
}

double NarrowFormat::overflow(bool saturate) const {
  if (saturate || (!hasInfinity && !hasNaN))
    return largest;
  return hasInfinity ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

/// As ONNX's Cast has it: of two equally near powers the upper one, but for the smallest two.
static double powerOfTwo(const NarrowFormat &format, RoundToOp op, double x) {
  if (!std::isfinite(x))
    return std::numeric_limits<double>::quiet_NaN();
  double smallest = std::ldexp(1.0, format.minExponent);
  x = std::fabs(x);
  // Below the smallest normal float the exponent's field is that of the smallest power.
  double lower = x < 2 * smallest ? smallest : std::ldexp(1.0, std::ilogb(x));
  bool isUp;
  if (op.getToward())
    isUp = *op.getToward() == "up" && x > (x < 2 * smallest ? 0 : lower);
  else
    isUp = x < 2 * smallest ? x > smallest : x >= 1.5 * lower;
  double result = isUp ? 2 * lower : lower;
  return result > format.largest ? format.overflow(op.getSaturate()) : result;
}

double rounded(const NarrowFormat &format, RoundToOp op, double x) {
  if (format.isPowerOfTwo)
    return powerOfTwo(format, op, x);
  if (std::isnan(x))
    return format.hasNaN ? x : -0.0;
  int exponent = x == 0 || std::isinf(x) ? format.minExponent : std::max(std::ilogb(x), format.minExponent);
  double result = x;
  if (std::isfinite(x)) {
    int quantum = exponent - format.mantissaBits;
    result = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  }
  if (std::fabs(result) > format.largest)
    result = std::copysign(format.overflow(op.getSaturate()), x);
  return result == 0 && !format.hasNegativeZero ? 0.0 : result;
}

} // namespace dsopt::graph
