//===- AttachedLoss.h - a loss put on two values of a model ------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_ATTACHEDLOSS_H
#define DSOPT_LIB_IMPORT_ONNX_ATTACHEDLOSS_H

#include "NodeBuilder.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace dsopt::onnx_import {

/// What is to be minimized: a value of the model, or a loss put on two of them.
struct Loss {
  enum Kind { Value, CrossEntropy, MeanSquare } kind = Value;
  std::string output, target;
};

/// The loss of `output` and `target`, which becomes an input of the function where it is null.
/// Cross-entropies of probabilities are taken of the scores before them; a warning says so. `nameOf` gives
/// the model's name of a value, empty where it has none. Emits an error and fails where the two do not fit.
mlir::FailureOr<Value> attachLoss(Emitter &emitter, mlir::func::FuncOp function, const Loss &loss,
                                  const ImportOptions &options, Value output, Value &target,
                                  llvm::function_ref<std::string(Value)> nameOf, mlir::Location location);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_ATTACHEDLOSS_H
