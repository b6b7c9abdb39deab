//===- Passes.h - what ends a step ------------------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_STEP_PASSES_H
#define DSOPT_TRANSFORMS_STEP_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Step/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Step/Passes.h.inc"

// What the pass of the same name does to a module, by the module's options: each emits an error where it
// fails.
llvm::LogicalResult placeReductions(mlir::ModuleOp module);
/// Writes another program beside each step's where updates lag.
llvm::LogicalResult delayUpdates(mlir::ModuleOp module);
/// Writes another program beside each step's where the optimizer's variance freezes.
llvm::LogicalResult freezeUpdates(mlir::ModuleOp module);
/// Takes update kernels from @update, which stays.
llvm::LogicalResult finishStep(mlir::ModuleOp module);
/// Whether updates need what all agree on, unless they lag a step behind: a factor of clipped gradients, or
/// that those of a scaled loss are finite.
bool updatesNeedAgreement(mlir::ModuleOp module);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_STEP_PASSES_H
