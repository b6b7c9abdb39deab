//===- CutRegion.h - operations that one cut goes through -------*- C++ -*-===//
//
// A cut begins at the columns of a product and is followed along the loops that operations have
// (ShardingInterface) to all that reads and makes what is cut, until sums end it. Either all of it can be
// cut, or nothing is. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_CUTREGION_H
#define DSOPT_LIB_TRANSFORMS_PLACE_CUTREGION_H

#include "dsopt/Dialect/Graph/Heads.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <deque>
#include <optional>
#include <string>

namespace dsopt {

/// Where a value is cut: a dimension, within each of so many equal parts of it (three, where queries, keys
/// and values are one product's columns).
struct ShardCut {
  int64_t dim = 0, parts = 1;
  bool operator==(const ShardCut &other) const { return dim == other.dim && parts == other.parts; }
  bool operator!=(const ShardCut &other) const { return !(*this == other); }
};

/// Elements of a shard along a cut: where shards are not equal, the last one has some that the whole has not.
inline int64_t elementsOfShard(int64_t whole, ShardCut cut, int64_t shards) {
  return (whole / cut.parts + shards - 1) / shards * cut.parts;
}

/// The reads of each parameter.
using ParameterReads = llvm::DenseMap<mlir::Attribute, llvm::SmallVector<graph::ReadOp>>;

class CutRegion {
public:
  CutRegion(int64_t shards, const ParameterReads &reads) : shards(shards), reads(&reads) {}

  /// Whether all that `value`, cut like this, leads to can be cut.
  bool grow(mlir::Value value, ShardCut cut);
  /// Why not: "'graph.layer_norm' sees its rows whole".
  llvm::StringRef reason() const { return why; }
  /// Numbers of parts that slices of the first value wish for.
  llvm::ArrayRef<int64_t> wishes() const { return wished; }

  /// In no order; the function's end is none of them.
  const llvm::SetVector<mlir::Operation *> &operations() const { return ops; }
  std::optional<ShardCut> cutOf(mlir::Value value) const;
  /// Whether shards of the operation compute pieces of its whole result.
  bool sums(mlir::Operation *op) const { return sumOps.contains(op); }
  /// Whether it says itself how shards make its whole results (ShardedReductionOpInterface).
  bool reduces(mlir::Operation *op) const { return reducingOps.contains(op); }
  bool hasEnds() const { return !sumOps.empty() || !reducingOps.empty(); }
  /// Whether shards take what they have of the operation's whole operand (see headsOf).
  bool takes(mlir::Operation *op) const { return takeOps.contains(op); }

private:
  bool assign(mlir::Value value, ShardCut cut);
  bool visit(mlir::Operation *op);
  /// Whether the shards of a value are unequal.
  bool isPadded(mlir::Value value) const;
  bool acceptsPadding(mlir::Operation *op) const;
  bool failUndivided(int64_t size, int64_t parts);
  bool assignParameter(mlir::Attribute name, ShardCut cut);
  bool visitRead(graph::ReadOp op);
  bool visitReshape(graph::ReshapeOp op);
  bool visitSlice(graph::SliceOp op);
  bool visitConcat(graph::ConcatOp op);
  bool visitReturn(mlir::Operation *op);
  bool canReduce(mlir::Operation *op) const;
  bool visitLoops(mlir::Operation *op);
  bool fail(mlir::Operation *op, const llvm::Twine &reason);

  int64_t shards;
  const ParameterReads *reads;
  std::string why;
  llvm::SmallVector<int64_t> wished;
  llvm::SetVector<mlir::Operation *> ops;
  llvm::DenseSet<mlir::Operation *> sumOps, reducingOps, takeOps;
  llvm::DenseMap<mlir::Value, ShardCut> cuts;
  std::deque<mlir::Operation *> open;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_CUTREGION_H
