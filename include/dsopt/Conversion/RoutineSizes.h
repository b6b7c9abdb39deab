//===- RoutineSizes.h - what routines and their calls agree on --*- C++ -*-===//
//
// A routine is given a workspace when blocks become segments, and is called with it when
// segments become code: both follow from the same sizes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_ROUTINESIZES_H
#define DSOPT_CONVERSION_ROUTINESIZES_H

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>

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

/// Bytes of scratch, of a device's routine or of the host's. The operations have some, however little.
inline int64_t attentionWorkspace(const dsopt_attention &sizes, bool isGradient, bool onDevice) {
  return onDevice ? std::max<int64_t>(dsopt_device_attention_workspace(&sizes, isGradient), 4)
                  : dsopt_attention_workspace(&sizes, isGradient);
}

/// Rows whose logits exist at a time.
inline int64_t linearNllChunk(int64_t rows, int64_t classes, bool onDevice) {
  return onDevice ? dsopt_device_linear_nll_chunk(rows, classes) : dsopt_linear_nll_chunk(rows, classes);
}

/// Bytes of a tile of logits.
inline int64_t linearNllWorkspace(int64_t rows, int64_t classes, bool onDevice) {
  dsopt_linear_nll sizes{};
  sizes.rows = rows;
  sizes.classes = classes;
  return onDevice ? dsopt_device_linear_nll_workspace(&sizes)
                  : dsopt_linear_nll_chunk(rows, classes) * classes * static_cast<int64_t>(sizeof(float));
}

inline int64_t scatterAddWorkspace(const dsopt_scatter_add &sizes, bool onDevice) {
  return onDevice ? dsopt_device_scatter_add_workspace(&sizes) : dsopt_scatter_add_workspace(&sizes);
}

/// Bytes to sort `count` rows that are added to a gradient in place; in a narrow type, or as sums that are
/// added once.
inline int64_t scatterAddWorkspace(int64_t count, bool isNarrow, bool sums, bool onDevice) {
  dsopt_scatter_add sizes{};
  sizes.count = count;
  sizes.type_result = isNarrow ? DSOPT_BF16 : DSOPT_F32;
  sizes.sums = sums;
  return scatterAddWorkspace(sizes, onDevice);
}

inline int64_t ctcWorkspace(const dsopt_ctc &sizes, bool isGradient, bool onDevice) {
  return onDevice ? dsopt_device_ctc_workspace(&sizes, isGradient) : dsopt_ctc_workspace(&sizes, isGradient);
}
} // namespace dsopt

#endif // DSOPT_CONVERSION_ROUTINESIZES_H
