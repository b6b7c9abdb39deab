//===- BoundInputs.h - inputs that are bound to values -----------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_BOUNDINPUTS_H
#define DSOPT_LIB_IMPORT_ONNX_BOUNDINPUTS_H

#include "ModelFile.h"

#include "dsopt/Import/ImportONNX.h"

namespace dsopt::onnx_import {

/// Makes initializers of the inputs that the options bind to values, and sizes of the symbolic dimensions
/// that the numbers of values say. Emits an error and fails where an input cannot have what it is bound to.
mlir::LogicalResult bindToValues(ModelFile &file, const ImportOptions &options, mlir::Location location);

/// How a value of this name that is computed of inputs like sizes and flags alone becomes known, for the end
/// of a message: "; -input=NAME=VALUE makes it known". Empty for others.
std::string howToBind(mlir::Value value, llvm::StringRef name);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_BOUNDINPUTS_H
