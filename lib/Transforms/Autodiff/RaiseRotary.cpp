//===- RaiseRotary.cpp - rotary embeddings without concatenations ---------===//
//
// Starts at each concatenation of one half of a value and the other's negative.
//
//===----------------------------------------------------------------------===//

#include "Idioms.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_RAISEROTARY
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// (-second, first) of the pairs of `x`'s last dimension: of its halves, or of neighbours.
struct Turn {
  Value x, result;
  bool isInterleaved;
};

/// The value that a slice of half the last dimension reads, with the slice's place; null if it is none.
Value halfOf(Value value, int64_t &start, int64_t &step) {
  auto slice = value.getDefiningOp<graph::SliceOp>();
  if (!slice)
    return {};
  ArrayRef<int64_t> whole = typeOf(slice.getInput()).getShape(), size = slice.getSizes();
  if (whole.empty() || whole.drop_back() != size.drop_back() || whole.back() != 2 * size.back() ||
      llvm::any_of(slice.getSteps().drop_back(), [](int64_t step) { return step != 1; }))
    return {};
  start = slice.getStarts().back();
  step = slice.getSteps().back();
  return slice.getInput();
}

Value negated(Value value) {
  if (auto neg = value.getDefiningOp<graph::NegOp>())
    return neg.getInput();
  auto mul = value.getDefiningOp<graph::MulOp>();
  return mul && isSplat(mul.getRhs(), -1) ? mul.getLhs() : Value();
}

std::optional<Turn> matchTurn(graph::ConcatOp concat) {
  int64_t rank = typeOf(concat).getRank();
  if (concat.getInputs().size() != 2 || static_cast<int64_t>(concat.getAxis()) != rank - 1)
    return std::nullopt;
  // Neighbours are stacked along a dimension of their own, which is then merged with the last.
  Value first = concat.getInputs()[0], second = concat.getInputs()[1], result = concat.getResult();
  bool isStacked = false;
  auto parts = [&](Value value) {
    auto reshape = value.getDefiningOp<graph::ReshapeOp>();
    return reshape && typeOf(reshape).getShape().back() == 1 &&
                   typeOf(reshape).getShape().drop_back() == typeOf(reshape.getInput()).getShape()
               ? reshape.getInput()
               : Value();
  };
  if (Value low = parts(first), high = parts(second); low && high) {
    isStacked = true;
    first = low, second = high;
  }
  Value negative = negated(first);
  int64_t starts[2], steps[2];
  Value x = negative ? halfOf(negative, starts[0], steps[0]) : Value();
  if (!x || halfOf(second, starts[1], steps[1]) != x || steps[0] != steps[1] || starts[1] != 0)
    return std::nullopt;
  int64_t half = typeOf(x).getShape().back() / 2;
  if (!isStacked && steps[0] == 1 && starts[0] == half && half > 1)
    return Turn{x, result, false};
  auto merged = isStacked ? dyn_cast_or_null<graph::ReshapeOp>(onlyUser(result)) : nullptr;
  if (merged && steps[0] == 2 && starts[0] == 1 && merged.getType() == x.getType())
    return Turn{x, merged.getResult(), true};
  return std::nullopt;
}

class Raiser {
public:
  explicit Raiser(MLIRContext *context) : builder(context) {}

  void raise(graph::ConcatOp concat) {
    auto turn = matchTurn(concat);
    if (!turn)
      return;
    // x * cosine + turn * sine
    Operation *product = onlyUser(turn->result);
    Value sine = otherOperand<graph::MulOp>(product, turn->result);
    Operation *sum = sine ? onlyUser(product->getResult(0)) : nullptr;
    Value other = sum ? otherOperand<graph::AddOp>(sum, product->getResult(0)) : Value();
    auto straight = other ? other.getDefiningOp<graph::MulOp>() : nullptr;
    Value cosine;
    if (straight && straight.getLhs() == turn->x)
      cosine = straight.getRhs();
    else if (straight && straight.getRhs() == turn->x)
      cosine = straight.getLhs();
    if (!cosine || sum->getResult(0).getType() != turn->x.getType())
      return missed(concat, "rotary", "the turned pairs are not added to the pairs themselves");

    builder.setInsertionPoint(sum);
    loc = sum->getLoc();
    bool isInterleaved = turn->isInterleaved;
    RankedTensorType type = typeOf(turn->x);
    Value pairs = split(turn->x, isInterleaved);
    RankedTensorType pairType = typeOf(pairs);
    int64_t rank = pairType.getRank(), dim = isInterleaved ? rank - 1 : rank - 2;
    SmallVector<int64_t> starts(rank, 0), steps(rank, 1);
    starts[dim] = 1;
    steps[dim] = -1;
    Value swapped = graph::SliceOp::create(builder, loc, pairs, starts, pairType.getShape(), steps);
    auto signType = RankedTensorType::get(isInterleaved ? ArrayRef<int64_t>{2} : ArrayRef<int64_t>{2, 1},
                                          type.getElementType());
    Attribute bothSigns[] = {builder.getFloatAttr(type.getElementType(), -1),
                             builder.getFloatAttr(type.getElementType(), 1)};
    Value signs = graph::ConstantOp::create(builder, loc,
                                            DenseElementsAttr::get(signType, ArrayRef<Attribute>(bothSigns)));
    Value signedSine = builder.createOrFold<graph::MulOp>(loc, split(sine, isInterleaved), signs);
    Value first = graph::MulOp::create(builder, loc, pairs, split(cosine, isInterleaved));
    Value second = graph::MulOp::create(builder, loc, swapped, signedSine);
    Value rotated = graph::AddOp::create(builder, loc, first, second);
    auto result = graph::ReshapeOp::create(builder, loc, type, rotated);
    raised(result, "rotary");
    sum->getResult(0).replaceAllUsesWith(result);
  }

private:
  /// The last dimension as two: halves and places in them, or pairs and their sides. Before a
  /// transposition rather than after it, which a kernel then reads through.
  Value split(Value value, bool isInterleaved) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    if (shape.empty())
      return value;
    int64_t rank = shape.size(), last = shape.pop_back_val();
    if (auto transpose = value.getDefiningOp<graph::TransposeOp>();
        transpose && transpose.getPerm().back() == rank - 1) {
      SmallVector<int64_t> perm(transpose.getPerm());
      perm.push_back(rank);
      return graph::TransposeOp::create(builder, loc, split(transpose.getInput(), isInterleaved), perm);
    }
    int64_t half = last == 1 ? 1 : last / 2, two = last == 1 ? 1 : 2;
    shape.append({isInterleaved ? half : two, isInterleaved ? two : half});
    return builder.createOrFold<graph::ReshapeOp>(
        loc, RankedTensorType::get(shape, typeOf(value).getElementType()), value);
  }

  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
};

struct RaiseRotary : public dsopt::impl::RaiseRotaryBase<RaiseRotary> {
  using RaiseRotaryBase::RaiseRotaryBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    Raiser raiser(&getContext());
    for (auto concat : llvm::to_vector(forward.front().getOps<graph::ConcatOp>()))
      raiser.raise(concat);
    eraseDead(forward);
  }
};
} // namespace
