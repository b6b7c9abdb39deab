//===- FreezeUnreached.h - parameters without a gradient ---------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H
#define DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H

#include "mlir/IR/BuiltinOps.h"

namespace dsopt::onnx_import {

/// Freezes the parameters that the loss, `@forward`'s first result, does not depend on by what has a
/// derivative: those behind a rounding, a comparison or an index.
void freezeUnreached(mlir::ModuleOp module);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_FREEZEUNREACHED_H
