//===- GraphLoweringsRandom.cpp - random numbers inside of kernels --------===//
//
// The same words as the folder's (GraphFoldRandom.cpp). What depends on the micro-batch and
// the operation alone is the same for all elements; LLVM takes it out of the loops.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Runtime/Scalars.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

/// Arithmetic on words of 32 bits.
struct Words {
  Builder &b;

  Value constant(uint32_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value exclusiveOr(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value add(Value x, uint32_t y) { return arith::AddIOp::create(b, x, constant(y)); }
  std::pair<Value, Value> multiply(Value x, uint32_t y) {
    auto product = arith::MulUIExtendedOp::create(b, x, constant(y));
    return {product.getLow(), product.getHigh()};
  }
  Value element(Value tensor, int64_t index) {
    return tensor::ExtractOp::create(b, tensor, ValueRange(constantIndex(b, index)));
  }

  std::array<Value, 4> philox4(std::array<Value, 4> x, Value k0, Value k1) {
    for (int round = 0; round < 10; ++round) {
      auto [low0, high0] = multiply(x[0], 0xd2511f53);
      auto [low1, high1] = multiply(x[2], 0xcd9e8d57);
      x = {exclusiveOr(exclusiveOr(high1, x[1]), k0), low1, exclusiveOr(exclusiveOr(high0, x[3]), k1), low0};
      k0 = add(k0, 0x9e3779b9);
      k1 = add(k1, 0xbb67ae85);
    }
    return x;
  }
  /// On words in 64 bits, whose upper halves mean nothing: a vector's products are where the next
  /// round takes them, so that nothing is packed or unpacked.
  Value philox2(Value x0, Value x1, Value key) {
    Value factor = wide(constant(0xd256d193));
    for (int round = 0; round < 10; ++round) {
      Value product = arith::MulIOp::create(b, lower(x0), factor);
      Value high = arith::ShRUIOp::create(b, product, arith::ConstantOp::create(b, b.getI64IntegerAttr(32)));
      x0 = exclusiveOr(high, exclusiveOr(x1, wide(key)));
      x1 = product;
      key = add(key, 0x9e3779b9);
    }
    return lower(x0);
  }
  /// The key of an operation in a micro-batch.
  std::array<Value, 4> operationKey(Value key, Value first, Value last) {
    return philox4({first, element(key, DSOPT_STEP), element(key, DSOPT_MICRO_BATCH), last},
                   element(key, DSOPT_SEED_LOW), element(key, DSOPT_SEED_HIGH));
  }
  /// The place of the element at `indices`, in row-major order.
  Value placeOf(ValueRange indices, RankedTensorType type) {
    Value place = constantIndex(b, 0);
    for (auto [index, size] : llvm::zip_equal(indices, type.getShape()))
      if (size != 1)
        place = arith::AddIOp::create(b, arith::MulIOp::create(b, place, constantIndex(b, size)), index);
    return place;
  }
  /// The place in the whole value, of which the elements of a shard are runs.
  Value placeInWhole(Value place, int64_t begin, RunsAttr runs, Value rank) {
    Value length = constantIndex(b, runs.getLength());
    Value run = arith::DivUIOp::create(b, place, length), within = arith::RemUIOp::create(b, place, length);
    Value first = arith::AddIOp::create(
        b, constantIndex(b, begin),
        arith::MulIOp::create(b, arith::IndexCastUIOp::create(b, b.getIndexType(), rank),
                              constantIndex(b, runs.getStep())));
    Value start =
        arith::AddIOp::create(b, arith::MulIOp::create(b, run, constantIndex(b, runs.getStride())), first);
    return arith::AddIOp::create(b, start, within);
  }
  /// The word of the element at a place among so many, in the lower half.
  Value elementWord(const std::array<Value, 4> &keys, Value place, int64_t elements) {
    Value low = arith::IndexCastUIOp::create(b, b.getI64Type(), place), high = wide(keys[1]);
    if (elements > INT64_C(1) << 32) {
      Value upper = arith::ShRUIOp::create(b, place, constantIndex(b, 32));
      high = exclusiveOr(high, arith::IndexCastUIOp::create(b, b.getI64Type(), upper));
    }
    return philox2(low, high, keys[0]);
  }
  Value wide(Value word) { return arith::ExtUIOp::create(b, b.getI64Type(), word); }
  Value lower(Value x) {
    return arith::AndIOp::create(b, x, arith::ConstantOp::create(b, b.getI64IntegerAttr(0xffffffff)));
  }
};

struct DropoutModel : LowerableOpInterface::ExternalModel<DropoutModel, DropoutOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  bool readsPointwise(Operation *, unsigned operand) const { return operand == 0; }

  Value buildLinalg(Operation *operation, OpBuilder &builder, ValueRange operands) const {
    auto op = cast<DropoutOp>(operation);
    double ratio = op.getRatio().convertToDouble();
    RankedTensorType type = op.getResult().getType();
    return buildIndexed(
        builder, op.getLoc(), type, operands[0], [&](Builder &b, ValueRange indices, ValueRange args) {
          Words words{b};
          Value key = operands[1], stream = operands[2], zero = words.constant(0);
          std::array<Value, 4> keys = words.operationKey(key, words.element(stream, 0), zero);
          Value training =
              arith::CmpIOp::create(b, arith::CmpIPredicate::ne, words.element(key, DSOPT_TRAINING), zero);
          auto inTraining = [&](Value value, Value otherwise) {
            return arith::SelectOp::create(b, training, value, otherwise);
          };
          Value threshold = inTraining(words.constant(dropoutThreshold(ratio)), zero);
          Type element = type.getElementType();
          Value scale =
              inTraining(constantScalar(b, element, dropoutScale(ratio)), constantScalar(b, element, 1));
          Value place = words.placeOf(indices, type);
          int64_t elements = type.getNumElements();
          if (std::optional<RunsAttr> runs = op.getRuns()) {
            place = words.placeInWhole(place, op.getBegin(), *runs, words.element(key, DSOPT_TENSOR_RANK));
            elements = elements / runs->getLength() * runs->getStride();
          }
          if (std::optional<RunsAttr> runs = op.getTimeRuns()) {
            place =
                words.placeInWhole(place, op.getTimeBegin(), *runs, words.element(key, DSOPT_SEQUENCE_RANK));
            elements = elements / runs->getLength() * runs->getStride();
          }
          Value word = words.elementWord(keys, place, elements);
          Value keep = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, word, words.wide(threshold));
          return Value(arith::SelectOp::create(b, keep, arith::MulFOp::create(b, args[0], scale),
                                               constantScalar(b, element, 0)));
        });
  }
};

struct UniformModel : LowerableOpInterface::ExternalModel<UniformModel, UniformOp> {
  FusionKind getFusionKind(Operation *) const { return FusionKind::Pointwise; }
  bool readsPointwise(Operation *, unsigned) const { return false; }

  Value buildLinalg(Operation *operation, OpBuilder &builder, ValueRange operands) const {
    auto op = cast<UniformOp>(operation);
    RankedTensorType type = op.getType();
    return buildIndexed(builder, op.getLoc(), type, {}, [&](Builder &b, ValueRange indices, ValueRange) {
      Words words{b};
      Value key = operands[0], stream = operands[1];
      Value word =
          words.elementWord(words.operationKey(key, words.element(stream, 0), words.element(stream, 1)),
                            words.placeOf(indices, type), type.getNumElements());
      Value upper = arith::ShRUIOp::create(b, word, arith::ConstantOp::create(b, b.getI64IntegerAttr(8)));
      Value number =
          arith::SIToFPOp::create(b, b.getF32Type(), arith::TruncIOp::create(b, b.getI32Type(), upper));
      return Value(arith::MulFOp::create(b, number, constantScalar(b, b.getF32Type(), 0x1p-24)));
    });
  }
};
} // namespace

void registerRandomLowerings(GraphDialect *, MLIRContext *context) {
  DropoutOp::attachInterface<DropoutModel>(*context);
  UniformOp::attachInterface<UniformModel>(*context);
}
} // namespace dsopt::graph
