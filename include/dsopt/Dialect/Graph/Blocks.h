//===- Blocks.h - the outlined blocks of a module ---------------*- C++ -*-===//
//
// What the stages after kernels ask about block functions: which there are, and
// which state they touch. Nothing is owned; the module must not change under it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_BLOCKS_H
#define DSOPT_DIALECT_GRAPH_BLOCKS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dsopt::graph {

/// The functions of one block; a phase without operations has none, and what is not trained has only
/// `evaluation`.
struct Block {
  mlir::func::FuncOp forward, backward, weights, evaluation;
  /// Those that exist, in order F, B, W, E.
  llvm::SmallVector<mlir::func::FuncOp, 4> functions() const;
  /// Those of a step: F, B and W, or E where nothing is trained.
  llvm::SmallVector<mlir::func::FuncOp, 4> stepFunctions() const;
};

/// The module's blocks by number. Fails with a message where a function's
/// attributes are wrong or a number is missing.
llvm::FailureOr<llvm::SmallVector<Block>> collectBlocks(mlir::ModuleOp module);

/// Parameters that a block function reads, in order of the first read.
llvm::SetVector<mlir::StringAttr> readParameters(mlir::func::FuncOp function, mlir::SymbolTable &symbols);

/// Gradient states that a function accumulates into, in order.
llvm::SetVector<mlir::StringAttr> accumulatedStates(mlir::func::FuncOp function);

} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_BLOCKS_H
