//===- GraphLowerings.h - what the lowerings share --------------*- C++ -*-===//
//
// Builders of the one linalg.generic that each operation becomes. Payloads are
// operations of arith, math, tensor.extract and linalg.index without flags: the
// kernel that an operation lands in decides which flags are allowed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHLOWERINGS_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHLOWERINGS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dsopt::graph {
using Builder = mlir::ImplicitLocOpBuilder;
/// Builds the scalar result of a payload from its scalar arguments.
using ScalarBody = llvm::function_ref<mlir::Value(Builder &, mlir::ValueRange)>;
/// The same with the element's indices.
using IndexedBody = llvm::function_ref<mlir::Value(Builder &, mlir::ValueRange indices, mlir::ValueRange)>;

/// The map by which numpy's broadcasting reads an operand of one shape for an
/// element of another.
mlir::AffineMap broadcastMap(llvm::ArrayRef<int64_t> operand, llvm::ArrayRef<int64_t> result,
                             mlir::MLIRContext *context);
/// One generic over `result`'s elements; operands broadcast.
mlir::Value buildPointwise(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType result,
                           mlir::ValueRange operands, ScalarBody body);
/// The same; `body` reads further tensors by index (see `extract`).
mlir::Value buildIndexed(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType result,
                         mlir::ValueRange operands, IndexedBody body);

/// Kernels compute with signless integers: what is unsigned is known from the operation's own types.
inline bool isUnsigned(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isUnsignedInteger() || element.isInteger(1);
}
mlir::RankedTensorType signless(mlir::RankedTensorType type);
/// A number, of an integer type perhaps, as one that kernels compute with.
mlir::Value constantNumber(Builder &b, mlir::TypedAttr value);

inline mlir::Value constantIndex(Builder &b, int64_t value) {
  return mlir::arith::ConstantIndexOp::create(b, value);
}
/// What graph.round_to makes of one number (GraphLoweringsRounding.cpp).
mlir::Value roundedScalar(Builder &b, RoundToOp op, mlir::Value x);
/// A scalar constant of a float or integer type.
mlir::Value constantScalar(Builder &b, mlir::Type type, double value);

void registerElementwiseLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerRandomLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerReductionLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerMovementLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerWindowLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerBitsLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
void registerUpdateLowerings(GraphDialect *dialect, mlir::MLIRContext *context);
} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHLOWERINGS_H
