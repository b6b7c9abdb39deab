//===- RaiseNorms.cpp - roots of sums of powers, where these are zero -----===//
//
// Starts at each root, and follows what it is of up to a sum over powers: a norm, or a standard deviation.
//
//===----------------------------------------------------------------------===//

#include "Idioms.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dsopt {
#define GEN_PASS_DEF_RAISENORMS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// The value that others multiply by numbers, in other shapes.
Value unscaled(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<graph::ReshapeOp>(op) || (isa<graph::MulOp, graph::DivOp>(op) && splatOf(op->getOperand(1))))
      value = op->getOperand(0);
    else if (isa<graph::MulOp>(op) && splatOf(op->getOperand(0)))
      value = op->getOperand(1);
    else
      break;
  }
  return value;
}

/// The powers that a value is the sum or the mean of, and their exponent.
std::optional<std::pair<Value, double>> summedPowers(Value value) {
  Operation *sum = unscaled(value).getDefiningOp();
  if (!isa_and_nonnull<graph::ReduceSumOp, graph::ReduceMeanOp>(sum))
    return std::nullopt;
  Value powers = sum->getOperand(0);
  if (auto mul = powers.getDefiningOp<graph::MulOp>(); mul && mul.getLhs() == mul.getRhs())
    return std::pair(powers, 2.0);
  auto pow = powers.getDefiningOp<graph::PowOp>();
  std::optional<double> exponent = pow ? splatOf(pow.getRhs()) : std::nullopt;
  bool isSigned = pow && !pow.getLhs().getDefiningOp<graph::AbsOp>();
  if (!exponent || !(*exponent > 0) || (isSigned && *exponent != 2))
    return std::nullopt;
  return std::pair(powers, *exponent);
}

struct RaiseNorms : public dsopt::impl::RaiseNormsBase<RaiseNorms> {
  using RaiseNormsBase::RaiseNormsBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    SmallVector<Operation *> roots;
    for (Operation &op : forward.front())
      if (isa<graph::SqrtOp, graph::PowOp>(op) && isa<FloatType>(typeOf(op.getResult(0)).getElementType()))
        roots.push_back(&op);
    for (Operation *root : roots)
      raise(root);
    eraseDead(forward);
  }

private:
  void raise(Operation *root) {
    double exponent = 0.5;
    if (auto pow = dyn_cast<graph::PowOp>(root)) {
      std::optional<double> number = splatOf(pow.getRhs());
      if (!number || pow.getLhs().getType() != pow.getType())
        return;
      exponent = *number;
    }
    auto powers = summedPowers(root->getOperand(0));
    if (!powers || !idioms::isClose(exponent * powers->second, 1) || powers->second == 1)
      return;
    raised(root, "norm");
    // Of what is below one, the powers have the slope that is infinite at zero.
    guard(powers->second < 1 ? powers->first.getDefiningOp() : root);
  }

  /// Computes a power of one where it is of zero, and takes zero for it.
  static void guard(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Value x = op->getOperand(0);
    auto number = [&](double value) {
      return graph::scalarConstant(b, b.getLoc(), typeOf(x).getElementType(), value);
    };
    Value isZero = graph::EqualOp::create(b, x, number(0));
    op->setOperand(0, graph::WhereOp::create(b, isZero, number(1), x));
    b.setInsertionPointAfter(op);
    auto result = graph::WhereOp::create(b, isZero, number(0), op->getResult(0));
    op->getResult(0).replaceAllUsesExcept(result, result);
  }
};
} // namespace
