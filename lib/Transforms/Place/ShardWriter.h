//===- ShardWriter.h - a region as its tensor shards ------------*- C++ -*-===//
//
// What a CutRegion found becomes one copy for each shard of a rank. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_SHARDWRITER_H
#define DSOPT_LIB_TRANSFORMS_PLACE_SHARDWRITER_H

#include "CutRegion.h"
#include "dsopt/Dialect/Dist/Dist.h"

namespace dsopt {

class ShardWriter {
public:
  /// `shards` in all, over `ranks`.
  ShardWriter(mlir::ModuleOp module, int64_t shards, int64_t ranks);
  void write(const CutRegion &region);

private:
  using Shards = llvm::SmallVector<mlir::Value, 4>;
  void writeOp(mlir::Operation *op);
  void writeRead(graph::ReadOp read);
  void writeConstant(graph::ConstantOp constant);
  void writeTaken(graph::ReshapeOp reshape);
  void writeSum(mlir::Operation *op, Shards pieces);
  mlir::Value addShards(mlir::Operation *op, mlir::ValueRange pieces);
  void writeStatistics(mlir::func::FuncOp function);
  void writeReduction(mlir::Operation *op);
  /// The number of a shard of this rank among all, [1], where `op` is.
  mlir::Value numberOf(mlir::Operation *op, int64_t shard, mlir::Type integer);
  Shards operandOf(mlir::Operation *op, mlir::Value value);
  Shards shareWhole(mlir::Operation *op, mlir::Value value);
  mlir::Value takePlaces(mlir::Operation *op, int64_t shard, mlir::Value whole, int64_t dim,
                         llvm::ArrayRef<int32_t> first, int64_t step, int64_t divisor = 1);
  llvm::ArrayRef<graph::ParameterOp> parametersOf(mlir::FlatSymbolRefAttr name, ShardCut cut);
  /// Which elements of a whole value the first shard of the first rank has, and those of others.
  graph::RunsAttr runsOf(mlir::RankedTensorType whole, ShardCut cut) const;
  void eraseOp(mlir::Operation *op);
  mlir::RankedTensorType local(mlir::Type type, ShardCut cut) const;

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  int64_t shards, mine; ///< in all, and of a rank
  dist::AxesAttr axes;
  llvm::SetVector<mlir::Operation *> copied; ///< for each shard, which may leave nothing that reads them
  const CutRegion *region = nullptr;
  llvm::DenseMap<mlir::Value, Shards> values;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, Shards> shared; ///< whole values, by block
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<graph::ParameterOp, 4>> parameters;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_SHARDWRITER_H
