//===- Declarations.h - what a model says of its values ----------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_DECLARATIONS_H
#define DSOPT_LIB_IMPORT_ONNX_DECLARATIONS_H

#include "ModelFile.h"
#include "NodeBuilder.h"

namespace dsopt::onnx_import {

/// Emits an error where two inputs or two outputs of the model have one name.
mlir::LogicalResult checkDuplicates(const ModelFile &file, mlir::Location location);

/// Emits an error where a value is of another type or shape than the model declares for it.
mlir::LogicalResult checkDeclarations(const ModelFile &file, const Bindings &bindings,
                                      mlir::Location location);

/// Whether a declared output is one float.
bool isScalarFloat(const onnx::ValueInfoProto &output);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_DECLARATIONS_H
