//===- RaiseLogarithms.cpp - logarithms of what leaves the range ----------===//
//
// Starts at each logarithm: of a sum of exponentials, of a sigmoid or what it lacks to 1, of a
// softmax, of 1 and something. Before these, at what is added up from logarithms of probabilities: binary
// cross-entropy in both of its forms.
//
//===----------------------------------------------------------------------===//

#include "Idioms.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Probabilities.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>

namespace dsopt {
#define GEN_PASS_DEF_RAISELOGARITHMS
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// PyTorch's binary cross-entropy takes no logarithm below this one, and divides by nothing less than the
/// other.
constexpr double kLeastLog = -100, kLeastVariance = 1e-12;

/// Builds operations of one place; `made` are logarithms that are as they should be.
struct Parts {
  ImplicitLocOpBuilder b;
  llvm::SmallPtrSetImpl<Operation *> &made;

  Parts(Operation *op, llvm::SmallPtrSetImpl<Operation *> &made) : b(op->getLoc(), op), made(made) {}

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, std::forward<Args>(args)...)->getResult(0);
  }
  Value scalar(double value, Value like) {
    return graph::scalarConstant(b, b.getLoc(), typeOf(like).getElementType(), value);
  }
  Value log(Value x) {
    Value result = make<graph::LogOp>(x);
    made.insert(result.getDefiningOp());
    return result;
  }
  Value add(Value x, Value y) { return make<graph::AddOp>(x, y); }
  Value sub(Value x, Value y) { return make<graph::SubOp>(x, y); }
  Value mul(Value x, Value y) { return make<graph::MulOp>(x, y); }
  Value neg(Value x) {
    auto inner = x.getDefiningOp<graph::NegOp>();
    return inner ? inner.getInput() : make<graph::NegOp>(x);
  }
  /// log(1 + x), with what the sum is rounded by, for x from -1 to 1: above, that is nothing beside the
  /// result. The gradient is that of the logarithm.
  Value log1p(Value x) {
    Value one = scalar(1, x), sum = add(x, one);
    Value lost = make<graph::StopGradientOp>(sub(x, sub(sum, one)));
    return add(log(sum), lost);
  }
  /// The same for any x.
  Value log1pOfAny(Value x) {
    Value one = scalar(1, x), sum = add(x, one), lost = sub(x, sub(sum, one));
    lost = make<graph::WhereOp>(make<graph::LessOp>(x, one), lost, scalar(0, x));
    return add(log(sum), make<graph::StopGradientOp>(lost));
  }
  /// log(1 + exp(-|x|))
  Value excess(Value x) { return log1p(make<graph::ExpOp>(make<graph::NegOp>(make<graph::AbsOp>(x)))); }
  /// log(1 + exp(x)), for any x
  Value softplus(Value x) { return add(make<graph::MaxOp>(x, scalar(0, x)), excess(x)); }
  Value softplusOfNegative(Value x) { return add(make<graph::MaxOp>(neg(x), scalar(0, x)), excess(x)); }
  Value reshape(Value x, RankedTensorType type) {
    return x.getType() == type ? x : make<graph::ReshapeOp>(type, x);
  }
};

/// The operand of a negation.
Value negated(Value value) {
  auto neg = value.getDefiningOp<graph::NegOp>();
  return neg ? neg.getInput() : Value();
}

/// x of x + 1, or of 1 - (-x), which is as large.
Value withoutOne(Value value) {
  auto add = value.getDefiningOp<graph::AddOp>();
  for (unsigned i = 0; add && i < 2; ++i)
    if (isSplat(add->getOperand(i), 1) && add->getOperand(1 - i).getType() == value.getType())
      return add->getOperand(1 - i);
  return {};
}

/// x of 1 - x, which is as large.
Value lackingToOne(Value value) {
  if (Value rest = withoutOne(value))
    return negated(rest);
  auto sub = value.getDefiningOp<graph::SubOp>();
  return sub && isSplat(sub.getLhs(), 1) && sub.getRhs().getType() == value.getType() ? sub.getRhs()
                                                                                      : Value();
}

/// Whether the value is y - 1.
bool isOneLess(Value value, Value y) {
  if (auto sub = value.getDefiningOp<graph::SubOp>())
    return sub.getLhs() == y && isSplat(sub.getRhs(), 1);
  auto add = value.getDefiningOp<graph::AddOp>();
  return add && ((add.getLhs() == y && isSplat(add.getRhs(), -1)) ||
                 (add.getRhs() == y && isSplat(add.getLhs(), -1)));
}

/// x, if the value is sigmoid(x), and as large.
Value logitOf(Value value) {
  Value x = graph::logitOf(value);
  return x && x.getType() == value.getType() ? x : Value();
}

/// The logarithm of what the value is, if it is that, but at least -100.
Value clampedLog(Value value) {
  Value log, bound;
  if (auto max = value.getDefiningOp<graph::MaxOp>()) {
    bool isFirst = max.getLhs().getDefiningOp<graph::LogOp>() != nullptr;
    log = isFirst ? max.getLhs() : max.getRhs();
    bound = isFirst ? max.getRhs() : max.getLhs();
  } else if (auto where = value.getDefiningOp<graph::WhereOp>()) {
    // As the importer writes it for bounds that are numbers.
    auto compare = where.getCondition().getDefiningOp<graph::LessEqualOp>();
    if (!compare || compare.getLhs() != where.getRhs() || compare.getRhs() != where.getLhs())
      return {};
    log = where.getRhs();
    bound = where.getLhs();
  }
  bool isLog = log && log.getDefiningOp<graph::LogOp>() && log.getType() == value.getType();
  return isLog && isSplat(bound, kLeastLog) ? log : Value();
}

/// What an exponential is of: a value times a number, or a number alone.
struct Exponent {
  Value value;
  double number = 1;
};
std::optional<Exponent> exponentOf(Value value) {
  if (auto exponential = value.getDefiningOp<graph::ExpOp>())
    return Exponent{exponential.getInput()};
  auto pow = value.getDefiningOp<graph::PowOp>();
  std::optional<double> number = splatOf(pow ? pow.getLhs() : value);
  if (!number || !(*number > 0) || !std::isfinite(*number))
    return std::nullopt;
  if (!pow)
    return Exponent{Value(), std::log(*number)};
  return pow.getRhs().getType() == value.getType() ? std::optional(Exponent{pow.getRhs(), std::log(*number)})
                                                   : std::nullopt;
}

/// Whether the value has what is largest (or otherwise known) subtracted.
bool isShifted(Value value) {
  auto sub = value.getDefiningOp<graph::SubOp>();
  if (!sub)
    return false;
  Value shift = sub.getRhs();
  while (isa_and_nonnull<graph::ReshapeOp, graph::ExpandOp, graph::StopGradientOp, graph::WhereOp>(
      shift.getDefiningOp())) {
    Operation *op = shift.getDefiningOp();
    shift = op->getOperand(isa<graph::WhereOp>(op) ? 1 : 0);
  }
  return shift.getDefiningOp<graph::ReduceMaxOp>() != nullptr;
}

struct RaiseLogarithms : public dsopt::impl::RaiseLogarithmsBase<RaiseLogarithms> {
  using RaiseLogarithmsBase::RaiseLogarithmsBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    kept.clear();
    SmallVector<Operation *> sums;
    for (Operation &op : forward.front())
      if (isa<graph::AddOp, graph::SubOp>(op) && isa<FloatType>(typeOf(op.getResult(0)).getElementType()))
        sums.push_back(&op);
    for (Operation *op : sums)
      if (!raiseProbabilities(op))
        raiseScores(op);
    eraseDead(forward);
    for (auto log : llvm::to_vector(forward.front().getOps<graph::LogOp>()))
      if (!kept.contains(log))
        raiseLog(log);
    eraseDead(forward);
  }

private:
  void replace(Operation *op, Value by, StringRef idiom) {
    raised(op, idiom);
    op->getResult(0).replaceAllUsesWith(by);
  }

  /// A factor (null for 1) of what `find` finds something in, and whether their product is negative.
  struct Term {
    Value factor, found;
    bool isNegative = false;
  };
  template <typename Find> static std::optional<Term> termOf(Value value, Find find) {
    Term term;
    if (Value inner = negated(value)) {
      term.isNegative = true;
      value = inner;
    }
    if ((term.found = find(value)))
      return term;
    auto mul = value.getDefiningOp<graph::MulOp>();
    for (unsigned i = 0; mul && i < 2; ++i)
      if ((term.found = find(mul->getOperand(i)))) {
        term.factor = mul->getOperand(1 - i);
        return term;
      }
    return std::nullopt;
  }

  /// -(1 - y) log(1 - p) - y log(p), with logarithms of at least -100, or its negative: PyTorch's
  /// binary_cross_entropy, whose gradient is finite where p is 0 or 1.
  bool raiseProbabilities(Operation *op) {
    auto left = termOf(op->getOperand(0), clampedLog), right = termOf(op->getOperand(1), clampedLog);
    if (!left || !right || !left->factor || !right->factor)
      return false;
    right->isNegative ^= isa<graph::SubOp>(op);
    auto ofLog = [](const Term &term) { return term.found.getDefiningOp<graph::LogOp>(); };
    if (lackingToOne(ofLog(*right).getInput()) == ofLog(*left).getInput())
      std::swap(left, right);
    Value p = ofLog(*right).getInput(), y = right->factor;
    if (lackingToOne(ofLog(*left).getInput()) != p)
      return false;
    if (Value inner = negated(y)) {
      right->isNegative = !right->isNegative;
      y = inner;
    }
    if (isOneLess(left->factor, y))
      left->isNegative = !left->isNegative;
    else if (lackingToOne(left->factor) != y)
      return false;
    auto type = typeOf(op->getResult(0));
    if (left->isNegative != right->isNegative || typeOf(p).getElementType() != type.getElementType() ||
        typeOf(y).getElementType() != type.getElementType())
      return false;
    // Of p itself, as it is rounded: PyTorch looks for no score behind it.
    Parts early(ofLog(*left), kept);
    left->found.replaceAllUsesWith(early.log1p(early.make<graph::NegOp>(p)));
    kept.insert(ofLog(*right));

    Parts parts(op, kept);
    parts.b.setInsertionPointAfter(op);
    Value loss = op->getResult(0);
    auto whole = [&](Value x) { return x.getType() == type ? x : parts.make<graph::ExpandOp>(type, x); };
    Value wholeP = whole(p), wholeY = whole(y);
    auto custom = graph::CustomGradientOp::create(parts.b, TypeRange(type), ValueRange{wholeP, wholeY},
                                                  ValueRange{loss}, ValueRange{wholeP, wholeY}, uint64_t(0));
    Block &block = custom.getBackward().emplaceBlock();
    Location loc = op->getLoc();
    p = block.addArgument(type, loc);
    y = block.addArgument(type, loc);
    Value gradient = block.addArgument(type, loc);
    parts.b.setInsertionPointToEnd(&block);
    if (!left->isNegative)
      gradient = parts.make<graph::NegOp>(gradient);
    Value variance = parts.mul(parts.sub(parts.scalar(1, p), p), p);
    variance = parts.make<graph::MaxOp>(variance, parts.scalar(kLeastVariance, p));
    Value ofP = parts.mul(gradient, parts.make<graph::DivOp>(parts.sub(p, y), variance));
    Value odds = parts.sub(parts.log1p(parts.make<graph::NegOp>(p)), parts.log(p));
    graph::YieldOp::create(parts.b, ValueRange{ofP, parts.mul(gradient, odds)});
    raised(op, "binary_cross_entropy");
    loss.replaceAllUsesExcept(custom.getResult(0), custom);
    return true;
  }

  /// (1 - y) x - w log(sigmoid(x)), PyTorch's binary_cross_entropy_with_logits: two softplus, so that nothing
  /// large is subtracted from something large.
  void raiseScores(Operation *op) {
    auto findLogit = [](Value value) {
      auto log = value.getDefiningOp<graph::LogOp>();
      return log ? logitOf(log.getInput()) : Value();
    };
    auto product = op->getOperand(0).getDefiningOp<graph::MulOp>();
    auto log = termOf(op->getOperand(1), findLogit);
    if (!product || !log || log->isNegative != isa<graph::AddOp>(op) ||
        log->found.getType() != op->getResult(0).getType())
      return;
    Value x = log->found, lacking = otherOperand<graph::MulOp>(product, x);
    Value y = lacking && (product.getLhs() == x || product.getRhs() == x) ? lackingToOne(lacking) : Value();
    if (!y)
      return;
    Parts parts(op, kept);
    Value excess = parts.excess(x), zero = parts.scalar(0, x);
    Value positive = parts.add(parts.make<graph::MaxOp>(x, zero), excess);
    Value negative = parts.add(parts.make<graph::MaxOp>(parts.neg(x), zero), excess);
    Value weight = log->factor ? parts.sub(log->factor, lacking) : y;
    replace(op, parts.add(parts.mul(lacking, positive), parts.mul(weight, negative)),
            "binary_cross_entropy_with_logits");
  }

  void raiseLog(graph::LogOp log) {
    Value of = log.getInput();
    Parts parts(log, kept);
    if (Value x = logitOf(of))
      return replace(log, parts.make<graph::NegOp>(parts.softplusOfNegative(x)), "log_sigmoid");
    if (Value p = lackingToOne(of))
      if (Value x = logitOf(p))
        return replace(log, parts.make<graph::NegOp>(parts.softplus(x)), "log_sigmoid");
    if (auto softmax = of.getDefiningOp<graph::SoftmaxOp>())
      return raiseLogSoftmax(log, softmax);
    if (auto add = of.getDefiningOp<graph::AddOp>(); add && raiseLogAddExp(log, add))
      return;
    if (auto sum = withoutReshapes(of).getDefiningOp<graph::ReduceSumOp>())
      return raiseLogSumExp(log, sum);
    if (Value x = lackingToOne(of))
      return replace(log, parts.log1pOfAny(parts.make<graph::NegOp>(x)), "log1p");
    if (Value x = withoutOne(of))
      return replace(log, parts.log1pOfAny(x), "log1p");
  }

  /// The largest exponent, and how much more the sum is.
  bool raiseLogAddExp(graph::LogOp log, graph::AddOp sum) {
    auto left = exponentOf(sum.getLhs()), right = exponentOf(sum.getRhs());
    if (!left || !right || (!left->value && !right->value))
      return false;
    if (!left->value)
      std::swap(left, right);
    Value like = left->value;
    if (like.getType() != log.getType() && (!right->value || right->value.getType() != log.getType()))
      return false;
    Parts parts(log, kept);
    auto valueOf = [&](const Exponent &exponent) {
      Value number = exponent.value && exponent.number == 1 ? Value() : parts.scalar(exponent.number, like);
      return !number ? exponent.value : exponent.value ? parts.mul(exponent.value, number) : number;
    };
    Value x = valueOf(*left);
    if (!right->value && right->number == 0) {
      // Of a magnitude's negative there is nothing to be split off: this is what softplus is made of.
      Value opposite = negated(x);
      bool isSmall = opposite && opposite.getDefiningOp<graph::AbsOp>();
      Value decay = sum->getOperand(isSplat(sum.getLhs(), 1) ? 1 : 0);
      replace(log, isSmall ? parts.log1p(decay) : parts.softplus(x), isSmall ? "log1p" : "softplus");
      return true;
    }
    // Two infinities are no further apart than two equal numbers.
    Value y = valueOf(*right), apart = parts.sub(x, y);
    apart = parts.make<graph::WhereOp>(parts.make<graph::EqualOp>(x, y), parts.scalar(0, like), apart);
    replace(log, parts.add(parts.make<graph::MaxOp>(x, y), parts.excess(apart)), "logaddexp");
    return true;
  }

  /// x less the largest, which has no gradient of its own: what it adds is taken away again.
  static Value shifted(Parts &parts, Value x, ArrayRef<int64_t> axes, Value &shift) {
    Value largest = parts.make<graph::ReduceMaxOp>(x, axes, /*keepdims=*/true);
    Value size = parts.make<graph::AbsOp>(largest);
    Value isFinite =
        parts.make<graph::LessOp>(size, parts.scalar(std::numeric_limits<double>::infinity(), x));
    shift =
        parts.make<graph::StopGradientOp>(parts.make<graph::WhereOp>(isFinite, largest, parts.scalar(0, x)));
    return parts.sub(x, shift);
  }

  void raiseLogSumExp(graph::LogOp log, graph::ReduceSumOp sum) {
    auto exponential = sum.getInput().getDefiningOp<graph::ExpOp>();
    if (!exponential || isShifted(exponential.getInput()) || sum.getAxes().empty() ||
        typeOf(exponential).getNumElements() == 0)
      return;
    Parts parts(log, kept);
    Value shift, rest = shifted(parts, exponential.getInput(), sum.getAxes(), shift);
    Value total =
        parts.make<graph::ReduceSumOp>(parts.make<graph::ExpOp>(rest), sum.getAxes(), /*keepdims=*/true);
    Value result = parts.add(parts.log(total), shift);
    replace(log, parts.reshape(result, log.getType()), "logsumexp");
  }

  void raiseLogSoftmax(graph::LogOp log, graph::SoftmaxOp softmax) {
    if (typeOf(softmax).getNumElements() == 0)
      return;
    Parts parts(log, kept);
    int64_t axis = softmax.getAxis();
    Value x = softmax.getInput();
    Value largest =
        parts.make<graph::StopGradientOp>(parts.make<graph::ReduceMaxOp>(x, axis, /*keepdims=*/true));
    Value rest = parts.sub(x, largest);
    Value total = parts.make<graph::ReduceSumOp>(parts.make<graph::ExpOp>(rest), axis, /*keepdims=*/true);
    replace(log, parts.sub(rest, parts.log(total)), "log_softmax");
  }

  llvm::SmallPtrSet<Operation *, 8> kept;
};
} // namespace
