//===- Lowerings.h - the graph dialect's operations as linalg ---*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_LOWERINGS_H
#define DSOPT_DIALECT_GRAPH_LOWERINGS_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches DecomposableOpInterface to the composites.
void registerDecompositions(mlir::DialectRegistry &registry);
/// Attaches LowerableOpInterface to every operation that stage 3 and later may
/// meet; composites and graph.cumsum have none.
void registerLowerings(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_LOWERINGS_H
