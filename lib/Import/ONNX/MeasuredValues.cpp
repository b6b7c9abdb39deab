//===- MeasuredValues.cpp - what metrics need of a model ------------------===//

#include "MeasuredValues.h"

#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Interfaces/Globs.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Whether an output has one element, as far as the model says.
static bool mayBeScalar(const onnx::ValueInfoProto &output) {
  if (!output.type().has_tensor_type() || !output.type().tensor_type().has_shape())
    return !output.type().has_sequence_type();
  return llvm::all_of(output.type().tensor_type().shape().dim(),
                      [](auto &dim) { return !dim.has_dim_value() || dim.dim_value() == 1; });
}

LogicalResult findMeasured(const onnx::GraphProto &graph, const ImportOptions &options, StringRef loss,
                           std::vector<MeasuredValue> &found, Location location) {
  auto add = [&](const std::string &name, bool isLogged) {
    if (llvm::none_of(found, [&](auto &one) { return one.name == name && one.isLogged == isLogged; }))
      found.push_back({name, isLogged});
  };
  for (const std::string &glob : options.logOutputs) {
    FailureOr<Glob> pattern = Glob::parse("log-outputs", glob, [&] { return emitError(location); });
    if (failed(pattern))
      return failure();
    bool any = false;
    for (const onnx::ValueInfoProto &output : graph.output())
      if (output.name() != loss && pattern->matches(output.name())) {
        any = true;
        if (mayBeScalar(output))
          add(output.name(), true);
      }
    if (!any || found.empty())
      return refuseLogged(graph, options, loss, location);
  }
  for (const std::string &name : options.compared)
    add(name, false);
  return success();
}

LogicalResult refuseLogged(const onnx::GraphProto &graph, const ImportOptions &options, StringRef loss,
                           Location location) {
  std::vector<std::string> others;
  for (const onnx::ValueInfoProto &output : graph.output())
    if (output.name() != loss)
      others.push_back(output.name());
  return emitError(location) << "-log-outputs=" << llvm::join(options.logOutputs, ",")
                             << " matches no output of one element beside the loss (other outputs: "
                             << (others.empty() ? "none" : llvm::join(others, ", ")) << ")";
}

LogicalResult findPredicted(const onnx::GraphProto &graph, const ImportOptions &options,
                            std::vector<std::string> &outputs, Location location) {
  std::vector<char> chosen(graph.output_size(), options.predicted.empty());
  for (const std::string &glob : options.predicted) {
    FailureOr<Glob> pattern = Glob::parse("outputs", glob, [&] { return emitError(location); });
    if (failed(pattern))
      return failure();
    bool any = false;
    std::vector<std::string> names;
    for (auto [i, output] : llvm::enumerate(graph.output())) {
      names.push_back(output.name());
      if (pattern->matches(output.name()))
        any = chosen[i] = true;
    }
    if (!any)
      return emitError(location) << "-outputs=" << glob
                                 << " matches no output of the model: " << llvm::join(names, ", ");
  }
  for (auto [i, output] : llvm::enumerate(graph.output()))
    if (chosen[i])
      outputs.push_back(output.name());
  return success();
}

/// Marks a result of @forward as the output that it is.
static LogicalResult markPredicted(func::FuncOp function, unsigned result, Value value, StringRef output) {
  Builder builder(function.getContext());
  function.setResultAttr(result, graph::kPredictionAttr, builder.getStringAttr(output));
  function.setResultAttr(result, graph::kShapeAttr,
                         builder.getDenseI64ArrayAttr(cast<RankedTensorType>(value.getType()).getShape()));
  while (auto reshape = value.getDefiningOp<graph::ReshapeOp>())
    value = reshape.getInput();
  Operation *op = value.getDefiningOp();
  if (op && !isa<graph::ConstantOp, graph::ReadOp>(op))
    return success();
  return emitError(function.getLoc())
         << "output '" << output << "' is "
         << (!op                      ? "an input"
             : isa<graph::ReadOp>(op) ? "a parameter"
                                      : "a constant")
         << " itself, expected what the model computes; -outputs=GLOB chooses others";
}

LogicalResult nameResults(func::FuncOp function, const ImportOptions &options, ArrayRef<std::string> outputs,
                          ArrayRef<Value> results) {
  for (auto [i, output] : llvm::enumerate(outputs))
    if (options.returns == Returns::Predictions) {
      if (failed(markPredicted(function, i, results[i], output)))
        return failure();
    } else {
      StringRef name = options.returns == Returns::Loss ? "loss" : StringRef(output);
      function.setResultAttr(i, graph::kNameAttr, StringAttr::get(function.getContext(), name));
    }
  return success();
}

void markMeasured(func::FuncOp function, unsigned result, const MeasuredValue &value) {
  MLIRContext *context = function.getContext();
  if (value.isLogged)
    function.setResultAttr(result, graph::kMetricAttr,
                           graph::MetricAttr::get(context, value.name, Combine::Mean));
  else
    function.setResultAttr(result, graph::kOutputAttr, StringAttr::get(context, value.name));
}

} // namespace dsopt::onnx_import
