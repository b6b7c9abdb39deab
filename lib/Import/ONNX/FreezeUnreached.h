//===- FreezeUnreached.h - parameters without a gradient ---------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H
#define DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt::onnx_import {

/// Freezes the parameters that none of these results of `@forward` depends on by what has a derivative: those
/// behind a rounding, a comparison or an index.
void freezeUnreached(mlir::ModuleOp module, llvm::ArrayRef<mlir::Value> results);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H
