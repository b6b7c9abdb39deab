//===- ShardParts.h - what all shards are written with ----------*- C++ -*-===//
//
// Where shards of tensors and of sequences are told apart and brought together. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_SHARDPARTS_H
#define DSOPT_LIB_TRANSFORMS_PLACE_SHARDPARTS_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt {

/// The function whose values a pass cuts in so many shards `of` something: @forward, with one body. Fails
/// with a message where there is none, or where ranks do not divide the shards.
llvm::FailureOr<mlir::func::FuncOp> forwardOf(mlir::ModuleOp module, llvm::StringRef pass, llvm::StringRef of,
                                              int64_t shards, int64_t ranks);

/// Adds the pieces that neighbouring shards have of a sum: those of this rank as a tree, then those of the
/// ranks.
mlir::Value addPieces(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange pieces,
                      dist::AxesAttr axes, bool exact = false);

/// Operations between `before` (null: the block's begin) and `end` are of `block`, if that is any.
void setBlocks(mlir::Operation *before, mlir::Operation *end, mlir::Attribute block);

/// The number of a shard of this rank, which has `mine` along an axis, among all: [1], of an integer type.
/// What is folded of it is no kernel's but its own, as it is not the same at every degree.
mlir::Value numberOfShard(mlir::OpBuilder &builder, mlir::Location loc, Axis axis, mlir::Value context,
                          mlir::Type integer, int64_t mine, int64_t shard);

/// Where a shard has what the first one has at `first`, each further one being `step` behind the one before.
mlir::Value placesOfShard(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value number,
                          llvm::ArrayRef<int32_t> first, int64_t step);

/// The places of the first shard along a dimension: the first `own` of each of so many parts of a size.
llvm::SmallVector<int32_t> firstPlaces(int64_t parts, int64_t part, int64_t own);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_SHARDPARTS_H
