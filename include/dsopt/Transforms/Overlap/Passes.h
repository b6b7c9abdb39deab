//===- Passes.h - when collectives start ------------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_OVERLAP_PASSES_H
#define DSOPT_TRANSFORMS_OVERLAP_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Overlap/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Overlap/Passes.h.inc"

// What the pass of the same name does to a module, by the module's options: each emits an error where it
// fails.
llvm::LogicalResult shareGathers(mlir::ModuleOp module);
llvm::LogicalResult prefetchGathers(mlir::ModuleOp module);
llvm::LogicalResult gatherByNode(mlir::ModuleOp module);
llvm::LogicalResult throttleReductions(mlir::ModuleOp module);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_OVERLAP_PASSES_H
