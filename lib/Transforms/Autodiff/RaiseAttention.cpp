//===- RaiseAttention.cpp - products around a softmax as one routine ------===//
//
// Starts at each softmax, follows the scores up to the product of q and k and
// the probabilities down to the product with v.
//
//===----------------------------------------------------------------------===//

#include "CausalMasks.h"
#include "Idioms.h"
#include "Origins.h"
#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Transforms/Autodiff/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_RAISEATTENTION
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::idioms;

namespace {
/// Scores this low take no part in a softmax.
constexpr double kMasked = -1e30;

/// Part of the kernel table (Runtime.h, kKernelTable). Scores of few rows and many columns stay plain
/// products with a softmax between them, which are faster there (1 row of 1024 columns: 7 times, 8 rows:
/// twice). For other shapes the routine is, from 4 x 4 up (AVX-512, heads of 16 to 64).
constexpr int64_t kFewRows = 8, kManyColumns = 128;

int64_t fromEnd(Value value, int64_t back) {
  return typeOf(value).getDimSize(typeOf(value).getRank() - back);
}

/// The value that the operation multiplies by a number (which `scale` is multiplied by), if it does.
Value scaledBy(Operation *op, double &scale) {
  if (!isa_and_nonnull<graph::MulOp, graph::DivOp>(op))
    return {};
  for (unsigned side : {1u, 0u}) {
    Value other = op->getOperand(1 - side);
    auto number = splatOf(op->getOperand(side));
    if (!number || other.getType() != op->getResult(0).getType() || (isa<graph::DivOp>(op) && side == 0))
      continue;
    scale *= isa<graph::DivOp>(op) ? 1 / *number : *number;
    return other;
  }
  return {};
}

/// Whether a reshape keeps the last two dimensions.
bool keepsMatrices(graph::ReshapeOp reshape) {
  auto from = typeOf(reshape.getInput()).getShape(), to = typeOf(reshape).getShape();
  return from.size() >= 2 && to.size() >= 2 && from.take_back(2) == to.take_back(2);
}

/// What a mask says that follows from rows and columns alone.
enum class MaskKind { Other, Causal, CausalInfinite };

class Raiser {
public:
  explicit Raiser(func::FuncOp forward) : origins(forward), builder(forward.getContext()) {}

  /// Replaces the softmax and what belongs to it, if it is attention's.
  void raise(graph::SoftmaxOp softmax);

private:
  /// What is added to scores, and the dimensions that these have there.
  struct Mask {
    Value value;
    int64_t rank;
  };
  /// The scores between the product of q and k and the softmax.
  struct Scores {
    graph::MatMulOp product;
    double scale = 1;
    SmallVector<Mask> masks;
    RankedTensorType heads; ///< of the scores where they have four dimensions
  };
  /// The probabilities between the softmax and the product with v.
  struct Probabilities {
    graph::MatMulOp product;
    bool zeroed = false; ///< rows that read nothing are zeros, not NaN
    RankedTensorType heads;
  };

  std::optional<Scores> matchScores(Value scores);
  std::optional<Probabilities> matchProbabilities(graph::SoftmaxOp softmax);
  Value matchMask(Operation *op, Value &scores);
  bool isMask(Value value) { return origins.of(value) == Origin::Input; }
  MaskKind kindOf(Value mask, int64_t rows, int64_t columns);
  static bool isBounded(Value mask);
  Value joinMasks(ArrayRef<Mask> masks, ArrayRef<int64_t> pairs);

  template <typename OpTy, typename... Args> Value make(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...)->getResult(0);
  }
  Value number(double value, Type elementType) {
    return graph::scalarConstant(builder, loc, elementType, value);
  }
  Value reshaped(Value value, ArrayRef<int64_t> shape);
  Value unscaled(Value value, double &scale);
  Value swapped(Value value);
  Value operand(Value value, bool swap, double *scale, ArrayRef<int64_t> pairs);

  Origins origins;
  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
  DenseMap<std::pair<Attribute, std::pair<int64_t, int64_t>>, MaskKind> kinds;
};

/// The additive mask of `op`, whose other operand is assigned to `scores`; null if it adds none.
Value Raiser::matchMask(Operation *op, Value &scores) {
  if (isa<graph::AddOp>(op))
    for (unsigned side : {1u, 0u})
      if (Value mask = op->getOperand(side), other = op->getOperand(1 - side);
          isMask(mask) && other.getType() == op->getResult(0).getType()) {
        scores = other;
        return mask;
      }
  auto where = dyn_cast<graph::WhereOp>(op);
  // A branch says which parameters a step reaches, which no mask does.
  if (!where || where.getBranch() || !isMask(where.getCondition()))
    return {};
  for (bool kept : {true, false}) {
    Value other = kept ? where.getLhs() : where.getRhs(), low = kept ? where.getRhs() : where.getLhs();
    auto lowest = splatOf(low);
    if (!lowest || !(*lowest <= kMasked) || other.getType() != where.getType())
      continue;
    scores = other;
    Value zero = number(0, typeOf(low).getElementType());
    return kept ? make<graph::WhereOp>(where.getCondition(), zero, low)
                : make<graph::WhereOp>(where.getCondition(), low, zero);
  }
  return {};
}

std::optional<Raiser::Scores> Raiser::matchScores(Value value) {
  Scores scores;
  while (value.hasOneUse() && value.getDefiningOp()) {
    Operation *op = value.getDefiningOp();
    if (typeOf(value).getRank() == 4)
      scores.heads = typeOf(value);
    if (auto product = dyn_cast<graph::MatMulOp>(op)) {
      scores.product = product;
      return scores;
    }
    Value next;
    if (Value mask = matchMask(op, next)) {
      // A mask inside the scale.
      if (scores.scale != 1)
        return std::nullopt;
      scores.masks.push_back({mask, typeOf(value).getRank()});
    } else if (auto reshape = dyn_cast<graph::ReshapeOp>(op); reshape && keepsMatrices(reshape)) {
      next = reshape.getInput();
    } else {
      next = scaledBy(op, scores.scale);
    }
    if (!next)
      return std::nullopt;
    value = next;
  }
  return std::nullopt;
}

std::optional<Raiser::Probabilities> Raiser::matchProbabilities(graph::SoftmaxOp softmax) {
  Probabilities probabilities;
  Value value = softmax.getResult();
  auto users = llvm::to_vector(value.getUsers());
  if (users.size() == 2) {
    // where(isnan(p), 0, p)
    auto isnan = dyn_cast<graph::IsNaNOp>(users[0]);
    auto where = dyn_cast<graph::WhereOp>(users[1]);
    if (!isnan) {
      isnan = dyn_cast<graph::IsNaNOp>(users[1]);
      where = dyn_cast<graph::WhereOp>(users[0]);
    }
    if (!isnan || !where || !isnan->hasOneUse() || where.getCondition() != isnan.getResult() ||
        where.getRhs() != value || splatOf(where.getLhs()) != 0.0 || where.getType() != value.getType())
      return std::nullopt;
    probabilities.zeroed = true;
    value = where.getResult();
  }
  while (value.hasOneUse()) {
    if (typeOf(value).getRank() == 4)
      probabilities.heads = typeOf(value);
    Operation *user = *value.user_begin();
    if (auto product = dyn_cast<graph::MatMulOp>(user)) {
      if (product.getLhs() != value || product.getTransposeA())
        return std::nullopt;
      probabilities.product = product;
      return probabilities;
    }
    auto reshape = dyn_cast<graph::ReshapeOp>(user);
    if (!reshape || !keepsMatrices(reshape))
      return std::nullopt;
    value = reshape.getResult();
  }
  return std::nullopt;
}

/// Whether a mask is 0 up to the diagonal and low behind it.
MaskKind Raiser::kindOf(Value mask, int64_t rows, int64_t columns) {
  if (columns < rows)
    return MaskKind::Other;
  if (std::optional<CausalMask> counted = findCausalMask(mask, rows, columns))
    return counted->shift != columns - rows || counted->read != 0 || !(counted->masked <= kMasked)
               ? MaskKind::Other
           : std::isinf(counted->masked) ? MaskKind::CausalInfinite
                                         : MaskKind::Causal;
  auto constant = mask.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || elements.isSplat() || elements.getType().getRank() < 2 ||
      elements.getType().getShape().take_back(2) != ArrayRef<int64_t>({rows, columns}))
    return MaskKind::Other;
  auto [known, isNew] = kinds.try_emplace({elements, {rows, columns}}, MaskKind::Other);
  if (!isNew)
    return known->second;
  bool infinite = true;
  int64_t index = 0, shift = columns - rows;
  for (const APFloat &number : elements.getValues<APFloat>()) {
    int64_t row = index / columns % rows, column = index % columns;
    ++index;
    if (column <= row + shift) {
      if (!number.isZero())
        return MaskKind::Other;
      continue;
    }
    APFloat wide = number;
    bool inexact;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    if (!(wide.convertToDouble() <= kMasked))
      return MaskKind::Other;
    infinite &= number.isInfinity();
  }
  return known->second = infinite ? MaskKind::CausalInfinite : MaskKind::Causal;
}

/// Whether a mask is a constant that hides nothing: a bias of positions, say.
bool Raiser::isBounded(Value mask) {
  constexpr double kBound = 1e6;
  while (auto view = mask.getDefiningOp<graph::ReshapeOp>())
    mask = view.getInput();
  auto constant = mask.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  return elements && llvm::all_of(elements.getValues<APFloat>(), [](const APFloat &number) {
           return std::abs(number.convertToDouble()) <= kBound;
         });
}

Value Raiser::reshaped(Value value, ArrayRef<int64_t> shape) {
  value = withoutReshapes(value);
  if (typeOf(value).getShape() == shape)
    return value;
  return make<graph::ReshapeOp>(RankedTensorType::get(shape, typeOf(value).getElementType()), value);
}

/// The value without the numbers it is multiplied by, behind views and transposes too.
Value Raiser::unscaled(Value value, double &scale) {
  Operation *op = value.getDefiningOp();
  if (Value input = scaledBy(op, scale))
    return unscaled(input, scale);
  if (!isa_and_nonnull<graph::ReshapeOp, graph::TransposeOp>(op))
    return value;
  Value input = unscaled(op->getOperand(0), scale);
  if (input == op->getOperand(0))
    return value;
  if (auto transpose = dyn_cast<graph::TransposeOp>(op))
    return make<graph::TransposeOp>(input, transpose.getPerm());
  return reshaped(input, typeOf(value).getShape());
}

/// The value with its last two dimensions swapped: what was transposed, if it was.
Value Raiser::swapped(Value value) {
  int64_t rank = typeOf(value).getRank();
  if (auto reshape = value.getDefiningOp<graph::ReshapeOp>(); reshape && keepsMatrices(reshape)) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    std::swap(shape[rank - 2], shape[rank - 1]);
    return reshaped(swapped(reshape.getInput()), shape);
  }
  Value input = value;
  auto perm = llvm::to_vector(llvm::seq<int64_t>(rank));
  if (auto transpose = value.getDefiningOp<graph::TransposeOp>()) {
    input = transpose.getInput();
    perm.assign(transpose.getPerm().begin(), transpose.getPerm().end());
  }
  std::swap(perm[rank - 2], perm[rank - 1]);
  return llvm::equal(perm, llvm::seq<int64_t>(rank)) ? input : make<graph::TransposeOp>(input, perm);
}

/// An operand of a product as attention reads it: [batch, heads, rows, size].
Value Raiser::operand(Value value, bool swap, double *scale, ArrayRef<int64_t> pairs) {
  if (scale)
    value = unscaled(value, *scale);
  if (swap)
    value = swapped(value);
  return reshaped(value, {pairs[0], pairs[1], fromEnd(value, 2), fromEnd(value, 1)});
}

/// The sum of the masks, as it broadcasts to scores of four dimensions.
Value Raiser::joinMasks(ArrayRef<Mask> masks, ArrayRef<int64_t> pairs) {
  Value sum;
  for (auto [mask, rank] : masks) {
    ArrayRef<int64_t> shape = typeOf(mask).getShape();
    if (rank == 3 && shape.size() == 3) {
      bool whole = shape[0] != 1;
      mask = reshaped(mask, {whole ? pairs[0] : 1, whole ? pairs[1] : 1, shape[1], shape[2]});
    }
    sum = sum ? make<graph::AddOp>(sum, mask) : mask;
  }
  return sum;
}

void Raiser::raise(graph::SoftmaxOp softmax) {
  RankedTensorType type = typeOf(softmax);
  int64_t rank = type.getRank();
  if (rank < 3 || static_cast<int64_t>(softmax.getAxis()) != rank - 1 || !type.getElementType().isF32())
    return;
  auto probabilities = matchProbabilities(softmax);
  if (!probabilities)
    return missed(softmax, "attention", "no product alone reads the softmax");
  graph::MatMulOp second = probabilities->product;
  builder.setInsertionPoint(second);
  loc = second.getLoc();
  auto scores = matchScores(softmax.getInput());
  if (!scores)
    return missed(softmax, "attention",
                  "between a product and the softmax is more than a scale and masks made from inputs");
  int64_t rows = fromEnd(softmax, 2), columns = fromEnd(softmax, 1);
  for (graph::MatMulOp product : {scores->product, second})
    if (typeOf(product).getRank() != 3 && typeOf(product).getRank() != 4)
      return missed(softmax, "attention", "its products have other ranks than 3 or 4");
  if (rows <= kFewRows && columns >= kManyColumns)
    return missed(softmax, "attention", "few rows of many columns are faster as products");
  RankedTensorType heads = scores->heads ? scores->heads : probabilities->heads;
  SmallVector<int64_t> pairs{1, typeOf(scores->product).getDimSize(0)};
  if (heads)
    pairs.assign({heads.getDimSize(0), heads.getDimSize(1)});

  bool causal = false;
  SmallVector<Mask> masks;
  for (const Mask &mask : scores->masks) {
    MaskKind kind = kindOf(mask.value, rows, columns);
    // Beside a mask that hides columns, too, a finite number may still be the largest of a row.
    bool isLowest = llvm::all_of(scores->masks, [&](const Mask &other) {
      return other.value == mask.value || isBounded(other.value);
    });
    if (kind == MaskKind::CausalInfinite || (kind == MaskKind::Causal && isLowest))
      causal = true;
    else
      masks.push_back(mask);
  }
  double scale = scores->scale;
  Value q = operand(scores->product.getLhs(), scores->product.getTransposeA(), &scale, pairs);
  Value k = operand(scores->product.getRhs(), !scores->product.getTransposeB(), &scale, pairs);
  Value v = operand(second.getRhs(), second.getTransposeB(), nullptr, pairs);
  Value mask = joinMasks(masks, pairs);

  SmallVector<int64_t> shape(typeOf(q).getShape());
  auto lse = RankedTensorType::get(ArrayRef(shape).drop_back(), builder.getF32Type());
  shape[3] = fromEnd(v, 1);
  auto resultType = RankedTensorType::get(shape, typeOf(v).getElementType());
  Value result =
      graph::AttentionOp::create(builder, loc, resultType, lse, q, k, v, mask, builder.getF64FloatAttr(scale),
                                 causal ? builder.getUnitAttr() : UnitAttr(), IntegerAttr(), IntegerAttr())
          .getResult();
  raised(result.getDefiningOp(), "attention");
  // Without a mask but the causal one every row reads something.
  if (probabilities->zeroed && mask)
    result =
        make<graph::WhereOp>(make<graph::IsNaNOp>(result), number(0, resultType.getElementType()), result);
  if (result.getType() != second.getType())
    result = make<graph::ReshapeOp>(second.getType(), result);
  second.getResult().replaceAllUsesWith(result);
}

struct RaiseAttention : public dsopt::impl::RaiseAttentionBase<RaiseAttention> {
  using RaiseAttentionBase::RaiseAttentionBase;

  void runOnOperation() override {
    func::FuncOp forward = forwardOf(getOperation(), getArgument());
    if (!forward)
      return signalPassFailure();
    Raiser raiser(forward);
    for (auto softmax : llvm::to_vector(forward.front().getOps<graph::SoftmaxOp>()))
      raiser.raise(softmax);
    eraseDead(forward);
  }
};
} // namespace
