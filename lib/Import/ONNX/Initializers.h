//===- Initializers.h - which initializers are parameters --------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H
#define DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H

#include "ModelFile.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "llvm/ADT/StringSet.h"

namespace dsopt::onnx_import {

/// What an initializer becomes.
struct Initializer {
  /// Null: it is the constant.
  graph::ParameterOp parameter;
  mlir::DenseElementsAttr constant;
};

/// Decides for each initializer whether it is trained, and makes parameters and
/// constants of those that are asked for.
class Initializers {
public:
  Initializers(ModelFile &file, const ImportOptions &options, mlir::ModuleOp module)
      : file(file), options(options), module(module) {}

  /// Reads the model's marks and checks the globs.
  mlir::LogicalResult classify();
  /// Makes what the initializer of this index becomes.
  mlir::FailureOr<Initializer> make(int index);

private:
  /// Why an initializer is not trained; empty if it is.
  mlir::StringRef whyFrozen(const onnx::TensorProto &tensor, mlir::RankedTensorType type) const;
  mlir::FailureOr<graph::ParameterOp> makeParameter(int index, mlir::RankedTensorType type,
                                                    mlir::StringRef why);
  mlir::FailureOr<mlir::DenseElementsAttr> makeConstant(int index, mlir::RankedTensorType type);
  /// Writes the bytes beside the output; the file's name holds their hash.
  mlir::FailureOr<Extent> spill(mlir::StringRef bytes);

  ModelFile &file;
  const ImportOptions &options;
  mlir::ModuleOp module;
  llvm::StringSet<> buffers, statistics, sizes;
  /// Statistics that micro-batches are folded into.
  llvm::StringSet<> folded;
};

/// Warns where one float initializer is the scale or bias of two operations.
void warnOfMergedInitializers(const ModelFile &file, mlir::ArrayRef<const onnx::NodeProto *> nodes,
                              mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_INITIALIZERS_H
