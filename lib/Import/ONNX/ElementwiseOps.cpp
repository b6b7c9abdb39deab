//===- ElementwiseOps.cpp - arithmetic, comparisons, casts -----------------===//

#include "OpTable.h"

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
  return n.set(0, n.e.make<graph::WhereOp>({condition, lhs, rhs}));
}

static LogicalResult castTo(NodeBuilder &n) {
  Type element = elementType(n.integerAttr("to", 0), "the result", n.e.location);
  return element ? n.set(0, n.e.convert(n.input(0), element)) : failure();
}

static LogicalResult castLike(NodeBuilder &n) {
  Value value = n.input(0), like = n.input(1);
  return like ? n.set(0, n.e.convert(value, Emitter::elementOf(like))) : failure();
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

/// Without randomness dropout is the identity; its mask is true everywhere.
static LogicalResult dropout(NodeBuilder &n) {
  double ratio = 0.5;
  bool isTraining = false;
  if (n.has(2)) {
    FailureOr<int64_t> mode = n.integer(2, "training_mode");
    if (failed(mode))
      return failure();
    isTraining = *mode != 0;
  }
  if (n.has(1)) {
    DenseElementsAttr value = n.constant(1, "ratio");
    if (!value)
      return failure();
    if (!isa<FloatType>(value.getElementType()) || value.getNumElements() != 1)
      return n.error() << "has a ratio of type " << value.getType() << ", expected one float";
    APFloat number = *value.value_begin<APFloat>();
    bool lost;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    ratio = number.convertToDouble();
  }
  if (isTraining && ratio != 0 && !n.dropoutOff)
    return n.error() << "is dropout with ratio " << std::to_string(ratio)
                     << ", which is not available yet; -dropout=off leaves it out";
  if (n.wants(1)) {
    Value value = n.input(0);
    if (!value || failed(n.set(1, n.e.splat(n.e.builder.getI1Type(), 1, Emitter::shapeOf(value)))))
      return failure();
  }
  return n.alias(0);
}

ArrayRef<OpRow> elementwiseOps() {
  static const OpRow rows[] = {
      {"Abs", 13, kMaxOpset, unary<graph::AbsOp>},
      {"Add", 13, kMaxOpset, binary<graph::AddOp>},
      {"And", 7, kMaxOpset, binary<graph::AndOp>},
      {"Cast", 13, kMaxOpset, castTo},
      {"CastLike", 15, kMaxOpset, castLike},
      {"Div", 13, kMaxOpset, binary<graph::DivOp>},
      {"Dropout", 13, kMaxOpset, dropout},
      {"Equal", 13, kMaxOpset, binary<graph::EqualOp>},
      {"Erf", 13, kMaxOpset, unary<graph::ErfOp>},
      {"Exp", 13, kMaxOpset, unary<graph::ExpOp>},
      {"Gelu", 20, kMaxOpset, gelu},
      {"Greater", 13, kMaxOpset, binary<graph::GreaterOp>},
      {"GreaterOrEqual", 12, kMaxOpset, binary<graph::GreaterEqualOp>},
      {"IsNaN", 13, kMaxOpset, unary<graph::IsNaNOp>},
      {"Less", 13, kMaxOpset, binary<graph::LessOp>},
      {"LessOrEqual", 12, kMaxOpset, binary<graph::LessEqualOp>},
      {"Log", 13, kMaxOpset, unary<graph::LogOp>},
      {"Max", 13, kMaxOpset, variadic<graph::MaxOp>},
      {"Min", 13, kMaxOpset, variadic<graph::MinOp>},
      {"Mul", 13, kMaxOpset, binary<graph::MulOp>},
      {"Neg", 13, kMaxOpset, unary<graph::NegOp>},
      {"Not", 1, kMaxOpset, unary<graph::NotOp>},
      {"Or", 7, kMaxOpset, binary<graph::OrOp>},
      {"Pow", 13, kMaxOpset, pow},
      {"Reciprocal", 13, kMaxOpset, unary<graph::ReciprocalOp>},
      {"Relu", 13, kMaxOpset, unary<graph::ReluOp>},
      {"Sigmoid", 13, kMaxOpset, unary<graph::SigmoidOp>},
      {"Sign", 13, kMaxOpset, unary<graph::SignOp>},
      {"Sqrt", 13, kMaxOpset, unary<graph::SqrtOp>},
      {"Sub", 13, kMaxOpset, binary<graph::SubOp>},
      {"Tanh", 13, kMaxOpset, unary<graph::TanhOp>},
      {"Where", 9, kMaxOpset, where},
  };
  return rows;
}

} // namespace dsopt::onnx_import
