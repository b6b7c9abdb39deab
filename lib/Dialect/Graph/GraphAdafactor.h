//===- GraphAdafactor.h - factored second moments ---------------*- C++ -*-===//
#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHADAFACTOR_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHADAFACTOR_H

#include "dsopt/Interfaces/Optimizers.h"
#include "mlir/IR/Builders.h"

namespace dsopt::graph {
/// What Adafactor keeps of a parameter: means over the last dimension and over the one before, or of less
/// than two dimensions the whole second moment.
llvm::SmallVector<WholeState> adafactorStates(mlir::RankedTensorType parameter);
/// The clipped update of a whole parameter, and the new states. `operands` are its gradient, the scalars and
/// the states.
llvm::SmallVector<mlir::Value> buildAdafactor(mlir::OpBuilder &builder, mlir::Location loc,
                                              mlir::ValueRange operands);
} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHADAFACTOR_H
