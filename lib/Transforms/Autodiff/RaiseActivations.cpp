//===- RaiseActivations.cpp - chains of GELU and SiLU ---------------------===//
//
// GELU starts at an erf or tanh: one is added to it and the sum multiplied by x
// and a half, in whatever order. What the function is taken of has to be the
// right polynomial in x. SiLU starts at a sigmoid.
//
//===----------------------------------------------------------------------===//

#include "Idioms.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

#include <array>
#include <cmath>

namespace dsopt {
#define GEN_PASS_DEF_RAISEACTIVATIONS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// The coefficients of 1, x, x^2 and x^3.
using Polynomial = std::array<double, 4>;
/// An expression is followed no deeper than this.
constexpr int kMaxDepth = 12;

/// The product; none where it has a higher degree.
std::optional<Polynomial> product(const Polynomial &a, const Polynomial &b) {
  Polynomial result{};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      double term = a[i] * b[j];
      if (term != 0 && i + j > 3)
        return std::nullopt;
      if (term != 0)
        result[i + j] += term;
    }
  return result;
}

/// The value as a polynomial in x.
std::optional<Polynomial> polynomialOf(Value value, Value x, int depth = 0) {
  if (value == x)
    return Polynomial{0, 1, 0, 0};
  if (auto number = splatOf(value))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth || !isa<graph::AddOp, graph::MulOp, graph::DivOp, graph::PowOp>(op))
    return std::nullopt;
  auto left = polynomialOf(op->getOperand(0), x, depth + 1);
  if (!left)
    return std::nullopt;
  if (isa<graph::PowOp, graph::DivOp>(op)) {
    auto number = splatOf(op->getOperand(1));
    if (!number)
      return std::nullopt;
    if (isa<graph::DivOp>(op))
      return product(*left, {1 / *number, 0, 0, 0});
    auto square = *number == 2 || *number == 3 ? product(*left, *left) : std::nullopt;
    return square && *number == 3 ? product(*square, *left) : square;
  }
  auto right = polynomialOf(op->getOperand(1), x, depth + 1);
  if (!right || isa<graph::MulOp>(op))
    return right ? product(*left, *right) : std::nullopt;
  for (int i = 0; i < 4; ++i)
    (*left)[i] += (*right)[i];
  return left;
}

bool isClose(const Polynomial &value, const Polynomial &expected) {
  for (int i = 0; i < 4; ++i)
    if (!idioms::isClose(value[i], expected[i]))
      return false;
  return true;
}

/// The value that another multiplies by a number, which `scale` is multiplied by; else the value itself.
Value unscaled(Value value, double &scale) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<graph::MulOp, graph::DivOp>(op))
    return value;
  bool divides = isa<graph::DivOp>(op);
  for (unsigned side : {1u, 0u})
    if (auto number = splatOf(op->getOperand(side)); number && !(divides && side == 0)) {
      scale *= divides ? 1 / *number : *number;
      return op->getOperand(1 - side);
    }
  return value;
}

struct RaiseActivations : public dsopt::impl::RaiseActivationsBase<RaiseActivations> {
  using RaiseActivationsBase::RaiseActivationsBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    SmallVector<Operation *> starts;
    for (Operation &op : forward.front())
      if (isa<graph::ErfOp, graph::TanhOp, graph::SigmoidOp>(op))
        starts.push_back(&op);
    for (Operation *op : starts)
      isa<graph::SigmoidOp>(op) ? raiseSilu(op) : raiseGelu(op);
    eraseDead(forward);
  }

private:
  void replace(Value value, Operation *by, StringRef idiom) {
    raised(by, idiom);
    value.replaceAllUsesWith(by->getResult(0));
  }

  void raiseSilu(Operation *sigmoid) {
    Value x = sigmoid->getOperand(0), s = sigmoid->getResult(0);
    for (Operation *user : s.getUsers())
      if (isa<graph::MulOp>(user) && otherOperand<graph::MulOp>(user, s) == x) {
        if (!s.hasOneUse())
          return missed(sigmoid, "silu", "something else uses the sigmoid");
        OpBuilder builder(user);
        return replace(user->getResult(0), graph::SiluOp::create(builder, user->getLoc(), x), "silu");
      }
  }

  void raiseGelu(Operation *start) {
    Operation *add = onlyUser(start->getResult(0));
    Value one = otherOperand<graph::AddOp>(add, start->getResult(0));
    if (!one || !isSplat(one, 1))
      return;
    // Up to x / 2 (1 + f), by factors that are numbers or x.
    double scale = 1;
    Value x, current = add->getResult(0);
    while (!x || !idioms::isClose(scale, 0.5)) {
      Operation *user = onlyUser(current);
      if (!isa_and_nonnull<graph::MulOp, graph::DivOp>(user))
        return missed(start, "gelu", "it is not multiplied by x / 2");
      if (Value inner = unscaled(user->getResult(0), scale); inner != current) {
        Value other = otherOperand<graph::MulOp>(user, current);
        if (x || !other)
          return missed(start, "gelu", "it is not multiplied by x / 2");
        x = unscaled(other, scale);
      }
      current = user->getResult(0);
    }
    bool approximates = isa<graph::TanhOp>(start);
    double slope = approximates ? M_2_SQRTPI * M_SQRT1_2 : M_SQRT1_2;
    Polynomial expected{0, slope, 0, approximates ? 0.044715 * slope : 0};
    // x itself, or a multiple of it that was taken for its scale.
    auto found = polynomialOf(start->getOperand(0), x);
    if (!found || !isClose(*found, expected) || current.getType() != x.getType())
      return missed(start, "gelu",
                    approximates ? "tanh is not of sqrt(2 / pi) (x + 0.044715 x^3)"
                                 : "erf is not of x / sqrt(2)");
    OpBuilder builder(current.getDefiningOp());
    auto gelu = graph::GeluOp::create(builder, current.getLoc(), x,
                                      approximates ? builder.getUnitAttr() : UnitAttr());
    replace(current, gelu, "gelu");
  }
};
} // namespace
