//===- GraphNewtonSchulz.h - singular values to near 1 ----------*- C++ -*-===//
#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHNEWTONSCHULZ_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHNEWTONSCHULZ_H

#include "mlir/IR/Builders.h"

namespace dsopt::graph {
/// What Muon makes of the direction of a whole matrix. Outputs are rows unless `rowsAreInputs`.
mlir::Value buildNewtonSchulz(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value direction,
                              bool matchRms, bool rowsAreInputs);
} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHNEWTONSCHULZ_H
