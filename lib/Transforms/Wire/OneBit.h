//===- OneBit.h - values as a scale and signs -------------------*- C++ -*-===//
//
// The record that gradients (-compress-gradients=onebit) and the momenta of 1-bit Adam
// travel as: a scale in fp32, then signs, 32 to a word, of which that of 0 is +1.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_ONEBIT_H
#define DSOPT_LIB_TRANSFORMS_WIRE_ONEBIT_H

#include "dsopt/Transforms/Wire/Compression.h"

namespace dsopt {

/// Signs in a word; elements that are added in one row.
inline constexpr int64_t kWordBits = 32, kSummed = 64;

/// Bytes of a unit's record.
inline int64_t signBytes(int64_t elements) { return sizeof(float) + elements / 8; }

/// The method: the scale is the mean magnitude of what is not padding, so that a record takes away from what
/// is left out, however unequal its values are (Karimireddy et al., 2019, EF-signSGD).
CompressionMethod oneBit();

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_ONEBIT_H
