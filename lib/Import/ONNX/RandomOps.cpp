//===- RandomOps.cpp - random numbers that are part of a model -------------===//
//
// They follow from the run's seed, the step, the micro-batch, the operation and the element
// (Context.h), in training and in evaluation. ONNX's attribute `seed` takes the place of the
// operation's number: operations of equal seeds and shapes draw equal numbers.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include "dsopt/Dialect/Graph/Context.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Numbers from 0 to below 1; of one operation, which draws once or twice.
static Value uniform(NodeBuilder &n, ArrayRef<int64_t> shape, int64_t number, bool isSecond = false) {
  Emitter &e = n.e;
  Value key = graph::getOrAddContext(cast<func::FuncOp>(e.builder.getBlock()->getParentOp()));
  bool isSeed = n.attribute("seed");
  if (isSeed)
    number = llvm::bit_cast<int32_t>(static_cast<float>(n.floatAttr("seed", 0)));
  Value stream = e.constant(graph::randomStream(e.builder.getContext(), number, isSeed, isSecond));
  return e.shapedWith<graph::UniformOp>({key, stream}, shape, {}, e.builder.getF32Type());
}

/// Numbers of mean 0 and variance 1 (Box and Muller 1958).
static Value normal(NodeBuilder &n, ArrayRef<int64_t> shape) {
  Emitter &e = n.e;
  int64_t number = e.randoms++;
  Value first = uniform(n, shape, number), second = uniform(n, shape, number, /*isSecond=*/true);
  if (!first || !second)
    return {};
  Value logarithm = e.make<graph::LogOp>(e.sub(e.scalar(1, first), first));
  Value radius = e.make<graph::SqrtOp>(e.mul(logarithm, e.scalar(-2, logarithm)));
  return e.mul(radius, e.make<graph::CosOp>(e.mul(second, e.scalar(2 * M_PI, second))));
}

namespace {
/// What a node of numbers that depend on no others says.
struct Shape {
  SmallVector<int64_t> shape;
  Type element;
};
} // namespace

/// The shape of an attribute or, of the operators that end in Like, of the input.
static FailureOr<Shape> shapeOf(NodeBuilder &n) {
  Shape result;
  bool isLike = n.op().ends_with("Like");
  int64_t dataType = onnx::TensorProto::FLOAT;
  if (isLike) {
    Value like = n.input(0);
    if (!like)
      return failure();
    llvm::append_range(result.shape, Emitter::shapeOf(like));
    result.element = Emitter::elementOf(like);
  } else {
    result.shape = n.integersAttr("shape");
  }
  if (!isLike || n.attribute("dtype"))
    result.element = elementType(n.integerAttr("dtype", dataType), "the result", n.e.location);
  if (!result.element)
    return failure();
  if (!isa<FloatType>(result.element))
    return n.error() << "gives elements of type " << result.element << ", expected floating point";
  return result;
}

static LogicalResult randomUniform(NodeBuilder &n) {
  Emitter &e = n.e;
  FailureOr<Shape> shape = shapeOf(n);
  Value x = succeeded(shape) ? uniform(n, shape->shape, e.randoms++) : Value();
  if (!x)
    return failure();
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  if (high != 1 || low != 0)
    x = e.add(e.mul(x, e.scalar(high - low, x)), e.scalar(low, x));
  return n.set(0, e.convert(x, shape->element));
}

static LogicalResult randomNormal(NodeBuilder &n) {
  Emitter &e = n.e;
  FailureOr<Shape> shape = shapeOf(n);
  Value x = succeeded(shape) ? normal(n, shape->shape) : Value();
  if (!x)
    return failure();
  double mean = n.floatAttr("mean", 0), scale = n.floatAttr("scale", 1);
  if (scale != 1)
    x = e.mul(x, e.scalar(scale, x));
  if (mean != 0)
    x = e.add(x, e.scalar(mean, x));
  return n.set(0, e.convert(x, shape->element));
}

/// One with the probability that the input says, else zero.
static LogicalResult bernoulli(NodeBuilder &n) {
  Emitter &e = n.e;
  Value probability = n.input(0);
  Value x = probability ? uniform(n, Emitter::shapeOf(probability), e.randoms++) : Value();
  if (!x)
    return failure();
  Type element = Emitter::elementOf(probability);
  if (n.attribute("dtype"))
    element = elementType(n.integerAttr("dtype", 0), "the result", e.location);
  return element ? n.set(0, e.convert(e.less(x, e.convert(probability, e.builder.getF32Type())), element))
                 : failure();
}

/// Classes by logarithms of their probabilities, which need not add up: as many as lie wholly
/// below a random part of the sum.
static LogicalResult multinomial(NodeBuilder &n) {
  Emitter &e = n.e;
  Value scores = n.input(0);
  if (!scores)
    return failure();
  int64_t count = n.integerAttr("sample_size", 1);
  if (Emitter::rankOf(scores) != 2 || count < 1 || Emitter::shapeOf(scores)[1] < 1)
    return n.error() << "has sample_size " << count << " for an input of type " << Emitter::typeOf(scores)
                     << ", expected 1 or more and an input of rank 2";
  int64_t rows = Emitter::shapeOf(scores)[0], classes = Emitter::shapeOf(scores)[1];
  Type element = elementType(n.integerAttr("dtype", onnx::TensorProto::INT32), "the result", e.location);
  Value x = uniform(n, {rows, count, 1}, e.randoms++);
  if (!element || !x)
    return failure();
  Value weights = e.make<graph::ExpOp>(e.sub(scores, e.reduce<graph::ReduceMaxOp>(scores, 1)));
  Value sums = e.make<graph::CumSumOp>(e.convert(weights, e.builder.getF32Type()), e.attr("axis", 1));
  if (!sums)
    return failure();
  // The last class takes what rounding leaves.
  Value below = e.reshape(e.slice(sums, 1, 0, classes - 1), {rows, 1, classes - 1});
  Value whole = e.reshape(e.slice(sums, 1, classes - 1, 1), {rows, 1, 1});
  Value passed = e.make<graph::LessEqualOp>({below, e.mul(x, whole)});
  Value index = classes == 1 ? e.splat(e.builder.getI64Type(), 0, {rows, count})
                             : e.sum(e.convert(passed, e.builder.getI64Type()), 2, /*keepdims=*/false);
  return n.set(0, e.convert(index, element));
}

ArrayRef<OpRow> randomOps() {
  static const OpRow rows[] = {
      {"Bernoulli", 15, kMaxOpset, bernoulli},        {"Multinomial", 7, kMaxOpset, multinomial},
      {"RandomNormal", 1, kMaxOpset, randomNormal},   {"RandomNormalLike", 1, kMaxOpset, randomNormal},
      {"RandomUniform", 1, kMaxOpset, randomUniform}, {"RandomUniformLike", 1, kMaxOpset, randomUniform},
  };
  return rows;
}

} // namespace dsopt::onnx_import
