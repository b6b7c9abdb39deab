//===- Optimizers.h - the graph dialect's update rules ----------*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_OPTIMIZERS_H
#define DSOPT_DIALECT_GRAPH_OPTIMIZERS_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches OptimizerOpInterface to the update rules.
void registerOptimizers(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_OPTIMIZERS_H
