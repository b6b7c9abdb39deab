//===- ActivationOps.cpp - activations, made of elementwise operations -----===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// Builds an activation of the first input.
using Activation = Value (*)(NodeBuilder &n, Value x);
} // namespace

template <Activation build> static LogicalResult activation(NodeBuilder &n) {
  Value x = n.input(0);
  if (!x)
    return failure();
  if (!isa<FloatType>(Emitter::elementOf(x)))
    return n.error() << "has an input of type " << Emitter::typeOf(x) << ", expected floating point";
  return n.set(0, build(n, x));
}

static Value leakyRelu(NodeBuilder &n, Value x) {
  Emitter &e = n.e;
  Value scaled = e.mul(x, e.scalar(n.floatAttr("alpha", 0.01f), x));
  return e.where(e.less(e.scalar(0, x), x), x, scaled);
}

/// `scale * x` above 0, `scale * alpha * (exp(x / width) - 1)` below. The exponent of what is not
/// chosen stays 0: an infinite one would make the gradient NaN.
static Value exponentialBelow(Emitter &e, Value x, double alpha, double scale, double width) {
  Value zero = e.scalar(0, x);
  Value isAbove = e.less(zero, x), negative = e.where(isAbove, zero, x);
  Value decay = e.make<graph::ExpOp>(width == 1 ? negative : e.div(negative, e.scalar(width, x)));
  Value below = e.mul(e.sub(decay, e.scalar(1, x)), e.scalar(scale * alpha, x));
  Value above = scale == 1 ? x : e.mul(x, e.scalar(scale, x));
  return e.where(isAbove, above, below);
}
static Value elu(NodeBuilder &n, Value x) { return exponentialBelow(n.e, x, n.floatAttr("alpha", 1), 1, 1); }
static Value celu(NodeBuilder &n, Value x) {
  double alpha = n.floatAttr("alpha", 1);
  return exponentialBelow(n.e, x, alpha, 1, alpha);
}
static Value selu(NodeBuilder &n, Value x) {
  return exponentialBelow(n.e, x, n.floatAttr("alpha", 1.67326319217681884765625),
                          n.floatAttr("gamma", 1.05070102214813232421875), 1);
}

/// clip(alpha * x + beta, 0, 1)
static Value clippedLine(Emitter &e, Value x, double alpha, double beta) {
  Value line = e.add(e.mul(x, e.scalar(alpha, x)), e.scalar(beta, x));
  return e.atMost(e.atLeast(line, e.scalar(0, x)), e.scalar(1, x));
}
static Value hardSigmoid(NodeBuilder &n, Value x) {
  return clippedLine(n.e, x, n.floatAttr("alpha", 0.2f), n.floatAttr("beta", 0.5f));
}
static Value hardSwish(NodeBuilder &n, Value x) { return n.e.mul(x, clippedLine(n.e, x, 1.0 / 6, 0.5)); }

/// log(1 + exp(x)), for any x: max(x, 0) + log(1 + exp(-|x|))
static Value softplusOf(Emitter &e, Value x) {
  Value decay = e.make<graph::ExpOp>(e.make<graph::NegOp>(e.make<graph::AbsOp>(x)));
  return e.add(e.maximum(x, e.scalar(0, x)), e.make<graph::LogOp>(e.add(decay, e.scalar(1, x))));
}
static Value softplus(NodeBuilder &n, Value x) { return softplusOf(n.e, x); }
static Value mish(NodeBuilder &n, Value x) { return n.e.mul(x, n.e.make<graph::TanhOp>(softplusOf(n.e, x))); }
static Value softsign(NodeBuilder &n, Value x) {
  return n.e.div(x, n.e.add(n.e.make<graph::AbsOp>(x), n.e.scalar(1, x)));
}

static Value swishOf(NodeBuilder &n, Value x) {
  double alpha = n.floatAttr("alpha", 1);
  Value scaled = alpha == 1 ? x : n.e.mul(x, n.e.scalar(alpha, x));
  return n.e.mul(x, n.e.make<graph::SigmoidOp>(scaled));
}
static Value swiGLU(NodeBuilder &n, Value gate) {
  Value linear = n.input(1);
  if (linear && linear.getType() != gate.getType()) {
    n.error() << "has a gate of type " << Emitter::typeOf(gate) << " and a value of type "
              << Emitter::typeOf(linear) << ", expected equal types";
    return {};
  }
  return n.e.mul(swishOf(n, gate), linear);
}

static Value thresholdedRelu(NodeBuilder &n, Value x) {
  return n.e.where(n.e.less(n.e.scalar(n.floatAttr("alpha", 1), x), x), x, n.e.scalar(0, x));
}
static Value shrink(NodeBuilder &n, Value x) {
  Emitter &e = n.e;
  double bound = n.floatAttr("lambd", 0.5), bias = n.floatAttr("bias", 0);
  Value above = e.where(e.less(e.scalar(bound, x), x), e.sub(x, e.scalar(bias, x)), e.scalar(0, x));
  return e.where(e.less(x, e.scalar(-bound, x)), e.add(x, e.scalar(bias, x)), above);
}

/// The slope's shape broadcasts to the input's.
static LogicalResult pRelu(NodeBuilder &n) {
  Value x = n.input(0), slope = n.input(1);
  if (!x || !slope)
    return failure();
  Value result = n.e.where(n.e.less(n.e.scalar(0, x), x), x, n.e.mul(x, slope));
  if (result && result.getType() != x.getType())
    return n.error() << "has a slope of type " << Emitter::typeOf(slope)
                     << ", expected one that broadcasts to " << Emitter::typeOf(x);
  return n.set(0, result);
}

/// The value, or the bound that it is beyond. Of bounds that are equal the one that is taken has the whole
/// gradient, or the value that is as large, as PyTorch's clamp has it; else what is equal shares it.
static Value clampBetween(Emitter &e, Value x, Value low, Value high) {
  Value between = e.minimum(e.maximum(x, low), high);
  Value taken = e.where(e.less(x, low), low, e.where(e.less(high, x), high, x));
  return e.where(e.equal(low, high), taken, between);
}

/// A bound that is no number shares the gradient with what is equal to it.
static LogicalResult clip(NodeBuilder &n) {
  Value x = n.input(0);
  Value low = n.has(1) ? n.input(1) : Value(), high = n.has(2) ? n.input(2) : Value();
  auto isNumber = [](Value bound) { return !bound || bound.getDefiningOp<graph::ConstantOp>(); };
  if (!isNumber(low) && !isNumber(high))
    return n.set(0, clampBetween(n.e, x, low, high));
  if (low)
    x = isNumber(low) ? n.e.atLeast(x, low) : n.e.maximum(x, low);
  if (high)
    x = isNumber(high) ? n.e.atMost(x, high) : n.e.minimum(x, high);
  return n.set(0, x);
}

ArrayRef<OpRow> activationOps() {
  static const OpRow rows[] = {
      {"Celu", 12, kMaxOpset, activation<celu>},
      {"Clip", 6, kMaxOpset, clip},
      {"Elu", 6, kMaxOpset, activation<elu>},
      {"HardSigmoid", 6, kMaxOpset, activation<hardSigmoid>},
      {"HardSwish", 14, kMaxOpset, activation<hardSwish>},
      {"LeakyRelu", 6, kMaxOpset, activation<leakyRelu>},
      {"Mish", 18, kMaxOpset, activation<mish>},
      {"PRelu", 7, kMaxOpset, pRelu},
      {"Selu", 6, kMaxOpset, activation<selu>},
      {"Shrink", 9, kMaxOpset, activation<shrink>},
      {"Softplus", 1, kMaxOpset, activation<softplus>},
      {"Softsign", 1, kMaxOpset, activation<softsign>},
      {"SwiGLU", 28, kMaxOpset, activation<swiGLU>},
      {"Swish", 24, kMaxOpset, activation<swishOf>},
      {"ThresholdedRelu", 10, kMaxOpset, activation<thresholdedRelu>},
  };
  return rows;
}

} // namespace dsopt::onnx_import
