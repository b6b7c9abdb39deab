//===- InputShapes.h - the shapes of a model's inputs ------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_INPUTSHAPES_H
#define DSOPT_LIB_IMPORT_ONNX_INPUTSHAPES_H

#include "ModelFile.h"

#include "dsopt/Import/ImportONNX.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dsopt::onnx_import {

/// What an input's open dimension without a name is called: "x:2".
std::string axisName(const std::string &input, int64_t axis);

/// Gives each dimension of the inputs that the model leaves open without a name (`?`, none, -1) one of its
/// own (axisName), and inputs without a shape as many as the options' data or sizes
/// say.
void nameOpenDimensions(ModelFile &file, const ImportOptions &options);

/// Binds symbolic dimensions of `inputs` to what the options give and returns the
/// inputs' types, in order. Emits an error and fails where a dimension stays
/// unknown or two sources disagree.
mlir::FailureOr<std::vector<mlir::RankedTensorType>>
bindInputs(const ModelFile &file, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
           const ImportOptions &options, mlir::Location location);

/// Removes those of `inputs` that are `optional` and cannot be bound, and returns why not, by name.
std::map<std::string, std::string> takeUnbound(const ModelFile &file,
                                               std::vector<const onnx::ValueInfoProto *> &inputs,
                                               const llvm::StringSet<> &optional,
                                               const ImportOptions &options, mlir::Location location);

/// The shape that micro-batches of the data have for an input of this rank; empty
/// where the data has no such array. The first size is -1 where only the size of
/// a micro-batch tells it. Emits an error and fails where the array has fewer axes.
mlir::FailureOr<std::optional<std::vector<int64_t>>> microBatchShape(const ImportOptions &options,
                                                                     const std::string &input, int64_t rank,
                                                                     mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_INPUTSHAPES_H
