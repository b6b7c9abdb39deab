//===- BagOps.h - PyTorch's EmbeddingBag -------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_IMPORT_ONNX_BAGOPS_H
#define DSOPT_LIB_IMPORT_ONNX_BAGOPS_H

#include "NodeBuilder.h"

namespace dsopt::onnx_import {

/// Builds a loop that is an EmbeddingBag as PyTorch's exporters write it; false if it is none. Fails
/// with an error.
mlir::FailureOr<bool> buildBags(NodeBuilder &n, const onnx::GraphProto &body);

} // namespace dsopt::onnx_import

#endif // DSOPT_LIB_IMPORT_ONNX_BAGOPS_H
