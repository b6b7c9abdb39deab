//===- GraphLoweringsWindows.cpp - windows and their elements' places -----===//

#include "GraphLowerings.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }
Value times(Builder &b, Value x, int64_t factor) {
  return factor == 1 ? x : Value(arith::MulIOp::create(b, x, constantIndex(b, factor)));
}
Value plus(Builder &b, Value x, int64_t y) {
  return y == 0 ? x : Value(arith::AddIOp::create(b, x, constantIndex(b, y)));
}
Value both(Builder &b, Value lhs, Value rhs) { return lhs ? Value(arith::AndIOp::create(b, lhs, rhs)) : rhs; }
/// Notes in `inside` whether an index is one of `size`, and makes it one.
Value clamped(Builder &b, Value index, int64_t size, Value &inside) {
  inside =
      both(b, inside, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, constantIndex(b, size)));
  Value low = arith::MaxSIOp::create(b, index, constantIndex(b, 0));
  return arith::MinSIOp::create(b, low, constantIndex(b, size - 1));
}

struct WindowsModel : LowerableOpInterface::ExternalModel<WindowsModel, WindowsOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  bool readsPointwise(Operation *, unsigned) const { return false; }
  Value buildLinalg(Operation *operation, OpBuilder &builder, ValueRange operands) const {
    auto op = cast<WindowsOp>(operation);
    size_t axis = op.getAxis(), count = op.getKernel().size();
    ArrayRef<int64_t> sizes = shapeOf(operands[0]);
    return buildIndexed(
        builder, op.getLoc(), op.getResult().getType(), {}, [&](Builder &b, ValueRange indices, ValueRange) {
          SmallVector<Value> source(indices.take_front(axis));
          Value inside;
          for (size_t i = 0; i < count; ++i) {
            int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i], low = op.getLows()[i];
            int64_t last = (op.getCounts()[i] - 1) * stride + (op.getKernel()[i] - 1) * dilation - low;
            Value place = plus(b,
                               arith::AddIOp::create(b, times(b, indices[axis + i], stride),
                                                     times(b, indices[axis + count + i], dilation)),
                               -low);
            source.push_back(low <= 0 && last < sizes[axis + i] ? place
                                                                : clamped(b, place, sizes[axis + i], inside));
          }
          llvm::append_range(source, indices.drop_front(axis + 2 * count));
          Value value = tensor::ExtractOp::create(b, operands[0], source);
          if (!inside)
            return value;
          return Value(arith::SelectOp::create(b, inside, value, constantNumber(b, op.getValue())));
        });
  }
};

struct WindowsPlaceModel : LowerableOpInterface::ExternalModel<WindowsPlaceModel, WindowsPlaceOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Indexed; }
  bool readsPointwise(Operation *, unsigned) const { return false; }
  Value buildLinalg(Operation *operation, OpBuilder &builder, ValueRange operands) const {
    auto op = cast<WindowsPlaceOp>(operation);
    size_t axis = op.getAxis(), count = op.getStrides().size();
    ArrayRef<int64_t> windows = shapeOf(operands[0]);
    return buildIndexed(
        builder, op.getLoc(), op.getResult().getType(), {}, [&](Builder &b, ValueRange indices, ValueRange) {
          ValueRange kernel = indices.take_back(count);
          SmallVector<Value> source(indices.take_front(axis));
          Value inside;
          for (size_t i = 0; i < count; ++i) {
            int64_t stride = op.getStrides()[i];
            Value offset = arith::SubIOp::create(b, plus(b, indices[axis + i], op.getLows()[i]),
                                                 times(b, kernel[i], op.getDilations()[i]));
            Value window = offset;
            if (stride != 1) {
              window = arith::DivSIOp::create(b, offset, constantIndex(b, stride));
              inside =
                  both(b, inside,
                       arith::CmpIOp::create(b, arith::CmpIPredicate::eq, times(b, window, stride), offset));
            }
            source.push_back(clamped(b, window, windows[axis + i], inside));
          }
          llvm::append_range(source, kernel);
          llvm::append_range(source, indices.drop_front(axis + count).drop_back(count));
          Value value = tensor::ExtractOp::create(b, operands[0], source);
          return Value(arith::SelectOp::create(b, inside, value, constantScalar(b, value.getType(), 0)));
        });
  }
};
} // namespace

void registerWindowLowerings(GraphDialect *, MLIRContext *context) {
  WindowsOp::attachInterface<WindowsModel>(*context);
  WindowsPlaceOp::attachInterface<WindowsPlaceModel>(*context);
}
} // namespace dsopt::graph
