//===- MeasuredValues.h - what metrics need of a model ----------*- C++ -*-===//
//
// Outputs that are logged beside the loss, and values that metrics compare: results of
// @forward behind the loss and the statistics.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H
#define DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H

#include "NodeBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dsopt::onnx_import {

struct MeasuredValue {
  std::string name;
  bool isLogged = false; ///< an output that is a metric itself
  mlir::Value value{};   ///< once it is built
};

/// Fills `found` with what `options` ask for, logged outputs first: those that may have one element by what
/// the model declares. Emits an error and fails where a glob matches no output.
llvm::LogicalResult findMeasured(const onnx::GraphProto &graph, const ImportOptions &options,
                                 llvm::StringRef loss, std::vector<MeasuredValue> &found,
                                 mlir::Location location);

/// Emits the error that no output of one element is to be logged.
llvm::LogicalResult refuseLogged(const onnx::GraphProto &graph, const ImportOptions &options,
                                 llvm::StringRef loss, mlir::Location location);

/// Marks a result of @forward as what it is.
void markMeasured(mlir::func::FuncOp function, unsigned result, const MeasuredValue &value);

/// Fills `outputs` with those of the model that a prediction writes.
llvm::LogicalResult findPredicted(const onnx::GraphProto &graph, const ImportOptions &options,
                                  std::vector<std::string> &outputs, mlir::Location location);
/// An output as something computes it: one that is an input, a parameter or a constant is copied, since a run
/// writes what its kernels do. Null with an error where that is impossible.
mlir::Value computed(Emitter &emitter, mlir::Value output, llvm::StringRef name, mlir::func::FuncOp function);
/// Says of the first results of @forward what they are: the loss, or outputs.
void nameResults(mlir::func::FuncOp function, const ImportOptions &options,
                 llvm::ArrayRef<std::string> outputs, llvm::ArrayRef<mlir::Value> results);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_MEASUREDVALUES_H
