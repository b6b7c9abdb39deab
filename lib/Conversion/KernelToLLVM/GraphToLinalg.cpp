//===- GraphToLinalg.cpp - a kernel's operations as linalg on tensors -----===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_GRAPHTOLINALG
#include "dsopt/Conversion/Passes.h.inc"

namespace {
/// Whether it widens the stored floats of an argument, of any shape, for operations of the kernel. What the
/// kernel returns is computed by a loop of its own.
bool extendsArgument(graph::CastOp cast) {
  Type from = getElementTypeOrSelf(cast.getInput().getType()), to = getElementTypeOrSelf(cast.getType());
  return isa<BlockArgument>(cast.getInput()) && isa<FloatType>(from) && isa<FloatType>(to) &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth() &&
         llvm::none_of(cast->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
}

/// The same bits without a sign; null for what is no integer with one.
Type signless(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto integer = tensor ? dyn_cast<IntegerType>(tensor.getElementType()) : IntegerType();
  return integer && !integer.isSignless()
             ? Type(tensor.clone(IntegerType::get(type.getContext(), integer.getWidth())))
             : type;
}

struct GraphToLinalg : impl::GraphToLinalgBase<GraphToLinalg> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(graph::kIterateAttr) || function.isExternal())
      return;
    // Operations keep their own operands until all are lowered: whether an integer is unsigned is said there.
    IRMapping values;
    Block &body = function.front();
    OpBuilder atStart = OpBuilder::atBlockBegin(&body);
    for (Value argument : body.getArguments())
      if (Type bits = signless(argument.getType()); bits != argument.getType())
        values.map(
            argument,
            UnrealizedConversionCastOp::create(atStart, argument.getLoc(), bits, argument).getResult(0));
    SmallVector<Operation *> lowered;
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
      if (isa<UnrealizedConversionCastOp>(op))
        continue;
      FailureOr<ValueRange> results = lower(op, values);
      if (failed(results))
        return signalPassFailure();
      values.map(op.getResults(), *results);
      lowered.push_back(&op);
    }
    for (OpOperand &operand : body.getTerminator()->getOpOperands())
      operand.set(values.lookupOrDefault(operand.get()));
    for (Operation *op : llvm::reverse(lowered))
      op->erase();
    for (BlockArgument argument : body.getArguments())
      if (Type bits = signless(argument.getType()); bits != argument.getType()) {
        Value cast = values.lookup(argument);
        argument.setType(bits);
        cast.replaceAllUsesWith(argument);
        cast.getDefiningOp()->erase();
      }
    function.setType(
        FunctionType::get(&getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  }

private:
  FailureOr<ValueRange> lower(Operation &op, IRMapping &values) {
    OpBuilder builder(&op);
    if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      auto value = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!value || !value.isSplat())
        return constant.emitOpError("is no splat; a kernel takes it as an argument");
      auto bits = cast<RankedTensorType>(signless(value.getType()));
      if (bits != value.getType())
        value = value.bitcast(bits.getElementType());
      return ValueRange(arith::ConstantOp::create(builder, op.getLoc(), value)->getResults());
    }
    auto operands =
        llvm::map_to_vector(op.getOperands(), [&](Value operand) { return values.lookupOrDefault(operand); });
    // As it is loaded, wherever that is.
    if (auto cast = dyn_cast<graph::CastOp>(op); cast && extendsArgument(cast))
      return ValueRange(
          arith::ExtFOp::create(builder, op.getLoc(), cast.getType(), operands[0])->getResults());
    auto lowerable = dyn_cast<LowerableOpInterface>(op);
    if (!lowerable && !isa<RoutineOpInterface>(op))
      return op.emitOpError("has no lowering to linalg");
    Value value = lowerable ? lowerable.buildLinalg(builder, operands) : Value();
    if (!value)
      return op.emitOpError("is a routine of the runtime or a view; it does not belong in a kernel");
    return ValueRange(value.getDefiningOp()->getResults());
  }
};
} // namespace
} // namespace dsopt
