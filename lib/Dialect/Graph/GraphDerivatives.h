//===- GraphDerivatives.h - how a rule for a gradient is written -*- C++ -*-===//
//
// A rule is a function of an operation and a GradientBuilder: it asks which
// operands need a gradient and sets them, in primitives of the dialect. Private
// to GraphDerivatives*.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHDERIVATIVES_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHDERIVATIVES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt::graph {

/// The gradients of one operation under construction.
class GradientBuilder {
public:
  GradientBuilder(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange resultGrads,
                  llvm::ArrayRef<bool> needed, llvm::MutableArrayRef<mlir::Value> operandGrads)
      : op(op), builder(builder), resultGrads(resultGrads), needed(needed), operandGrads(operandGrads) {}

  /// The gradient of a result; null where it has none.
  mlir::Value grad(unsigned result = 0) { return resultGrads[result]; }
  /// Whether the operand's gradient is wanted.
  bool needs(unsigned operand) { return needed[operand]; }
  /// Sets an operand's gradient, summed back over what broadcasting expanded.
  void set(unsigned operand, mlir::Value value) {
    operandGrads[operand] = sumTo(value, op->getOperand(operand).getType());
  }

  /// Builds an operation whose result types follow from its operands.
  template <typename OpTy, typename... Args> mlir::Value make(Args &&...args) {
    return OpTy::create(builder, op->getLoc(), std::forward<Args>(args)...)->getResult(0);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return make<AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return make<SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return make<MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return make<DivOp>(a, b); }
  mlir::Value neg(mlir::Value a) { return make<NegOp>(a); }
  /// A rank-0 constant of `like`'s element type.
  mlir::Value scalar(double value, mlir::Value like);
  /// Sum (or mean) over axes.
  mlir::Value sum(mlir::Value a, llvm::ArrayRef<int64_t> axes, bool keepdims);
  mlir::Value mean(mlir::Value a, llvm::ArrayRef<int64_t> axes, bool keepdims);
  mlir::Value reshape(mlir::Value a, mlir::Type type);
  mlir::Value expand(mlir::Value a, mlir::Type type);
  /// Builds a block's operations with these for its arguments; what its terminator returns.
  llvm::SmallVector<mlir::Value> inlined(mlir::Block &block, mlir::ValueRange arguments);
  /// The adjoint of broadcasting a value of `type` to the value's shape.
  mlir::Value sumTo(mlir::Value a, mlir::Type type);

private:
  mlir::Operation *op;
  mlir::OpBuilder &builder;
  mlir::ValueRange resultGrads;
  llvm::ArrayRef<bool> needed;
  llvm::MutableArrayRef<mlir::Value> operandGrads;
};

/// Whether a gradient can reach the operand; the operations that say otherwise have an overload.
inline bool passesGradient(mlir::Operation *, unsigned) { return true; }
inline bool passesGradient(StopGradientOp, unsigned) { return false; }
inline bool passesGradient(CustomGradientOp op, unsigned operand) { return operand < op.getInputs().size(); }

/// The interface of one operation by its rule.
template <typename OpTy, llvm::LogicalResult (*rule)(OpTy, GradientBuilder &)>
struct DerivativeModel : DifferentiableOpInterface::ExternalModel<DerivativeModel<OpTy, rule>, OpTy> {
  llvm::LogicalResult buildGradient(mlir::Operation *op, mlir::OpBuilder &builder,
                                    mlir::ValueRange resultGrads, llvm::ArrayRef<bool> needed,
                                    llvm::MutableArrayRef<mlir::Value> operandGrads) const {
    GradientBuilder gradients(op, builder, resultGrads, needed, operandGrads);
    return rule(llvm::cast<OpTy>(op), gradients);
  }
  bool passesGradient(mlir::Operation *op, unsigned operand) const {
    return graph::passesGradient(llvm::cast<OpTy>(op), operand);
  }
};

/// Attaches a rule to its operation.
template <typename OpTy, llvm::LogicalResult (*rule)(OpTy, GradientBuilder &)>
void attachDerivative(mlir::MLIRContext *context) {
  OpTy::template attachInterface<DerivativeModel<OpTy, rule>>(*context);
}

/// The rules of each file.
void attachElementwiseDerivatives(mlir::MLIRContext *context);
void attachShapeDerivatives(mlir::MLIRContext *context);
void attachWindowDerivatives(mlir::MLIRContext *context);
void attachNNDerivatives(mlir::MLIRContext *context);
void attachGivenDerivatives(mlir::MLIRContext *context);
void attachAttentionDerivative(mlir::MLIRContext *context);

} // namespace dsopt::graph

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHDERIVATIVES_H
