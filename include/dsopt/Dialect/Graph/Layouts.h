//===- Layouts.h - values that lie in other values' bytes -------*- C++ -*-===//
//
// Operations that only move elements (reshape, transpose, slice, concat) need no
// code where a routine that takes strides is at one of their ends. AbsorbMovements
// makes them views (#graph.view); FormBlocks and BlocksToSegments ask here where
// elements lie.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_LAYOUTS_H
#define DSOPT_DIALECT_GRAPH_LAYOUTS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// What kind of view an operation is.
View viewOf(mlir::Operation *op);
void setView(mlir::Operation *movement, View kind);
bool isReadView(mlir::Operation *op); ///< also a reshape that is no write view
bool isWriteView(mlir::Operation *op);

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

/// Whether the operation that has an operand reads it under this layout: anything reads what is
/// contiguous, routines take strides.
bool canRead(mlir::OpOperand &operand, const Layout &layout);
/// Whether the operation that makes a result writes it under this layout.
bool canWrite(mlir::OpResult result, const Layout &layout);
/// Whether an operation (or null) is a routine that reads something under strides.
bool takesStrides(mlir::Operation *op);

/// The value whose bytes hold another, and where in them; no layout where none describes it.
struct Place {
  mlir::Value root;
  std::optional<Layout> layout;
};
/// Follows views from a value: up through read views, down through write views.
Place locate(mlir::Value value);
/// The value that a chain of read views begins at.
mlir::Value storageOf(mlir::Value value);
/// Whether each function that reads the operation's value makes it itself: a constant, a state that is read.
bool isMadeInPlace(mlir::Operation *op);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_LAYOUTS_H
