//===- Sharding.h - how the graph dialect's operations shard ----*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_SHARDING_H
#define DSOPT_DIALECT_GRAPH_SHARDING_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches upstream's ShardingInterface (loops, their kinds and indexing maps), which
/// `sharding-propagation` and `shard-partition` read.
void registerShardings(mlir::DialectRegistry &registry);
/// Attaches ShardedReductionOpInterface.
void registerShardedReductions(mlir::DialectRegistry &registry);
/// Attaches SequenceOpInterface and RankDependentOpInterface.
void registerSequences(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_SHARDING_H
