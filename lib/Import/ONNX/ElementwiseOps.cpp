//===- ElementwiseOps.cpp - arithmetic, comparisons, casts -----------------===//

#include "OpTable.h"

#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/Context.h"

using namespace mlir;

namespace dsopt::onnx_import {

template <typename Op> static LogicalResult unary(NodeBuilder &n) {
  return n.set(0, n.e.make<Op>(n.input(0)));
}

template <typename Op> static LogicalResult binary(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  return n.set(0, n.e.make<Op>({lhs, rhs}));
}

/// Any number of inputs, taken from the left.
template <typename Op> static LogicalResult variadic(NodeBuilder &n) {
  Value result = n.input(0);
  for (int i = 1; i < n.numInputs(); ++i)
    result = n.e.make<Op>({result, n.input(i)});
  return n.set(0, result);
}

/// The larger or smaller of all inputs. Exporters write PyTorch's clamp with one bound so, whose gradient is
/// that of Clip; two tensors share the gradient where they are equal.
template <bool largest> static LogicalResult extremum(NodeBuilder &n) {
  Value result = n.input(0);
  auto isNumber = [](Value value) {
    return value && value.getDefiningOp<graph::ConstantOp>() && Emitter::rankOf(value) == 0;
  };
  for (int i = 1; i < n.numInputs(); ++i) {
    Value other = n.input(i);
    bool isBound = n.numInputs() == 2 && isNumber(other) && n.torchOperator() != "maximum" &&
                   n.torchOperator() != "minimum";
    if (largest)
      result = isBound ? n.e.atLeast(result, other) : n.e.maximum(result, other);
    else
      result = isBound ? n.e.atMost(result, other) : n.e.minimum(result, other);
  }
  return n.set(0, result);
}

/// The sum of all inputs over their number.
static LogicalResult mean(NodeBuilder &n) {
  Value sum = n.input(0);
  for (int i = 1; i < n.numInputs(); ++i)
    sum = n.e.add(sum, n.input(i));
  return n.set(0, n.numInputs() == 1 ? sum : n.e.div(sum, n.e.scalar(n.numInputs(), sum)));
}

/// Of integers the remainder has the divisor's sign, unless fmod asks for the dividend's.
static LogicalResult mod(NodeBuilder &n) {
  Emitter &e = n.e;
  Value lhs = n.input(0), rhs = n.input(1);
  Value rest = e.make<graph::RemOp>({lhs, rhs});
  if (!rest || n.integerAttr("fmod", 0))
    return n.set(0, rest);
  Value zero = e.scalar(0, rest);
  Value isOther = e.make<graph::NotOp>(e.equal(e.less(rest, zero), e.less(rhs, zero)));
  Value isRest = e.make<graph::NotOp>(e.equal(rest, zero));
  Value shifts = e.make<graph::AndOp>({isOther, isRest});
  return n.set(0, e.where(shifts, e.add(rest, rhs), rest));
}

static LogicalResult exclusiveOr(NodeBuilder &n) {
  return n.set(0, n.e.make<graph::NotOp>(n.e.equal(n.input(0), n.input(1))));
}

/// What is set in one of the two: those in either without those in both.
static LogicalResult bitwiseXor(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  return n.set(0, n.e.sub(n.e.make<graph::OrOp>({lhs, rhs}), n.e.make<graph::AndOp>({lhs, rhs})));
}
static LogicalResult bitwiseNot(NodeBuilder &n) {
  Value x = n.input(0);
  return n.set(0, n.e.sub(n.e.scalar(-1, x), x));
}

static LogicalResult isInf(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  bool negative = n.integerAttr("detect_negative", 1) != 0,
       positive = n.integerAttr("detect_positive", 1) != 0;
  Value infinity = e.scalar(std::numeric_limits<double>::infinity(), x);
  if (!negative && !positive)
    return n.set(0, e.splat(e.builder.getI1Type(), 0, Emitter::shapeOf(x)));
  if (negative && positive)
    x = e.make<graph::AbsOp>(x);
  return n.set(0, e.equal(x, positive ? infinity : e.make<graph::NegOp>(infinity)));
}

static LogicalResult tangent(NodeBuilder &n) {
  Value x = n.input(0);
  return n.set(0, n.e.div(n.e.make<graph::SinOp>(x), n.e.make<graph::CosOp>(x)));
}

/// The exponent may be of another type than base and result.
static LogicalResult pow(NodeBuilder &n) {
  Value base = n.input(0), exponent = n.input(1);
  if (!base || !exponent)
    return failure();
  Type element = Emitter::elementOf(base);
  if (isa<FloatType>(element) || isa<IntegerType>(Emitter::elementOf(exponent)))
    return n.set(0, n.e.make<graph::PowOp>({base, n.e.convert(exponent, element)}));
  Value wide = n.e.convert(base, Emitter::elementOf(exponent));
  return n.set(0, n.e.convert(n.e.make<graph::PowOp>({wide, exponent}), element));
}

static LogicalResult where(NodeBuilder &n) {
  Value condition = n.input(0), lhs = n.input(1), rhs = n.input(2);
  Value chosen = n.e.make<graph::WhereOp>({condition, lhs, rhs});
  if (chosen && n.torchOperator() == "branch") { // what a model's `if` by a draw became
    if (graph::numElements(condition.getType()) != 1)
      return n.error() << "is a branch by a condition of type " << Emitter::typeOf(condition)
                       << ", expected one element";
    if (auto where = chosen.getDefiningOp<graph::WhereOp>())
      where.setBranch(true);
  }
  return n.set(0, chosen);
}

static LogicalResult castTo(NodeBuilder &n, Type element) {
  Value value = n.input(0);
  if (!isNarrow(element))
    return n.set(0, n.e.convert(value, element), Type());
  Rounding rounding;
  // Floats of 16 bits have infinities for what is too large.
  rounding.saturate = element.getIntOrFloatBitWidth() < 16 && n.integerAttr("saturate", 1);
  if (isa<Float8E8M0FNUType>(element)) {
    rounding.toward = n.stringAttr("round_mode", "up");
    if (rounding.toward == "nearest")
      rounding.toward = "";
    else if (rounding.toward != "up" && rounding.toward != "down")
      return n.error() << "has round_mode '" << rounding.toward << "', expected up, down or nearest";
  }
  // Of f64 too by way of f32, as PyTorch does it.
  return n.set(0, n.e.convert(value, computedType(element)), element, rounding);
}

static LogicalResult cast(NodeBuilder &n) {
  Type element = elementType(n.integerAttr("to", 0), "the result", n.e.location, Types::WithSmall);
  return element ? castTo(n, element) : failure();
}

static LogicalResult castLike(NodeBuilder &n) {
  Value like = n.input(1);
  return like ? castTo(n, n.narrow(1) ? n.narrow(1) : Emitter::elementOf(like)) : failure();
}

static LogicalResult gelu(NodeBuilder &n) {
  StringRef approximate = n.stringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return n.error() << "has approximate '" << approximate << "', expected none or tanh";
  SmallVector<NamedAttribute> attributes;
  if (approximate == "tanh")
    attributes.push_back(n.e.flag("approximate_tanh"));
  return n.set(0, n.e.make<graph::GeluOp>(n.input(0), attributes));
}

/// Whether a dropout is in training: a mode that the model's user chooses at run time is inference.
static FailureOr<bool> isTraining(NodeBuilder &n) {
  if (!n.has(2))
    return false;
  Value mode = n.input(2);
  if (isa_and_nonnull<BlockArgument>(mode))
    return false;
  FailureOr<int64_t> value = n.integer(2, "training_mode");
  if (failed(value))
    return failure();
  return *value != 0;
}

/// The ratio of a dropout that is in training.
static FailureOr<double> dropoutRatio(NodeBuilder &n) {
  if (!n.has(1))
    return 0.5;
  DenseElementsAttr value = n.constant(1, "ratio");
  if (!value)
    return failure();
  if (!isa<FloatType>(value.getElementType()) || value.getNumElements() != 1)
    return n.error() << "has a ratio of type " << value.getType() << ", expected one float";
  APFloat number = *value.value_begin<APFloat>();
  bool lost;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  double ratio = number.convertToDouble();
  if (!(ratio >= 0 && ratio <= 1))
    return n.error() << "has ratio " << std::to_string(ratio) << ", expected 0 to 1";
  return ratio;
}

/// Without randomness dropout is the identity; its mask is true everywhere.
static LogicalResult dropout(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<bool> training = isTraining(n);
  if (!value || failed(training))
    return failure();
  FailureOr<double> ratio = *training && !n.options.dropoutOff ? dropoutRatio(n) : 0;
  if (failed(ratio))
    return failure();
  Emitter &e = n.e;
  Type boolean = e.builder.getI1Type();
  if (*ratio == 0) {
    e.oldDropouts += n.isUpgraded();
    if (n.wants(1) && failed(n.set(1, e.splat(boolean, 1, Emitter::shapeOf(value)))))
      return failure();
    return n.alias(0);
  }
  if (!isa<FloatType>(Emitter::elementOf(value)))
    return n.error() << "has an input of type " << Emitter::typeOf(value) << ", expected floating point";
  Value key = graph::getOrAddContext(llvm::cast<func::FuncOp>(e.builder.getBlock()->getParentOp()));
  Value stream = e.constant(graph::randomStream(e.builder.getContext(), e.randoms++));
  auto drop = [&](Value x) {
    return e.make<graph::DropoutOp>({x, key, stream}, e.attr("ratio", e.builder.getF64FloatAttr(*ratio)));
  };
  if (n.wants(1)) {
    Value kept = drop(e.splat(Emitter::elementOf(value), 1, Emitter::shapeOf(value)));
    if (failed(n.set(1, e.convert(kept, boolean))))
      return failure();
  }
  return n.set(0, drop(value));
}

ArrayRef<OpRow> elementwiseOps() {
  static const OpRow rows[] = {
      {"Abs", 6, kMaxOpset, unary<graph::AbsOp>},
      {"Acos", 7, kMaxOpset, unary<graph::AcosOp>},
      {"Acosh", 9, kMaxOpset, unary<graph::AcoshOp>},
      {"Add", 7, kMaxOpset, binary<graph::AddOp>},
      {"And", 7, kMaxOpset, binary<graph::AndOp>},
      {"Asin", 7, kMaxOpset, unary<graph::AsinOp>},
      {"Asinh", 9, kMaxOpset, unary<graph::AsinhOp>},
      {"Atan", 7, kMaxOpset, unary<graph::AtanOp>},
      {"Atanh", 9, kMaxOpset, unary<graph::AtanhOp>},
      {"BitwiseAnd", 18, kMaxOpset, binary<graph::AndOp>},
      {"BitwiseNot", 18, kMaxOpset, bitwiseNot},
      {"BitwiseOr", 18, kMaxOpset, binary<graph::OrOp>},
      {"BitwiseXor", 18, kMaxOpset, bitwiseXor},
      {"Cast", 6, kMaxOpset, cast},
      {"CastLike", 15, kMaxOpset, castLike},
      {"Div", 7, kMaxOpset, binary<graph::DivOp>},
      {"Ceil", 6, kMaxOpset, unary<graph::CeilOp>},
      {"Cos", 7, kMaxOpset, unary<graph::CosOp>},
      {"Cosh", 9, kMaxOpset, unary<graph::CoshOp>},
      {"Dropout", 7, kMaxOpset, dropout},
      {"Equal", 7, kMaxOpset, binary<graph::EqualOp>},
      {"Erf", 9, kMaxOpset, unary<graph::ErfOp>},
      {"Exp", 6, kMaxOpset, unary<graph::ExpOp>},
      {"Floor", 6, kMaxOpset, unary<graph::FloorOp>},
      {"Gelu", 20, kMaxOpset, gelu},
      {"Greater", 7, kMaxOpset, binary<graph::GreaterOp>},
      {"GreaterOrEqual", 12, kMaxOpset, binary<graph::GreaterEqualOp>},
      {"IsInf", 10, kMaxOpset, isInf},
      {"IsNaN", 9, kMaxOpset, unary<graph::IsNaNOp>},
      {"Less", 7, kMaxOpset, binary<graph::LessOp>},
      {"LessOrEqual", 12, kMaxOpset, binary<graph::LessEqualOp>},
      {"Log", 6, kMaxOpset, unary<graph::LogOp>},
      {"Max", 6, kMaxOpset, extremum<true>},
      {"Mean", 6, kMaxOpset, mean},
      {"Min", 6, kMaxOpset, extremum<false>},
      {"Mod", 10, kMaxOpset, mod},
      {"Mul", 7, kMaxOpset, binary<graph::MulOp>},
      {"Neg", 6, kMaxOpset, unary<graph::NegOp>},
      {"Not", 1, kMaxOpset, unary<graph::NotOp>},
      {"Or", 7, kMaxOpset, binary<graph::OrOp>},
      {"Pow", 7, kMaxOpset, pow},
      {"Reciprocal", 6, kMaxOpset, unary<graph::ReciprocalOp>},
      {"Relu", 6, kMaxOpset, unary<graph::ReluOp>},
      {"Round", 11, kMaxOpset, unary<graph::RoundOp>},
      {"Sigmoid", 6, kMaxOpset, unary<graph::SigmoidOp>},
      {"Sign", 9, kMaxOpset, unary<graph::SignOp>},
      {"Sin", 7, kMaxOpset, unary<graph::SinOp>},
      {"Sinh", 9, kMaxOpset, unary<graph::SinhOp>},
      {"Sqrt", 6, kMaxOpset, unary<graph::SqrtOp>},
      {"Sub", 7, kMaxOpset, binary<graph::SubOp>},
      {"Sum", 6, kMaxOpset, variadic<graph::AddOp>},
      {"Tan", 7, kMaxOpset, tangent},
      {"Tanh", 6, kMaxOpset, unary<graph::TanhOp>},
      {"Where", 9, kMaxOpset, where},
      {"Xor", 7, kMaxOpset, exclusiveOr},
  };
  return rows;
}

} // namespace dsopt::onnx_import
