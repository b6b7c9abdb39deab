//===- Layouts.h - values that lie in other values' bytes -------*- C++ -*-===//
//
// Operations that only move elements (reshape, transpose, slice, concat) need no
// code where a routine that takes strides is at one of their ends. AbsorbMovements
// marks them; FormBlocks and BlocksToSegments ask here where elements lie.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_LAYOUTS_H
#define DSOPT_DIALECT_GRAPH_LAYOUTS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// On a movement: "read" (its result is the operand's bytes under strides) or
/// "write" (its operands are written into its result's bytes).
inline constexpr llvm::StringLiteral kViewAttr = "graph.view";

bool isReadView(mlir::Operation *op);  ///< also a reshape that is not marked "write"
bool isWriteView(mlir::Operation *op); ///< marked "write"

/// Where elements lie in a buffer: element (i0, i1, ...) at offset + sum of i_d * strides[d].
struct Layout {
  int64_t offset = 0;
  llvm::SmallVector<int64_t> shape, strides;

  static Layout contiguous(llvm::ArrayRef<int64_t> shape);
  bool isContiguous() const;
  /// Whether rows or columns of the last two dimensions are contiguous, as matrix products need it.
  bool isMatrix() const;
  /// Whether the last dimension is contiguous.
  bool hasContiguousRows() const;
};

/// The layout of a movement's result, its first operand being laid out as `operand`; nothing
/// where there is none.
std::optional<Layout> resultLayout(mlir::Operation *movement, const Layout &operand);
/// The layout of a movement's operand that is written into a result laid out as `result`.
std::optional<Layout> operandLayout(mlir::OpOperand &operand, const Layout &result);

/// The value whose bytes hold another, and where in them.
struct Place {
  mlir::Value root;
  Layout layout;
};
/// Follows views from a value: up through "read", down through "write".
Place locate(mlir::Value value);
/// The value that a chain of read views begins at.
mlir::Value storageOf(mlir::Value value);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_LAYOUTS_H
