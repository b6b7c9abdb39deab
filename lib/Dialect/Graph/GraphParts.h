//===- GraphParts.h - primitive operations in short -------------*- C++ -*-===//
//
// What is written in terms of primitives: composites, and reductions by shards.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHPARTS_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHPARTS_H

#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dsopt::graph {

/// Builds primitive operations.
struct Parts {
  mlir::ImplicitLocOpBuilder b;

  Parts(mlir::OpBuilder &builder, mlir::Operation *op) : b(op->getLoc(), builder) {}

  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return Op::create(b, std::forward<Args>(args)...)->getResult(0);
  }
  /// A constant of the element type of `like`.
  mlir::Value scalar(double value, mlir::Value like) {
    return scalarConstant(b, b.getLoc(), mlir::getElementTypeOrSelf(like), value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) { return make<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return make<SubOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return make<MulOp>(x, y); }
  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return make<ReduceSumOp>(x, axes, /*keepdims=*/true);
  }
  mlir::Value max(mlir::Value x, llvm::ArrayRef<int64_t> axes) {
    return make<ReduceMaxOp>(x, axes, /*keepdims=*/true);
  }
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keepdims = true) {
    int64_t count = 1;
    for (int64_t axis : axes)
      count *= llvm::cast<mlir::RankedTensorType>(x.getType()).getDimSize(axis);
    return make<DivOp>(make<ReduceSumOp>(x, axes, keepdims), scalar(count, x));
  }
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape) {
    return make<ReshapeOp>(
        mlir::RankedTensorType::get(shape, llvm::cast<mlir::RankedTensorType>(x.getType()).getElementType()),
        x);
  }
};

} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHPARTS_H
