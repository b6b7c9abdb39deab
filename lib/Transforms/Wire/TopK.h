//===- TopK.h - the largest elements of each block --------------*- C++ -*-===//
//
// The record of -compress-gradients=topk: of each block of neighbours the k elements of
// largest magnitude, as they are, and their places in the block (Stich et al., 2018;
// Lin et al., 2018).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_TOPK_H
#define DSOPT_LIB_TRANSFORMS_WIRE_TOPK_H

#include "dsopt/Transforms/Wire/Compression.h"

namespace dsopt {

/// The method, with the options k and block. A unit's last block may be shorter. Of equal magnitudes the
/// first are taken; NaN is larger than all numbers.
CompressionMethod topK();

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_TOPK_H
