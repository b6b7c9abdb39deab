//===- SequenceRegion.h - operations that are cut along time ----*- C++ -*-===//
//
// From the rows of attention's queries a cut is followed, by the loops that operations have, to all that is
// computed for each position: what makes these rows and what reads them. Unlike a region of tensor shards it
// ends anywhere: what an operation sees whole is gathered for it, and what is whole is taken in slices.
// Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEREGION_H
#define DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEREGION_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/SetVector.h"

#include <deque>
#include <optional>

namespace dsopt {

/// Where a value is cut along time: a dimension of so many equal parts (a batch that is merged with it), each
/// of which has the positions from `begin` on of a sequence that is `length` long: shards are shards of that.
struct TimeCut {
  int64_t dim = 0, parts = 1, begin = 0, length = 0;
  bool operator==(const TimeCut &other) const {
    return dim == other.dim && parts == other.parts && begin == other.begin && length == other.length;
  }
  bool operator!=(const TimeCut &other) const { return !(*this == other); }
};

/// How many rows beside its own a shard reads.
struct SequenceHalo {
  int64_t before, after;
};

class SequenceRegion {
public:
  /// Of sequence shards, or along tp: of rows between products that tensor shards have.
  explicit SequenceRegion(int64_t shards, Axis axis = Axis::sp) : shards(shards), axis(axis) {}

  /// Finds what is cut; emits an error and fails where an operation mixes positions by no rule.
  llvm::LogicalResult find(mlir::func::FuncOp forward);
  /// Finds what is computed row by row of sums of tensor shards (CutRows.cpp).
  void findRows(mlir::func::FuncOp forward);
  bool empty() const { return chosen.empty() && takes.empty(); }

  /// Whether an operation is computed for each shard.
  bool isCut(mlir::Operation *op) const { return chosen.contains(op); }
  /// Whether shards of it compute pieces of its whole result.
  bool sums(mlir::Operation *op) const { return sumOps.contains(op); }
  /// Whether it takes few rows, each of which one shard has.
  bool takesRows(mlir::Operation *op) const { return takes.contains(op); }
  /// How shards of an operation that is cut have one of its operands or results; nothing: all of them whole.
  std::optional<TimeCut> takenAs(mlir::OpOperand &operand) const {
    return cutAt(operand.getOwner(), operand.getOperandNumber());
  }
  std::optional<TimeCut> madeAs(mlir::OpResult result) const {
    return cutAt(result.getOwner(), result.getOwner()->getNumOperands() + result.getResultNumber());
  }
  /// What shards of windows over positions read beside their own rows (SequenceWindows.cpp); nothing: shards
  /// have no windows of their own.
  std::optional<SequenceHalo> haloOf(graph::WindowsOp op, TimeCut cut) const;
  /// How the shards of a value are made; nothing: it is whole.
  std::optional<TimeCut> cutOf(mlir::Value value) const;
  /// The dimension of an operand, or behind these a result, that has the loop of the first operand's
  /// dimension.
  static std::optional<int64_t> alongFirst(mlir::Operation *op, unsigned number, int64_t dim);
  /// Whether a value is made of inputs and constants alone: every rank makes it whole.
  bool isFree(mlir::Value value) const { return !computed.contains(value); }
  /// Whether a value is made of parameters alone.
  bool isWeight(mlir::Value value) const { return weights.contains(value); }

private:
  /// The loops of an operation, as dimensions of its operands and then its results number them.
  struct Loops {
    llvm::SmallVector<llvm::SmallVector<unsigned>> dims;
    llvm::SmallVector<bool> parallel, sum;
  };
  /// Of operands and then results: how shards have each, nothing where they have it whole.
  using Cuts = llvm::SmallVector<std::optional<TimeCut>, 4>;
  static std::optional<Loops> loopsOf(mlir::Operation *op);
  /// Of an operand, or behind these a result.
  std::optional<TimeCut> cutAt(mlir::Operation *op, unsigned number) const;
  void classify(mlir::func::FuncOp forward);
  llvm::LogicalResult seed(mlir::func::FuncOp forward);
  llvm::LogicalResult seed(mlir::Operation *op, int64_t dim);
  bool canHave(mlir::Value value) const;
  void assign(mlir::Value value, TimeCut cut);
  void visit(mlir::Operation *op);
  void visitView(mlir::Operation *op,
                 llvm::function_ref<std::optional<TimeCut>(mlir::Value, mlir::Value, TimeCut)> through);
  /// Whether a value that shards have so has rows behind the sequence, which are no shard's.
  static bool exceeds(mlir::Value value, TimeCut cut);
  std::optional<TimeCut> throughSlice(graph::SliceOp op, mlir::Value from, TimeCut cut);
  void choose(mlir::Operation *op, const Loops &loops, unsigned loop, TimeCut cut);
  llvm::LogicalResult finish(mlir::Operation *op);

  std::optional<TimeCut> rowsOf(mlir::Value sum, const llvm::DenseMap<int64_t, int64_t> &batches) const;
  void keepWhatPays();

  int64_t shards;
  Axis axis;
  llvm::DenseSet<mlir::Value> computed, weights;
  llvm::DenseMap<mlir::Value, TimeCut> cuts;
  llvm::DenseMap<mlir::Operation *, Cuts> chosen;
  llvm::DenseSet<mlir::Operation *> sumOps, takes;
  std::deque<mlir::Operation *> open;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_SEQUENCEREGION_H
