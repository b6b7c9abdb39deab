//===- Costs.h - flops of the graph dialect's operations --------*- C++ -*-===//
//
// The one count of floating-point operations: stages are balanced by it, the plan
// predicts with it, reports print it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_COSTS_H
#define DSOPT_DIALECT_GRAPH_COSTS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// Attaches CostedOpInterface, ProductOpInterface and FloatSumOpInterface.
void registerCosts(mlir::DialectRegistry &registry);

/// Flops of operations and functions; each kernel is counted once. Emits an error and fails where an
/// operation does not say what it costs.
class FlopCounter {
public:
  explicit FlopCounter(mlir::ModuleOp module) : symbols(module) {}

  /// Of an operation; a call of a kernel costs what the kernel does.
  mlir::FailureOr<int64_t> count(mlir::Operation *op);
  /// Of all operations of a function.
  mlir::FailureOr<int64_t> count(mlir::func::FuncOp function);

private:
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::func::FuncOp, int64_t> functions;
};

/// Bytes that a kernel reads and writes: of what it only gathers from, as much as it takes.
int64_t bytesMoved(mlir::func::FuncOp kernel);
/// The element type of what a kernel writes.
mlir::Type writtenType(mlir::func::FuncOp kernel);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_COSTS_H
