//===- Passes.h - copies between memories -----------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_OFFLOAD_PASSES_H
#define DSOPT_TRANSFORMS_OFFLOAD_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Offload/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Offload/Passes.h.inc"

// What the pass of the same name does to a module, by the module's options: each emits an error where it
// fails.
/// What takes about as long to copy as an action takes to start.
constexpr int64_t kLeastOffloadedBytes = 65536;

llvm::LogicalResult offloadGathers(mlir::ModuleOp module);
llvm::LogicalResult offloadUpdates(mlir::ModuleOp module);
/// Values of at least so many bytes.
llvm::LogicalResult offloadActivations(mlir::ModuleOp module, int64_t leastBytes = kLeastOffloadedBytes);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_OFFLOAD_PASSES_H
