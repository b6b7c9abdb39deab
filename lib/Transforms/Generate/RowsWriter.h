//===- RowsWriter.h - a function of other rows ------------------*- C++ -*-===//
//
// Rewrites a function whose rows are known (RowPlaces.h) into one of other rows. What is made of constants
// and parameters alone is computed at these rows' own numbers. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_GENERATE_ROWSWRITER_H
#define DSOPT_LIB_TRANSFORMS_GENERATE_ROWSWRITER_H

#include "RowPlaces.h"

#include <map>

namespace dsopt {

class RowsWriter : private mlir::OpBuilder::Listener {
public:
  /// `count` rows in the place of those that there are.
  RowsWriter(mlir::func::FuncOp function, const RowPlaces &places, int64_t count)
      : function(function), places(places), count(count), builder(function.getContext(), this) {}
  virtual ~RowsWriter() = default;

  /// Emits an error and fails where rows of a value cannot be had.
  llvm::LogicalResult write();

protected:
  /// The numbers of the rows [count], so many further on.
  virtual mlir::Value numbers(int64_t offset) = 0;
  /// Whether rows of a whole value that are taken by their numbers are what they stand for; emits an error.
  virtual llvm::LogicalResult checkTaken(mlir::Value whole, RowPlace place) { return mlir::success(); }
  /// Writes a mixer of rows; false: it is none.
  virtual bool writeMixer(mlir::Operation *op) { return false; }

  mlir::Value rowsOf(mlir::Value value, RowPlace place, int64_t offset = 0);
  mlir::Value gatherRows(mlir::Value value, RowPlace place, mlir::Value index, int64_t taken);
  mlir::Value reshaped(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// A type with so many rows where the value's are.
  static mlir::RankedTensorType withRows(mlir::Type type, RowPlace place, int64_t count);
  /// What is written next stands before an operation, in its block.
  void writeBefore(mlir::Operation *user);

  mlir::func::FuncOp function;
  const RowPlaces &places;
  int64_t count;
  mlir::OpBuilder builder;
  mlir::Location loc = builder.getUnknownLoc();
  mlir::Attribute block; ///< of the operation that is being written

private:
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override;
  void rewrite(mlir::Operation *op, const RowPlaces::Wanted &wanted);
  mlir::Value computeRows(mlir::Value value, RowPlace place, int64_t offset);

  /// Rows of whole values, by value, place, offset and block.
  std::map<std::tuple<const void *, int64_t, int64_t, int64_t, int64_t, const void *>, mlir::Value> known;
  bool isFailed = false;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_GENERATE_ROWSWRITER_H
