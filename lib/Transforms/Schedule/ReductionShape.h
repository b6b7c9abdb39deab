//===- ReductionShape.h - in which order gradients are added ----*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_REDUCTIONSHAPE_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_REDUCTIONSHAPE_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// How many micro-batches there are and how their gradients are added (DESIGN 2.1 rule 4).
struct ReductionShape {
  int64_t ranks = 1;        ///< dp
  int64_t microBatches = 1; ///< M, a rank
  int64_t shards = 1;       ///< V
  bool local = true;        ///< else sharded
  int64_t shardsPerRank() const { return shards / ranks; }
  int64_t perShard() const { return microBatches / shardsPerRank(); }
  /// The shard, within the rank, and the index in it of position `p` of the run order.
  int64_t shardOf(int64_t p) const { return local ? p / perShard() : p % shardsPerRank(); }
  int64_t indexOf(int64_t p) const { return local ? p % perShard() : p / shardsPerRank(); }
};

/// That of the module's options; emits an error and fails where they do not fit each other.
llvm::FailureOr<ReductionShape> readReductionShape(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_REDUCTIONSHAPE_H
