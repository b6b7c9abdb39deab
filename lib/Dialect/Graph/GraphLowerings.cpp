//===- GraphLowerings.cpp - registration, builders, views ------------------===//

#include "GraphLowerings.h"
#include "dsopt/Dialect/Graph/Lowerings.h"

using namespace mlir;

namespace dsopt::graph {

AffineMap broadcastMap(ArrayRef<int64_t> operand, ArrayRef<int64_t> result, MLIRContext *context) {
  SmallVector<AffineExpr> exprs;
  size_t missing = result.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i)
    exprs.push_back(operand[i] == 1 && result[i + missing] != 1 ? getAffineConstantExpr(0, context)
                                                                : getAffineDimExpr(i + missing, context));
  return AffineMap::get(result.size(), 0, exprs, context);
}

Value constantScalar(Builder &b, Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(floatType, value));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

RankedTensorType signless(RankedTensorType type) {
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  return integer ? type.clone(IntegerType::get(type.getContext(), integer.getWidth())) : type;
}

Value constantNumber(Builder &b, TypedAttr value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    value = b.getIntegerAttr(b.getIntegerType(integer.getType().getIntOrFloatBitWidth()), integer.getValue());
  return arith::ConstantOp::create(b, value);
}

static Value buildGeneric(OpBuilder &builder, Location loc, RankedTensorType result, ValueRange operands,
                          llvm::function_ref<Value(Builder &, ValueRange)> body) {
  result = signless(result);
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(broadcastMap(cast<RankedTensorType>(operand.getType()).getShape(), result.getShape(),
                                builder.getContext()));
  maps.push_back(builder.getMultiDimIdentityMap(result.getRank()));
  SmallVector<utils::IteratorType> iterators(result.getRank(), utils::IteratorType::parallel);
  Value init = tensor::EmptyOp::create(builder, loc, result.getShape(), result.getElementType());
  return linalg::GenericOp::create(builder, loc, TypeRange(result), operands, ValueRange(init), maps,
                                   iterators,
                                   [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                                     Builder b(nestedLoc, nested);
                                     linalg::YieldOp::create(b, body(b, args.drop_back()));
                                   })
      .getResult(0);
}

Value buildPointwise(OpBuilder &builder, Location loc, RankedTensorType result, ValueRange operands,
                     ScalarBody body) {
  return buildGeneric(builder, loc, result, operands, body);
}

Value buildIndexed(OpBuilder &builder, Location loc, RankedTensorType result, ValueRange operands,
                   IndexedBody body) {
  return buildGeneric(builder, loc, result, operands, [&](Builder &b, ValueRange scalars) {
    SmallVector<Value> indices;
    for (int64_t dim = 0; dim < result.getRank(); ++dim)
      indices.push_back(linalg::IndexOp::create(b, dim));
    return body(b, indices, scalars);
  });
}

namespace {
struct ReshapeModel : LowerableOpInterface::ExternalModel<ReshapeModel, ReshapeOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::View; }
  Value buildLinalg(Operation *, OpBuilder &, ValueRange) const { return {}; }
};
} // namespace

void registerLowerings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *dialect) {
    ReshapeOp::attachInterface<ReshapeModel>(*context);
    registerElementwiseLowerings(dialect, context);
    registerRandomLowerings(dialect, context);
    registerReductionLowerings(dialect, context);
    registerMovementLowerings(dialect, context);
    registerWindowLowerings(dialect, context);
    registerBitsLowerings(dialect, context);
    registerUpdateLowerings(dialect, context);
  });
}
} // namespace dsopt::graph
