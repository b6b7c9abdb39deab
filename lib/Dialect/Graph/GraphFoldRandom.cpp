//===- GraphFoldRandom.cpp - the rule of random numbers, a reference ------===//
//
// Random words by Philox (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as
// easy as 1, 2, 3"): the 4x32 cipher makes a key of the micro-batch and the operation, the
// 2x32 cipher, at half the cost, a word of the key and the element. 10 rounds each.
//
//===----------------------------------------------------------------------===//

#include "GraphFold.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Runtime/Philox.h"
#include "dsopt/Runtime/Scalars.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

RankedTensorType dsopt::graph::contextType(MLIRContext *context) {
  return RankedTensorType::get({DSOPT_CONTEXT}, IntegerType::get(context, 32));
}

bool dsopt::graph::isContext(BlockArgument argument) {
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), kContextAttr);
}

Value dsopt::graph::getOrAddContext(func::FuncOp function) {
  Builder builder(function.getContext());
  for (BlockArgument argument : function.getArguments())
    if (isContext(argument))
      return argument;
  unsigned index = function.getNumArguments();
  auto attributes =
      builder.getDictionaryAttr({builder.getNamedAttr(kNameAttr, builder.getStringAttr(kContextName)),
                                 builder.getNamedAttr(kContextAttr, builder.getUnitAttr())});
  if (failed(
          function.insertArgument(index, contextType(function.getContext()), attributes, function.getLoc())))
    return {};
  return function.getArgument(index);
}

/// Where a context has a place.
static int64_t fieldOf(Axis axis) { return axis == Axis::sp ? DSOPT_SEQUENCE_RANK : DSOPT_TENSOR_RANK; }

Value dsopt::graph::rankAlong(Axis axis, OpBuilder &builder, Location location, Value context, Type integer) {
  Value rank = SliceOp::create(builder, location, context, ArrayRef<int64_t>{fieldOf(axis)},
                               ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1});
  return integer.isInteger(32)
             ? rank
             : CastOp::create(builder, location, RankedTensorType::get({1}, integer), rank).getResult();
}

bool dsopt::graph::hasRankAlong(Axis axis, SliceOp slice) {
  int64_t first = slice.getStarts()[0], field = fieldOf(axis);
  return first <= field && field < first + slice.getType().getDimSize(0);
}

DenseElementsAttr dsopt::graph::randomStream(MLIRContext *context, int64_t number, bool isSeed,
                                             bool isSecond) {
  auto type = RankedTensorType::get({2}, IntegerType::get(context, 32));
  int32_t low = static_cast<int32_t>(number);
  return DenseElementsAttr::get(type, ArrayRef<int32_t>{low, ~low ^ (2 * isSeed + isSecond)});
}

uint32_t dsopt::graph::dropoutThreshold(double ratio) {
  return static_cast<uint32_t>(std::min(std::ceil(ratio * 0x1p32), 0x1p32 - 1));
}

double dsopt::graph::dropoutScale(double ratio) { return ratio < 1 ? 1 / (1 - ratio) : 0; }

static LogicalResult checkKeys(std::optional<Location> location, StringRef name, Value key, Value stream) {
  MLIRContext *context = key.getContext();
  if (tensorType(key) != contextType(context))
    return shapeError(location, name, "has a key of type ", tensorType(key), ", expected ",
                      contextType(context));
  auto expected = RankedTensorType::get({2}, IntegerType::get(context, 32));
  if (tensorType(stream) != expected)
    return shapeError(location, name, "has a stream of type ", tensorType(stream), ", expected ", expected);
  return success();
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(checkKeys(location, getOperationName(), adaptor.getKey(), adaptor.getStream())))
    return failure();
  double ratio = adaptor.getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return shapeError(location, getOperationName(), "has ratio ", ratio, ", expected 0 to 1");
  types.push_back(tensorType(adaptor.getInput()));
  return success();
}

LogicalResult UniformOp::verify() {
  if (!getType().getElementType().isF32())
    return emitOpError("has a result of type ") << getType() << ", expected f32";
  return checkKeys(getLoc(), getOperationName(), getKey(), getStream());
}

static uint32_t philox2(uint32_t x0, uint32_t x1, uint32_t key) {
  for (int round = 0; round < 10; ++round, key += 0x9e3779b9) {
    uint64_t product = uint64_t(0xd256d193) * x0;
    x0 = static_cast<uint32_t>(product >> 32) ^ key ^ x1;
    x1 = static_cast<uint32_t>(product);
  }
  return x0;
}

static uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

static std::array<uint32_t, 4> operationKey(ArrayRef<int64_t> key, int64_t first, int64_t last) {
  return runtime::philox({word(first), word(key[DSOPT_STEP]), word(key[DSOPT_MICRO_BATCH]), word(last)},
                         {word(key[DSOPT_SEED_LOW]), word(key[DSOPT_SEED_HIGH])});
}

static uint32_t elementWord(const std::array<uint32_t, 4> &keys, uint64_t place) {
  return philox2(word(place), word(place >> 32) ^ keys[1], keys[0]);
}

OpFoldResult DropoutOp::fold(FoldAdaptor adaptor) {
  double ratio = getRatio().convertToDouble();
  if (ratio == 0)
    return getInput();
  auto key = integers(adaptor.getKey()), stream = integers(adaptor.getStream());
  std::optional<Elements> x = Elements::numbers(adaptor.getInput());
  if (!key || !stream || !x || !fits(getType()))
    return {};
  if (!(*key)[DSOPT_TRAINING])
    return getInput();
  auto through = [](uint64_t element, std::optional<RunsAttr> runs, int64_t begin, int64_t rank) {
    return runs ? element / runs->getLength() * runs->getStride() + begin + runs->getStep() * rank +
                      element % runs->getLength()
                : element;
  };
  auto placeOf = [&](uint64_t element) {
    element = through(element, getRuns(), getBegin(), (*key)[DSOPT_TENSOR_RANK]);
    return through(element, getTimeRuns(), getTimeBegin(), (*key)[DSOPT_SEQUENCE_RANK]);
  };
  std::array<uint32_t, 4> keys = operationKey(*key, (*stream)[0], 0);
  uint32_t threshold = dropoutThreshold(ratio);
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    T scale = static_cast<T>(dropoutScale(ratio));
    uint64_t count = x->type.getNumElements();
    Buffer out(count * sizeof(T));
    for (uint64_t i = 0; i < count; ++i) {
      bool keep = elementWord(keys, placeOf(i)) >= threshold;
      reinterpret_cast<T *>(out.data())[i] = keep ? x->as<T>()[x->splat ? 0 : i] * scale : T(0);
    }
    return fromNumbers(x->type, out);
  });
}

OpFoldResult UniformOp::fold(FoldAdaptor adaptor) {
  auto key = integers(adaptor.getKey()), stream = integers(adaptor.getStream());
  if (!key || !stream || !fits(getType()))
    return {};
  std::array<uint32_t, 4> keys = operationKey(*key, (*stream)[0], (*stream)[1]);
  uint64_t count = getType().getNumElements();
  Buffer out(count * sizeof(float));
  for (uint64_t i = 0; i < count; ++i)
    reinterpret_cast<float *>(out.data())[i] = static_cast<float>(elementWord(keys, i) >> 8) * 0x1p-24f;
  return fromNumbers(getType(), out);
}
