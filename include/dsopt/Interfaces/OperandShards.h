//===- OperandShards.h - what tensor shards have of operands ----*- C++ -*-===//
//
// What place-values hands to ShardedReductionOpInterface.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPERANDSHARDS_H
#define DSOPT_INTERFACES_OPERANDSHARDS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>

namespace dsopt {

struct OperandShards {
  /// Shards on all ranks, and elements of one along the cut.
  int64_t count = 0, each = 0;
  /// Elements of the whole; those of all shards may be some more, behind the last.
  int64_t whole = 0;
  /// The number of a shard of this rank among all, as a tensor of one integer of this type: it is known when
  /// the program runs.
  std::function<mlir::Value(int64_t shard, mlir::Type integer)> number;
  /// A value that is the same for all shards, as one of them reads it: what is computed of it is that shard's
  /// alone.
  std::function<mlir::Value(mlir::Value value, int64_t shard)> share;
  /// The sum of pieces, one of each shard of this rank, over the shards of all ranks.
  std::function<mlir::Value(mlir::ValueRange pieces)> add;
  /// By operand, then by shard of this rank; of a whole operand the same value for each.
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 4>> operands;
};

} // namespace dsopt

#endif // DSOPT_INTERFACES_OPERANDSHARDS_H
