//===- DsoptOps.cpp - operators of the domain dsopt ------------------------===//
//
// What PyTorch means and ONNX has no operator for; the Python package writes them.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

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
    n.e.statistics.push_back({buffer, value, momenta[i], sequential[i] != 0});
  }
  return n.alias(0);
}

ArrayRef<OpRow> dsoptOps() {
  static const OpRow rows[] = {
      {"StopGradient", 1, kDsoptVersion, stopGradient},
      {"UpdateBuffers", 1, kDsoptVersion, updateBuffers},
  };
  return rows;
}

} // namespace dsopt::onnx_import
