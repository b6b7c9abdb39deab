//===- MeasuredValues.h - what metrics need of a model ----------*- C++ -*-===//
//
// Outputs that are logged beside the loss, and values that metrics compare: results of
// @forward behind the loss and the statistics.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H
#define DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H

#include "ModelFile.h"

#include "dsopt/Import/ImportONNX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dsopt::onnx_import {

struct MeasuredValue {
  std::string name;
  bool isLogged = false; ///< an output that is a metric itself
  mlir::Value value{};   ///< once it is built
};

/// What `options` ask for, logged outputs first: those that may have one element by what the model declares.
/// Emits an error and fails where a glob matches no output.
llvm::FailureOr<std::vector<MeasuredValue>> findMeasured(const onnx::GraphProto &graph,
                                                         const ImportOptions &options, llvm::StringRef loss,
                                                         mlir::Location location);

/// Emits the error that no output of one element is to be logged.
llvm::LogicalResult refuseLogged(const onnx::GraphProto &graph, const ImportOptions &options,
                                 llvm::StringRef loss, mlir::Location location);

/// Marks a result of @forward as what it is.
void markMeasured(mlir::func::FuncOp function, unsigned result, const MeasuredValue &value);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H
