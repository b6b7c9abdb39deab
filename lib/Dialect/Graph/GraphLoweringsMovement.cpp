//===- GraphLoweringsMovement.cpp - transposes, slices, gathers -----------===//
//
// Operations that read elements at other places: their payloads compute the
// place and read it with tensor.extract.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

Value extract(Builder &b, Value tensor, ValueRange indices) {
  return tensor::ExtractOp::create(b, tensor, indices);
}
Value add(Builder &b, Value lhs, int64_t rhs) {
  return rhs ? Value(arith::AddIOp::create(b, lhs, constantIndex(b, rhs))) : lhs;
}
Value both(Builder &b, Value lhs, Value rhs) { return lhs ? Value(arith::AndIOp::create(b, lhs, rhs)) : rhs; }
Value within(Builder &b, Value index, int64_t size) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, constantIndex(b, size));
}
Value clamp(Builder &b, Value index, int64_t size) {
  Value low = arith::MaxSIOp::create(b, index, constantIndex(b, 0));
  return arith::MinSIOp::create(b, low, constantIndex(b, size - 1));
}
/// An element of an index tensor as a place along a dimension of `size`. An index outside reads the
/// nearest place: inputs' indices are checked when data is read, but what the graph computes is not.
Value place(Builder &b, Value element, Type type, int64_t size) {
  if (isUnsigned(type))
    return clamp(b, arith::IndexCastUIOp::create(b, b.getIndexType(), element), size);
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), element);
  Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, constantIndex(b, 0));
  return clamp(b, arith::SelectOp::create(b, negative, add(b, index, size), index), size);
}
ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

Value element(TransposeOp op, Builder &b, ValueRange indices, ValueRange operands) {
  SmallVector<Value> source(indices.size());
  for (auto [i, dim] : llvm::enumerate(op.getPerm()))
    source[dim] = indices[i];
  return extract(b, operands[0], source);
}

Value element(SliceOp op, Builder &b, ValueRange indices, ValueRange operands) {
  SmallVector<Value> source;
  for (auto [index, start, step] : llvm::zip_equal(indices, op.getStarts(), op.getSteps())) {
    Value scaled = step == 1 ? index : Value(arith::MulIOp::create(b, index, constantIndex(b, step)));
    source.push_back(add(b, scaled, start));
  }
  return extract(b, operands[0], source);
}

Value element(SliceGradOp op, Builder &b, ValueRange indices, ValueRange operands) {
  SmallVector<Value> source;
  Value inside;
  for (auto [index, start, step, size, whole] : llvm::zip_equal(
           indices, op.getStarts(), op.getSteps(), shapeOf(operands[0]), shapeOf(op.getResult()))) {
    if (start == 0 && step == 1 && size == whole) {
      source.push_back(index);
      continue;
    }
    Value position = add(b, index, -start);
    if (step != 1) {
      Value stride = constantIndex(b, step), offset = position;
      position = arith::DivSIOp::create(b, offset, stride);
      Value back = arith::MulIOp::create(b, position, stride);
      inside = both(b, inside, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, back, offset));
    }
    inside = both(b, inside, within(b, position, size));
    source.push_back(clamp(b, position, size));
  }
  Value value = extract(b, operands[0], source);
  return inside ? Value(arith::SelectOp::create(b, inside, value, constantScalar(b, value.getType(), 0)))
                : value;
}

Value element(PadOp op, Builder &b, ValueRange indices, ValueRange operands) {
  SmallVector<Value> source;
  Value inside;
  for (auto [index, low, high, size] :
       llvm::zip_equal(indices, op.getLows(), op.getHighs(), shapeOf(operands[0]))) {
    Value position = add(b, index, -low);
    if (low > 0 || high > 0) {
      inside = both(b, inside, within(b, position, size));
      position = clamp(b, position, size);
    }
    source.push_back(position);
  }
  Value value = extract(b, operands[0], source);
  if (!inside)
    return value;
  return arith::SelectOp::create(b, inside, value, constantNumber(b, op.getValue()));
}

Value element(ConcatOp op, Builder &b, ValueRange indices, ValueRange operands) {
  int64_t axis = op.getAxis(), end = shapeOf(op.getResult())[axis];
  Value result;
  for (Value operand : llvm::reverse(operands)) {
    int64_t size = shapeOf(operand)[axis], start = end - size;
    SmallVector<Value> source(indices);
    source[axis] = clamp(b, add(b, indices[axis], -start), size);
    Value value = extract(b, operand, source);
    if (result) {
      Value before =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, indices[axis], constantIndex(b, end));
      value = arith::SelectOp::create(b, before, value, result);
    }
    result = value;
    end = start;
  }
  return result;
}

Value element(GatherOp op, Builder &b, ValueRange indices, ValueRange operands) {
  int64_t axis = op.getAxis(), rank = shapeOf(operands[1]).size();
  Value index = extract(b, operands[1], indices.slice(axis, rank));
  SmallVector<Value> source(indices.take_front(axis));
  source.push_back(place(b, index, op.getIndices().getType(), shapeOf(operands[0])[axis]));
  llvm::append_range(source, indices.drop_front(axis + rank));
  return extract(b, operands[0], source);
}

Value element(OneHotOp op, Builder &b, ValueRange indices, ValueRange operands) {
  Value label = extract(b, operands[0], indices.drop_back());
  Value column = arith::IndexCastOp::create(b, label.getType(), indices.back());
  Value hit = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, label, column);
  Type type = op.getResult().getType().getElementType();
  return arith::SelectOp::create(b, hit, constantScalar(b, type, 1), constantScalar(b, type, 0));
}

/// All operands are read at computed places.
template <typename Op> struct MovementModel : LowerableOpInterface::ExternalModel<MovementModel<Op>, Op> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  bool readsPointwise(Operation *, unsigned) const { return false; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    return buildIndexed(builder, op->getLoc(), cast<RankedTensorType>(op->getResult(0).getType()), {},
                        [&](Builder &b, ValueRange indices, ValueRange) {
                          return element(cast<Op>(op), b, indices, operands);
                        });
  }
};

/// The index is read pointwise, the data where it says.
struct GatherElementsModel : LowerableOpInterface::ExternalModel<GatherElementsModel, GatherElementsOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  bool readsPointwise(Operation *, unsigned operand) const { return operand == 1; }
  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto gather = cast<GatherElementsOp>(op);
    int64_t axis = gather.getAxis();
    return buildIndexed(builder, op->getLoc(), cast<RankedTensorType>(op->getResult(0).getType()),
                        operands[1], [&](Builder &b, ValueRange indices, ValueRange scalars) {
                          SmallVector<Value> source(indices);
                          source[axis] =
                              place(b, scalars[0], gather.getIndices().getType(), shapeOf(operands[0])[axis]);
                          return extract(b, operands[0], source);
                        });
  }
};
} // namespace

void registerMovementLowerings(GraphDialect *, MLIRContext *context) {
  TransposeOp::attachInterface<MovementModel<TransposeOp>>(*context);
  SliceOp::attachInterface<MovementModel<SliceOp>>(*context);
  SliceGradOp::attachInterface<MovementModel<SliceGradOp>>(*context);
  PadOp::attachInterface<MovementModel<PadOp>>(*context);
  ConcatOp::attachInterface<MovementModel<ConcatOp>>(*context);
  GatherOp::attachInterface<MovementModel<GatherOp>>(*context);
  OneHotOp::attachInterface<MovementModel<OneHotOp>>(*context);
  GatherElementsOp::attachInterface<GatherElementsModel>(*context);
}
} // namespace dsopt::graph
