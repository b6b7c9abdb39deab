//===- Passes.h - waits and addresses ---------------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_ARENA_PASSES_H
#define DSOPT_TRANSFORMS_ARENA_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Arena/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Arena/Passes.h.inc"

// What the pass of the same name does to a module, by the module's options: each emits an error where it
// fails.
llvm::LogicalResult insertWaits(mlir::ModuleOp module);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_ARENA_PASSES_H
