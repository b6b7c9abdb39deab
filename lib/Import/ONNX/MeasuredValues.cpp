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

Value computed(Emitter &emitter, Value output, StringRef name, func::FuncOp function) {
  Value source = output;
  while (auto reshape = source.getDefiningOp<graph::ReshapeOp>())
    source = reshape.getInput();
  Operation *op = source.getDefiningOp();
  if (op && !isa<graph::ConstantOp, graph::ReadOp>(op))
    return output;
  bool isConstant = isa_and_nonnull<graph::ConstantOp>(op);
  if (!isConstant)
    return Emitter::elementOf(output).isInteger(1) ? emitter.make<graph::OrOp>({output, output})
                                                   : emitter.maximum(output, output);
  // Nothing folds what a number of the data is compared with.
  for (Value number : function.getArguments()) {
    if (Emitter::typeOf(number).getNumElements() == 0)
      continue;
    for (int64_t axis = 0; axis < Emitter::rankOf(number); ++axis)
      number = emitter.slice(number, axis, 0, 1);
    number = emitter.reshape(number, {});
    return emitter.where(emitter.less(number, number), output, output);
  }
  emitter.error() << "output '" << name
                  << "' is a constant, and the model has no input that says how often it "
                  << "is to be written; -outputs=GLOB chooses others";
  return {};
}

void nameResults(func::FuncOp function, const ImportOptions &options, ArrayRef<std::string> outputs,
                 ArrayRef<Value> results) {
  Builder builder(function.getContext());
  for (auto [i, output] : llvm::enumerate(outputs))
    if (options.returns == Returns::Predictions) {
      function.setResultAttr(i, graph::kPredictionAttr, builder.getStringAttr(output));
      function.setResultAttr(i, graph::kShapeAttr,
                             builder.getDenseI64ArrayAttr(Emitter::shapeOf(results[i])));
    } else {
      StringRef name = options.returns == Returns::Loss ? "loss" : StringRef(output);
      function.setResultAttr(i, graph::kNameAttr, builder.getStringAttr(name));
    }
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
