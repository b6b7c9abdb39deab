//===- Variants.h - one program for several sizes of a dimension -*- C++ -*-===//
//
// A model with several values of a symbolic dimension is compiled up to its
// segments once for each; the smaller ones are then merged into the module of the
// largest. From there on they are functions and programs like its own: they share
// parameters, state and arena, and a step runs the smallest that its micro-batches fit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PIPELINE_VARIANTS_H
#define DSOPT_PIPELINE_VARIANTS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dsopt {

/// Records that the module's own size of dimension `name` is `size`. Returns the options under which the
/// other sizes are compiled: the module's, with its cut into stages, which it has already.
mlir::DictionaryAttr setDimension(mlir::ModuleOp module, llvm::StringRef name, int64_t size);

/// Moves the segments, kernels, constants and runs of `other`, the model with the dimension at `size`,
/// into `module`. Emits an error and fails where the two do not cut into the same blocks of parameters.
llvm::LogicalResult mergeVariant(mlir::ModuleOp module, mlir::ModuleOp other, int64_t size);

} // namespace dsopt

#endif // DSOPT_PIPELINE_VARIANTS_H
