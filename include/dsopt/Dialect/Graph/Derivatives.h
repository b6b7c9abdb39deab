//===- Derivatives.h - gradients of the graph dialect's operations -*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_DERIVATIVES_H
#define DSOPT_DIALECT_GRAPH_DERIVATIVES_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class DialectRegistry;
}

namespace dsopt::graph {
/// Attaches DifferentiableOpInterface to every operation that has a gradient.
void registerDerivatives(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_DERIVATIVES_H
