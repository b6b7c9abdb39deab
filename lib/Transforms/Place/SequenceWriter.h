//===- SequenceWriter.h - a region as its sequence shards -------*- C++ -*-===//
//
// What a SequenceRegion found becomes one copy for each shard of a rank. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEWRITER_H
#define DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEWRITER_H

#include "CutRegion.h"
#include "SequenceRegion.h"
#include "dsopt/Dialect/Dist/Dist.h"

#include <map>

namespace dsopt {

class SequenceWriter {
public:
  SequenceWriter(mlir::func::FuncOp forward, const SequenceRegion &region, int64_t shards, int64_t ranks,
                 bool exchanges, Axis axis = Axis::sp)
      : forward(forward), region(region), builder(forward.getContext()), shards(shards), ranks(ranks),
        mine(shards / ranks), exchanges(exchanges), axis(axis) {
    llvm::SmallVector<AxisPart> parts;
    if (ranks > 1)
      parts.push_back({axis});
    axes = dist::AxesAttr::get(forward.getContext(), parts);
    none = dist::AxesAttr::get(forward.getContext(), {});
  }
  void write();
  /// Says of the first attention whose heads cannot be exchanged that it is not.
  void expectExchanges() { mustExchange = true; }
  /// A region of rows (CutRows.cpp).
  void writeRows();

private:
  using Shards = llvm::SmallVector<mlir::Value, 4>;
  using ByBlock = std::pair<mlir::Value, mlir::Attribute>;
  void writeCut(mlir::Operation *op);
  void writeSum(mlir::Operation *op, llvm::ArrayRef<Shards> operands);
  void writeTaken(graph::SliceOp op);
  void writeScattered(mlir::Operation *op);
  bool canMeet(mlir::Operation *op) const;
  void writeMet(mlir::Operation *op);
  Shards columnsOf(mlir::Value value, int64_t heads);
  Shards exchangeToHeads(const Shards &each);
  Shards toPositions(const Shards &each);
  Shards masksOf(mlir::Operation *op, std::optional<int64_t> group);
  void writeWhole(mlir::Operation *op);
  Shards operandOf(mlir::OpOperand &operand);
  Shards shareWhole(mlir::Value value, dist::AxesAttr over);
  Shards sliceWhole(mlir::Value value, TimeCut cut, bool isTrained, dist::AxesAttr over);
  mlir::Value gather(mlir::Value value);
  mlir::Value gatherRows(mlir::Value value, bool alike);
  mlir::Value rowsFirst(mlir::Value value, TimeCut cut, int64_t own);
  mlir::Value rowsBack(mlir::Value value, TimeCut cut, llvm::ArrayRef<int64_t> shape);
  mlir::Value withFirst(mlir::Value value, int64_t dropped, llvm::ArrayRef<int64_t> first);
  std::optional<SharedHeads> repeatedHeads(mlir::Value value) const;
  Shards shareGathered(mlir::Value value);
  mlir::Value reshaped(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value sliced(mlir::Value value, int64_t dim, int64_t start, int64_t size);
  mlir::Value joined(llvm::ArrayRef<mlir::Value> values, int64_t dim);
  mlir::Value wholeOf(mlir::Value value) const {
    auto sum = sums.find(value);
    return sum == sums.end() ? value : sum->second;
  }
  mlir::Value once(mlir::Value value);
  mlir::Value alone(mlir::Value value);
  /// What shard 0 has at `first`, and each further one `step` behind the one before.
  mlir::Value places(int64_t shard, llvm::ArrayRef<int32_t> first, int64_t step);
  mlir::Value rangePlaces(int64_t shard, TimeCut cut, int64_t part);
  mlir::Value validRows(int64_t shard, TimeCut cut, int64_t size, int64_t rank);
  mlir::RankedTensorType local(mlir::Type type, TimeCut cut) const;
  void setPositions(mlir::Operation *copy, mlir::Operation *whole, int64_t shard);
  bool isTrained(mlir::Value value) const {
    return !region.isFree(value) && llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType()));
  }

  mlir::func::FuncOp forward;
  const SequenceRegion &region;
  mlir::OpBuilder builder;
  int64_t shards, ranks, mine; ///< in all, and of a rank
  bool mustExchange = false;
  bool exchanges; ///< positions for heads, where attention has enough of them; else along a ring
  Axis axis;      ///< that ranks of the shards are along
  dist::AxesAttr axes, none;
  mlir::Location loc = builder.getUnknownLoc();
  mlir::Attribute block; ///< that operations are written for
  llvm::DenseMap<mlir::Value, Shards> values;
  llvm::DenseMap<ByBlock, Shards> shared;
  llvm::DenseMap<ByBlock, mlir::Value> gathered, alikes, counted;
  llvm::DenseMap<mlir::Value, mlir::Value>
      sums; ///< what whole results of operations that are cut have become
  std::map<std::pair<void *, std::array<int64_t, 4>>, llvm::SmallVector<std::pair<mlir::Attribute, Shards>>>
      slices;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEWRITER_H
