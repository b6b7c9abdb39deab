//===- RoutineSizes.h - what routines and their calls agree on --*- C++ -*-===//
//
// A routine is given a workspace when blocks become segments, and is called with it when
// segments become code: both follow from the same sizes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_ROUTINESIZES_H
#define DSOPT_CONVERSION_ROUTINESIZES_H

#include "dsopt/Runtime/ABI.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dsopt {
/// The sizes of attention over q and v of four dimensions; the rest is zero.
inline dsopt_attention attentionSizes(mlir::ShapedType q, mlir::ShapedType v) {
  dsopt_attention sizes{};
  sizes.batch = q.getDimSize(0);
  sizes.heads = q.getDimSize(1);
  sizes.rows = q.getDimSize(2);
  sizes.depth = q.getDimSize(3);
  sizes.columns = v.getDimSize(2);
  sizes.width = v.getDimSize(3);
  return sizes;
}

/// Bytes of a tile of logits.
inline int64_t linearNllWorkspace(int64_t rows, int64_t classes) {
  return dsopt_linear_nll_chunk(rows, classes) * classes * static_cast<int64_t>(sizeof(float));
}
} // namespace dsopt

#endif // DSOPT_CONVERSION_ROUTINESIZES_H
