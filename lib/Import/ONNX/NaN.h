//===- NaN.h - weights that are no numbers -----------------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_NAN_H
#define DSOPT_LIB_IMPORT_ONNX_NAN_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

namespace dsopt::onnx_import {

/// Whether one of these elements is no number. All weights are looked at: there is no branch in it, so that
/// it takes many at once.
bool hasNaN(llvm::StringRef bytes, mlir::FloatType type);

/// Warns of an initializer with such elements, which training only spreads.
void warnOfNaN(llvm::StringRef bytes, mlir::FloatType type, llvm::StringRef name, mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_NAN_H
