//===- Costs.h - flops of the graph dialect's operations --------*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_COSTS_H
#define DSOPT_DIALECT_GRAPH_COSTS_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches CostedOpInterface to operations that do not cost one flop for each
/// element of their results.
void registerCosts(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_COSTS_H
