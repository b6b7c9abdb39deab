//===- Names.h - what values are called in print ----------------*- C++ -*-===//
#ifndef DSOPT_DIALECT_GRAPH_NAMES_H
#define DSOPT_DIALECT_GRAPH_NAMES_H

#include "mlir/IR/DialectRegistry.h"

namespace dsopt::graph {
/// Values that are read are printed under the name of their parameter or state, results of calls under the
/// callee's.
void registerNames(mlir::DialectRegistry &registry);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_NAMES_H
