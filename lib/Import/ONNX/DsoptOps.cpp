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

ArrayRef<OpRow> dsoptOps() {
  static const OpRow rows[] = {
      {"StopGradient", 1, kDsoptVersion, stopGradient},
  };
  return rows;
}

} // namespace dsopt::onnx_import
