//===- RowPlaces.h - where rows of inputs are in values ---------*- C++ -*-===//
//
// From a dimension of a function's arguments, the positions of a sequence or the sequences of a batch, rows
// are followed, by the loops that operations have, to all that is computed of them. What operations do with
// them is known before anything is changed: each is by itself everywhere, or an operation is named. Private
// to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_GENERATE_ROWPLACES_H
#define DSOPT_LIB_TRANSFORMS_GENERATE_ROWPLACES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace dsopt {

/// Rows along a dimension: it has `before` times `length` times `inner` elements, the row's number changing
/// between the other two.
struct RowPlace {
  int64_t dim = 0, before = 1, length = 0, inner = 1;
  bool operator==(const RowPlace &other) const {
    return dim == other.dim && before == other.before && length == other.length && inner == other.inner;
  }
  /// Whether rows are the whole dimension.
  bool isPlain() const { return before == 1 && inner == 1; }
};

/// Where rows are in the same elements under another shape; nothing where they are merged with others.
std::optional<RowPlace> throughReshape(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to,
                                       RowPlace place);
/// The loop of an operand's dimension, or behind these a result's: in which of all operands and results it
/// is, each by its dimension there. Nothing where the operation says no loops, or rows along it are not by
/// themselves.
std::optional<llvm::SmallVector<std::optional<int64_t>>> rowLoop(mlir::Operation *op, unsigned number,
                                                                 int64_t dim);

class RowPlaces {
public:
  /// Rows along the first dimension of arguments are sequences, along the second positions.
  enum Axis { Sequences, Positions };
  explicit RowPlaces(Axis axis) : axis(axis) {}

  /// Follows rows from all arguments. Emits an error and fails at an operation to which rows are not by
  /// themselves, and that does not mix positions by a rule which lets none see a later one.
  llvm::LogicalResult find(mlir::func::FuncOp function);

  /// Where rows are in a value; nothing: it is made of constants and parameters alone.
  std::optional<RowPlace> of(mlir::Value value) const {
    auto known = places.find(value);
    return known == places.end() ? std::nullopt : std::optional(known->second);
  }
  /// Of operations that see rows, in order: where each operand that is made of constants and parameters alone
  /// has to have its rows; nothing of others.
  using Wanted = llvm::SmallVector<std::optional<RowPlace>>;
  const llvm::MapVector<mlir::Operation *, Wanted> &operations() const { return wanted; }
  /// Rows that arguments have.
  int64_t length() const { return rows; }

private:
  llvm::LogicalResult visit(mlir::Operation *op);
  llvm::LogicalResult visitRows(mlir::Operation *op);
  llvm::LogicalResult visitMixer(mlir::Operation *op);
  llvm::LogicalResult visitSlice(graph::SliceOp op);
  /// "positions", "sequences".
  llvm::StringRef word() const { return axis == Positions ? "positions" : "sequences"; }

  Axis axis;
  llvm::DenseMap<mlir::Value, RowPlace> places;
  llvm::MapVector<mlir::Operation *, Wanted> wanted;
  int64_t rows = 0;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_GENERATE_ROWPLACES_H
