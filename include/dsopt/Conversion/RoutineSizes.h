//===- RoutineSizes.h - what routines and their calls agree on --*- C++ -*-===//
//
// A routine is given a workspace when blocks become segments, and is called with it when
// segments become code: both follow from the same sizes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_ROUTINESIZES_H
#define DSOPT_CONVERSION_ROUTINESIZES_H

#include "dsopt/Dialect/Graph/NarrowFloat.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"
#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>
#include <optional>

namespace dsopt {
/// The sizes of attention over q and v of four dimensions; work is cut as for `pairs` of a batch entry and a
/// head (none: those of q). The rest is zero.
inline dsopt_attention attentionSizes(mlir::ShapedType q, mlir::ShapedType v,
                                      std::optional<int64_t> pairs = std::nullopt) {
  dsopt_attention sizes{};
  sizes.batch = q.getDimSize(0);
  sizes.heads = q.getDimSize(1);
  sizes.key_heads = v.getDimSize(1);
  sizes.pairs = pairs.value_or(sizes.batch * sizes.heads);
  sizes.shards = sizes.entries = 1;
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

/// A matrix as products take it: its lines (rows, or columns where `transposed`) are contiguous.
struct ProductMatrix {
  bool transposed;
  int64_t leading; ///< elements from one line to the next
};

/// How the last two dimensions lie, or failure where neither is contiguous.
inline mlir::FailureOr<ProductMatrix> productMatrix(llvm::ArrayRef<int64_t> shape,
                                                    llvm::ArrayRef<int64_t> strides) {
  size_t rank = shape.size();
  int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  // A dimension of one element has any stride. Of a single line that of its type is kept: the line may be
  // one of many of a whole product, whose lines are so far apart.
  if (strides[rank - 1] == 1 || columns == 1) {
    int64_t leading = rows == 1 ? std::max(columns, strides[rank - 2]) : strides[rank - 2];
    if (leading >= columns && (columns > 1 || strides[rank - 1] == 1 || rows == 1))
      return ProductMatrix{false, leading};
  }
  if (strides[rank - 2] == 1 || rows == 1) {
    int64_t leading = columns == 1 ? std::max(rows, strides[rank - 1]) : strides[rank - 1];
    if (leading >= rows)
      return ProductMatrix{true, leading};
  }
  return mlir::failure();
}

/// Bytes of scratch of a product whose result lies so; `contraction` is the whole's.
inline int64_t productWorkspace(int64_t lines, int64_t leading, int64_t contraction, mlir::Type type,
                                bool onDevice) {
  return onDevice && graph::isNarrowFloat(type)
             ? dsopt_device_product_workspace(lines, leading, contraction, DSOPT_F16)
             : 0;
}

/// Rows whose logits exist at a time.
inline int64_t linearNllChunk(int64_t rows, int64_t classes, bool onDevice) {
  return onDevice ? dsopt_device_linear_nll_chunk(rows, classes) : dsopt_linear_nll_chunk(rows, classes);
}

/// Bytes of a tile of logits, on a device also of what its products take.
inline int64_t linearNllWorkspace(const dsopt_linear_nll &sizes, bool onDevice) {
  return onDevice ? dsopt_device_linear_nll_workspace(&sizes)
                  : dsopt_linear_nll_chunk(sizes.rows, sizes.classes) * sizes.classes *
                        static_cast<int64_t>(sizeof(float));
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
