//===- GraphLoweringsBits.cpp - bits of elements, and places ---------------===//
//
// Words of signs are sums by `or`, so that a row's threads can each make some of the bits.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"

using namespace mlir;

namespace dsopt::graph {
namespace {
struct SignBitsModel : LowerableOpInterface::ExternalModel<SignBitsModel, SignBitsOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::RowReduction; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t rank = type.getRank() + 1;
    SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank),
                                builder.getMultiDimIdentityMap(rank).dropResult(rank - 1)};
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    iterators.back() = utils::IteratorType::reduction;
    Value none = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, APInt::getZero(32)));
    return linalg::GenericOp::create(
               builder, loc, TypeRange(type), operands, none, maps, iterators,
               [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                 Builder b(nestedLoc, nested);
                 Value zero = constantScalar(b, args[0].getType(), 0);
                 Value below = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, args[0], zero);
                 Value place = arith::IndexCastOp::create(b, type.getElementType(),
                                                          linalg::IndexOp::create(b, rank - 1));
                 Value bit = arith::ShLIOp::create(b, arith::ConstantIntOp::create(b, 1, 32), place);
                 Value none = arith::ConstantIntOp::create(b, 0, 32);
                 Value set = arith::SelectOp::create(b, below, none, bit);
                 linalg::YieldOp::create(b, Value(arith::OrIOp::create(b, args[1], set)));
               })
        .getResult(0);
  }
};

struct UnpackBitsModel : LowerableOpInterface::ExternalModel<UnpackBitsModel, UnpackBitsOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  bool readsPointwise(Operation *, unsigned) const { return false; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t rank = type.getRank();
    SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank).dropResult(rank - 1),
                                builder.getMultiDimIdentityMap(rank)};
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    return linalg::GenericOp::create(
               builder, loc, TypeRange(type), operands, empty, maps, iterators,
               [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                 Builder b(nestedLoc, nested);
                 Value place =
                     arith::IndexCastOp::create(b, args[0].getType(), linalg::IndexOp::create(b, rank - 1));
                 Value bit =
                     arith::TruncIOp::create(b, b.getI1Type(), arith::ShRUIOp::create(b, args[0], place));
                 Type element = type.getElementType();
                 Value sign = arith::SelectOp::create(b, bit, constantScalar(b, element, 1),
                                                      constantScalar(b, element, -1));
                 linalg::YieldOp::create(b, sign);
               })
        .getResult(0);
  }
};

struct BitcastModel : LowerableOpInterface::ExternalModel<BitcastModel, BitcastOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto type = signless(cast<RankedTensorType>(op->getResult(0).getType()));
    return buildPointwise(builder, op->getLoc(), type, operands, [&](Builder &b, ValueRange args) {
      return arith::BitcastOp::create(b, type.getElementType(), args[0]);
    });
  }
};

struct IotaModel : LowerableOpInterface::ExternalModel<IotaModel, IotaOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto type = signless(cast<RankedTensorType>(op->getResult(0).getType()));
    return buildIndexed(
        builder, op->getLoc(), type, operands, [&](Builder &b, ValueRange indices, ValueRange) -> Value {
          return arith::IndexCastOp::create(b, type.getElementType(), indices[cast<IotaOp>(op).getAxis()]);
        });
  }
};
} // namespace

void registerBitsLowerings(GraphDialect *, MLIRContext *context) {
  SignBitsOp::attachInterface<SignBitsModel>(*context);
  UnpackBitsOp::attachInterface<UnpackBitsModel>(*context);
  BitcastOp::attachInterface<BitcastModel>(*context);
  IotaOp::attachInterface<IotaModel>(*context);
}
} // namespace dsopt::graph
