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

/// How ranks of a sequence share attention: neighbours, `group` of them, exchange positions for heads; the
/// groups are a ring.
struct HeadGroups {
  int64_t group, entries;      ///< ranks, and the shards that they have
  dist::AxesAttr inner, outer; ///< of a group, and of the ring
};

/// What that takes for forward and backward of an attention.
struct GroupPrice {
  int64_t group, elements;  ///< ranks, and what each sends
  int64_t sending, waiting; ///< picoseconds, of the latter for those that read more columns
  int64_t time() const { return sending + waiting; }
  bool operator==(const GroupPrice &other) const {
    return group == other.group && elements == other.elements && time() == other.time();
  }
};

/// Attention that is alike.
struct GroupChoice {
  mlir::Location loc;
  int64_t group, attentions;
  llvm::SmallVector<GroupPrice> prices; ///< of all groups that can be
};

class SequenceWriter {
public:
  SequenceWriter(mlir::func::FuncOp forward, const SequenceRegion &region, int64_t shards, int64_t ranks,
                 Axis axis = Axis::sp)
      : forward(forward), region(region), builder(forward.getContext()), shards(shards), ranks(ranks),
        mine(shards / ranks), axis(axis) {
    llvm::SmallVector<AxisPart> parts;
    if (ranks > 1)
      parts.push_back({axis});
    axes = dist::AxesAttr::get(forward.getContext(), parts);
    none = dist::AxesAttr::get(forward.getContext(), {});
  }
  void write();
  /// Has groups of so many ranks exchange heads, where attention has enough of them: it says of the first
  /// that has not. Without, what is sent and waited for decides.
  void exchangeIn(int64_t group) { asked = group; }
  /// A region of rows (CutRows.cpp).
  void writeRows();

private:
  using Shards = llvm::SmallVector<mlir::Value, 4>;
  using ByBlock = std::pair<mlir::Value, mlir::Attribute>;
  void writeCut(mlir::Operation *op);
  void writeSum(mlir::Operation *op, llvm::ArrayRef<Shards> operands);
  void writeTaken(graph::SliceOp op);
  Shards gatherEnds(mlir::Value value, TimeCut cut, SequenceHalo halo);
  void writeWindows(graph::WindowsOp op);
  void writeScattered(mlir::Operation *op);
  bool canMeet(mlir::Operation *op) const;
  void writeMet(mlir::Operation *op);
  Shards columnsOf(mlir::Value value, int64_t heads);
  HeadGroups groupsOf(int64_t group);
  GroupPrice priceOf(mlir::Operation *op, int64_t group, int64_t rows, int64_t columns, bool isCausal) const;
  void keepChoices();
  HeadGroups groupsFor(mlir::Operation *op, llvm::ArrayRef<mlir::Value> k, llvm::ArrayRef<mlir::Value> v);
  mlir::Value placeAlong(const AxisPart &part);
  mlir::Value exchangeToHeads(const Shards &each, const HeadGroups &groups);
  Shards toPositions(mlir::Value own, const HeadGroups &groups);
  Shards masksOf(mlir::Operation *op, const HeadGroups &groups);
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
  int64_t shards, ranks, mine;  ///< in all, and of a rank
  std::optional<int64_t> asked; ///< ranks that exchange heads
  bool hasWarned = false;
  llvm::SmallVector<GroupChoice> choices;
  Axis axis; ///< that ranks of the shards are along
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
