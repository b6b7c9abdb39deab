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
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace dsopt {

/// Records that the module's own size of dimension `name` is `size`. Returns the options under which the
/// other sizes are compiled: the module's, with its cut into stages, which it has already.
mlir::DictionaryAttr setDimension(mlir::ModuleOp module, llvm::StringRef name, int64_t size);

/// Whether `other`, the model with a number of rows at `size`, has the functions of `module`, operation by
/// operation and in the same element types: then no row's bits depend on how many there are. Emits an error
/// and fails at the first function that differs.
llvm::LogicalResult verifySameFunctions(mlir::ModuleOp module, mlir::ModuleOp other, int64_t size);

/// Puts `other`, the model with the dimension at `size`, into `module`, where merge-variants finds it.
void nestVariant(mlir::ModuleOp module, mlir::OwningOpRef<mlir::ModuleOp> other, int64_t size);

} // namespace dsopt

#endif // DSOPT_PIPELINE_VARIANTS_H
