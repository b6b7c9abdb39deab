//===- Context.h - what a micro-batch's random numbers follow from -*- C++ -*-===//
//
// A graph with random numbers has one input that no data gives: the runtime fills it for each
// micro-batch (DESIGN 2.1 rule 8). Its fields are in dsopt/Runtime/Scalars.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_CONTEXT_H
#define DSOPT_DIALECT_GRAPH_CONTEXT_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Runtime/Grid.h"

namespace dsopt::graph {
/// The `graph.name` of the function's argument, which `graph.context` tells from a model's input.
inline constexpr llvm::StringLiteral kContextName = "context";

mlir::RankedTensorType contextType(mlir::MLIRContext *context);
/// Whether a function's argument is the context.
bool isContext(mlir::BlockArgument argument);
/// The function's argument of that name; made behind the others where there is none.
mlir::Value getOrAddContext(mlir::func::FuncOp function);
/// This rank's place along tp or sp, which a context has: [1], of an integer type.
mlir::Value rankAlong(Axis axis, mlir::OpBuilder &builder, mlir::Location location, mlir::Value context,
                      mlir::Type integer);
/// Whether what a slice takes of a context has that place.
bool hasRankAlong(Axis axis, SliceOp slice);
/// The stream of the model's random operation `number`. Of numbers that a model chooses itself
/// (`isSeed`), and of an operation's second draw, the streams are others.
mlir::DenseElementsAttr randomStream(mlir::MLIRContext *context, int64_t number, bool isSeed = false,
                                     bool isSecond = false);

/// Dropout with a ratio keeps an element whose random word is not below this.
uint32_t dropoutThreshold(double ratio);
/// What elements that are kept are multiplied by.
double dropoutScale(double ratio);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_CONTEXT_H
