//===- Tiling.h - products in parts -----------------------------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_TILING_H
#define DSOPT_DIALECT_GRAPH_TILING_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches TileableOpInterface to the operations that can be computed in parts.
void registerTiling(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_TILING_H
