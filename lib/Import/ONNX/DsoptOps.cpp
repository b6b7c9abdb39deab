//===- DsoptOps.cpp - operators of the domain dsopt ------------------------===//
//
// What PyTorch means and ONNX has no operator for; the Python package writes them.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Only numbers with a fraction have a gradient to stop.
static LogicalResult stopGradient(NodeBuilder &n) {
  mlir::Value value = n.input(0);
  if (!value || !isa<FloatType>(Emitter::elementOf(value)))
    return n.set(0, value);
  return n.set(0, n.e.make<graph::StopGradientOp>(value));
}

/// The loss itself; when a step has computed it, buffers become what is left of them and of new values. The
/// inputs are the loss, the buffers, and their new values.
static LogicalResult updateBuffers(NodeBuilder &n) {
  int count = std::max(n.numInputs() - 1, 0) / 2;
  SmallVector<double> momenta = n.floatsAttr("momenta");
  SmallVector<int64_t> sequential = n.integersAttr("sequential");
  if (n.numInputs() != 1 + 2 * count || (int)momenta.size() != count || (int)sequential.size() != count)
    return n.error() << "has " << n.numInputs() << " inputs, " << momenta.size() << " momenta and "
                     << sequential.size()
                     << " in 'sequential', expected a loss, and of each buffer its new value, "
                     << "momentum and whether it is sequential";
  for (int i = 0; i < count; ++i) {
    graph::ParameterOp buffer = n.parameter(1 + i);
    mlir::Value value = n.input(1 + count + i);
    if (!value)
      return failure();
    if (!buffer || !buffer.getFrozen() || buffer.getType() != value.getType() ||
        !Emitter::elementOf(value).isF32())
      return n.error() << "changes '" << n.inputName(1 + i) << "' to a value of type "
                       << Emitter::typeOf(value)
                       << ", expected a float32 initializer of that type which is not trained";
    n.e.statistics.push_back({buffer, value, momenta[i], sequential[i] != 0, {}});
  }
  return n.alias(0);
}

/// Operators that a backward cannot have: what they leave belongs to forward.
static bool belongsToForward(StringRef op) {
  return op == "Dropout" || op == "Bernoulli" || op == "Multinomial" || op.starts_with("Random") ||
         op == "UpdateBuffers";
}

/// Values whose gradient the model gives: inputs, values and what is saved of them, and of the saved ones and
/// the values' gradients the graph that makes the inputs' gradients.
static LogicalResult customGradient(NodeBuilder &n) {
  Emitter &e = n.e;
  int inputs = n.integerAttr("num_inputs", -1), values = n.integerAttr("num_values", -1);
  int saved = n.numInputs() - inputs - values;
  if (inputs < 0 || values < 1 || saved < 0 || n.numOutputs() > values)
    return n.error() << "has " << n.numInputs() << " inputs, num_inputs " << inputs << " and num_values "
                     << values << ", expected as many, and an output for each value";
  const onnx::GraphProto *backward = n.graph("backward", saved + values);
  if (!backward)
    return failure();
  if (backward->output_size() != inputs)
    return n.error() << "has a backward of " << backward->output_size()
                     << " outputs, expected one for each of " << inputs << " inputs";
  for (const onnx::NodeProto &node : backward->node())
    if (belongsToForward(node.op_type()))
      return n.error() << "has a backward with '" << node.op_type()
                       << "', expected nothing that is random or changes";
  SmallVector<mlir::Value> operands[3];
  for (int i = 0; i < n.numInputs(); ++i) {
    mlir::Value value = n.input(i);
    if (!value)
      return failure();
    if (i < inputs + values && !isa<FloatType>(Emitter::elementOf(value)))
      return n.error() << "has input " << i << " of type " << Emitter::typeOf(value)
                       << ", expected floating point";
    operands[i < inputs ? 0 : i < inputs + values ? 1 : 2].push_back(value);
  }
  // What is known is known inside too.
  SmallVector<mlir::Value> kept;
  for (mlir::Value value : operands[2])
    if (!value.getDefiningOp<graph::ConstantOp>())
      kept.push_back(value);
  auto op = graph::CustomGradientOp::create(e.builder, e.location, ValueRange(operands[1]).getTypes(),
                                            operands[0], operands[1], kept, n.integerAttr("call", 0));
  Block &block = op.getBackward().emplaceBlock();
  size_t statistics = e.statistics.size();
  {
    Emitter::Elsewhere elsewhere(e, block);
    SmallVector<Binding> arguments;
    for (mlir::Value value : operands[2]) {
      auto constant = value.getDefiningOp<graph::ConstantOp>();
      arguments.push_back(
          {constant ? e.constant(constant.getValue()) : block.addArgument(value.getType(), e.location),
           {},
           {}});
    }
    for (mlir::Value value : operands[1])
      arguments.push_back({block.addArgument(value.getType(), e.location), {}, {}});
    FailureOr<SmallVector<Binding>> outputs = n.build(*backward, arguments);
    if (failed(outputs))
      return failure();
    SmallVector<mlir::Value> gradients;
    for (auto [i, output] : llvm::enumerate(*outputs)) {
      mlir::Value gradient = n.read(output, backward->output(i).name());
      if (!gradient)
        return failure();
      if (gradient.getType() != operands[0][i].getType())
        return n.error() << "has a backward that gives '" << backward->output(i).name() << "' of type "
                         << Emitter::typeOf(gradient) << ", expected its input's type "
                         << Emitter::typeOf(operands[0][i]);
      gradients.push_back(gradient);
    }
    graph::YieldOp::create(e.builder, e.location, gradients);
  }
  if (e.statistics.size() != statistics)
    return n.error() << "has a backward that normalizes by batches, expected none with running statistics";
  for (int i = 0; i < n.numOutputs(); ++i)
    if (n.wants(i) && failed(n.set(i, op.getResult(i))))
      return failure();
  return verify(op);
}

ArrayRef<OpRow> dsoptOps() {
  static const OpRow rows[] = {
      {"CTCLoss", 1, kDsoptVersion, ctcLoss},
      {"CustomGradient", 1, kDsoptVersion, customGradient},
      {"StopGradient", 1, kDsoptVersion, stopGradient},
      {"UpdateBuffers", 1, kDsoptVersion, updateBuffers},
  };
  return rows;
}

} // namespace dsopt::onnx_import
