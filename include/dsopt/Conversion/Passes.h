//===- Passes.h - the conversions' passes -----------------------*- C++ -*-===//
//
// Declarations and registration of what Passes.td defines.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_PASSES_H
#define DSOPT_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dsopt/Conversion/Passes.h.inc"
/// What split-parts does, for planning on a copy.
llvm::LogicalResult splitParts(mlir::ModuleOp module);
/// What blocks-to-segments does, for planning on a copy.
llvm::LogicalResult blocksToSegments(mlir::ModuleOp module);
/// Leaves copies of segments that it changes; finds them again when it is asked anew.
llvm::LogicalResult mergeTiedGradients(mlir::ModuleOp module);
llvm::LogicalResult packWeights(mlir::ModuleOp module);
} // namespace dsopt

#endif // DSOPT_CONVERSION_PASSES_H
