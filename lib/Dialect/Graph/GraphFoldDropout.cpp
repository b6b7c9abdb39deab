//===- GraphFoldDropout.cpp - dropout's rule and its reference ------------===//
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
  if (failed(function.insertArgument(index, contextType(function.getContext()), attributes,
                                     function.getLoc())))
    return {};
  return function.getArgument(index);
}

DenseElementsAttr dsopt::graph::dropoutStream(MLIRContext *context, int64_t number) {
  auto type = RankedTensorType::get({2}, IntegerType::get(context, 32));
  int32_t low = static_cast<int32_t>(number);
  return DenseElementsAttr::get(type, ArrayRef<int32_t>{low, ~low});
}

uint32_t dsopt::graph::dropoutThreshold(double ratio) {
  return static_cast<uint32_t>(std::min(std::ceil(ratio * 0x1p32), 0x1p32 - 1));
}

double dsopt::graph::dropoutScale(double ratio) { return ratio < 1 ? 1 / (1 - ratio) : 0; }

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (tensorType(adaptor.getKey()) != contextType(context))
    return shapeError(location, getOperationName(), "has a key of type ", tensorType(adaptor.getKey()),
                      ", expected ", contextType(context));
  auto stream = RankedTensorType::get({2}, IntegerType::get(context, 32));
  if (tensorType(adaptor.getStream()) != stream)
    return shapeError(location, getOperationName(), "has a stream of type ", tensorType(adaptor.getStream()),
                      ", expected ", stream);
  double ratio = adaptor.getRatio().convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return shapeError(location, getOperationName(), "has ratio ", ratio, ", expected 0 to 1");
  types.push_back(tensorType(adaptor.getInput()));
  return success();
}

static uint32_t philox2(uint32_t x0, uint32_t x1, uint32_t key) {
  for (int round = 0; round < 10; ++round, key += 0x9e3779b9) {
    uint64_t product = uint64_t(0xd256d193) * x0;
    x0 = static_cast<uint32_t>(product >> 32) ^ key ^ x1;
    x1 = static_cast<uint32_t>(product);
  }
  return x0;
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
  auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
  std::array<uint32_t, 4> keys =
      runtime::philox({word((*stream)[0]), word((*key)[DSOPT_STEP]), word((*key)[DSOPT_MICRO_BATCH]), 0},
                      {word((*key)[DSOPT_SEED_LOW]), word((*key)[DSOPT_SEED_HIGH])});
  uint32_t threshold = dropoutThreshold(ratio);
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    T scale = static_cast<T>(dropoutScale(ratio));
    uint64_t count = x->type.getNumElements();
    Buffer out(count * sizeof(T));
    for (uint64_t i = 0; i < count; ++i) {
      bool keep = philox2(word(i), word(i >> 32) ^ keys[1], keys[0]) >= threshold;
      reinterpret_cast<T *>(out.data())[i] = keep ? x->as<T>()[x->splat ? 0 : i] * scale : T(0);
    }
    return fromNumbers(x->type, out);
  });
}
