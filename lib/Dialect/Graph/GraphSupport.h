//===- GraphSupport.h - what the dialect's sources share --------*- C++ -*-===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHSUPPORT_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHSUPPORT_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// Emits "'<operation>' op <what>", where a location is known, and fails.
template <typename... Args>
mlir::LogicalResult shapeError(std::optional<mlir::Location> location, llvm::StringRef operation,
                               Args &&...what) {
  return mlir::emitOptionalError(location, "'", operation, "' op ", std::forward<Args>(what)...);
}

/// Infers the result types of an InferTypeOpInterface again and compares them.
mlir::LogicalResult verifyInferredTypes(mlir::Operation *op);

/// The type of a value, which is a tensor of static shape.
inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHSUPPORT_H
