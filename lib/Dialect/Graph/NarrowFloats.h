//===- NarrowFloats.h - the numbers that a narrow float type holds -*- C++ -*-===//
//
// What folding and kernels share about graph.round_to: a format, and the rounding of one
// number. Bytes and half bytes are those of the OCP specification (8-bit floating point 1.0,
// microscaling formats 1.0) and their "fnuz" relatives.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_NARROWFLOATS_H
#define DSOPT_LIB_DIALECT_GRAPH_NARROWFLOATS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// A float type of at most 16 bits.
struct NarrowFormat {
  explicit NarrowFormat(mlir::FloatType type);

  /// Bits behind the point, and the exponent of the smallest normal number.
  int mantissaBits, minExponent;
  double largest;
  bool hasInfinity, hasNaN, hasNegativeZero;
  /// Powers of two without a sign or a zero.
  bool isPowerOfTwo;

  /// What a number that rounds to more than `largest` becomes; a NaN is of either sign.
  double overflow(bool saturate) const;
};

/// What `op`, which rounds to `format`, makes of a number of its operand's type.
double rounded(const NarrowFormat &format, RoundToOp op, double x);
} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_NARROWFLOATS_H
