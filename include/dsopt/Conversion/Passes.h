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
/// What blocks-to-segments does, for planning on a copy.
llvm::LogicalResult blocksToSegments(mlir::ModuleOp module);
} // namespace dsopt

#endif // DSOPT_CONVERSION_PASSES_H
