//===- Passes.h - the order of runs and transfers ---------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_ORDER_PASSES_H
#define DSOPT_TRANSFORMS_ORDER_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Order/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Order/Passes.h.inc"

// What the pass of the same name does to a module, by the module's options: each emits an error where it
// fails.
/// Writes the programs of these functions, which stay.
llvm::LogicalResult orderPipeline(mlir::ModuleOp module);

/// Attaches to collectives on values what their actions are (ValueCollectiveOpInterface).
void registerCollectiveActions(mlir::DialectRegistry &registry);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_ORDER_PASSES_H
