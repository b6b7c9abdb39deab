//===- RaiseEpilogues.cpp - products take in what follows them ------------===//
//
// What a device's library, or a host's kernel of a product, does with sums before they are
// rounded and stored needs no kernel of its own. First GELU with the bias below it, since
// that keeps the operand that its gradient asks for; then those gradients; then biases of
// products that routines read, which is what a host's kernels add.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Epilogue.h"
#include "dsopt/Interfaces/CompiledProducts.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_RAISEEPILOGUES
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isOfOneGroup(Operation *a, Operation *b) {
  return a->getAttr(graph::kBlockAttr) == b->getAttr(graph::kBlockAttr) &&
         a->getAttr(graph::kPhaseAttr) == b->getAttr(graph::kPhaseAttr);
}

bool isBackward(Operation *op) {
  std::optional<Phase> phase = graph::getPhase(op);
  return phase == Phase::B || phase == Phase::W;
}

/// The value under reshapes.
Value unshaped(Value value) {
  while (auto reshape = value.getDefiningOp<graph::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

/// What reads a value under reshapes, transposes and slices, which need no code where routines are at their
/// ends; `most` says which of those are looked through.
void collectReaders(Value value, function_ref<bool(Operation *)> most,
                    SmallVectorImpl<OpOperand *> &readers) {
  for (OpOperand &use : value.getUses())
    if (Operation *op = use.getOwner();
        isa<graph::ReshapeOp, graph::TransposeOp, graph::SliceOp>(op) && most(op))
      collectReaders(op->getResult(0), most, readers);
    else
      readers.push_back(&use);
}

/// Whether a weight of a product on a host may be asked for in tiles (tile-products): those have the bits of
/// the whole, whose sums are rounded before a kernel adds the bias.
bool mayBeTiled(graph::MatMulOp product) {
  auto tileable = cast<TileableOpInterface>(product.getOperation());
  return llvm::any_of(product->getOperands(), [&](Value operand) {
    while (auto transpose = operand.getDefiningOp<graph::TransposeOp>())
      operand = transpose.getInput();
    return operand.getDefiningOp<graph::ReadOp>() &&
           typeOf(operand).getDimSize(0) >= 2 * tileable.getCutUnit();
  });
}

/// Whether a product can have an epilogue: one of two matrices, added up in one piece. For lines of other
/// lengths a device's library may have none.
bool canHaveEpilogue(graph::MatMulOp product) {
  RankedTensorType type = product.getType(), lhs = typeOf(product.getLhs()), rhs = typeOf(product.getRhs());
  bool isOnDevice = isForDevice(product);
  for (RankedTensorType matrix : {type, lhs, rhs})
    if (isOnDevice && matrix.getShape().back() % DSOPT_EPILOGUE_COLUMNS)
      return false;
  // A single column may lie as a row.
  if (!isOnDevice && (type.getShape().back() < 2 || graph::numElements(lhs) == 0 || mayBeTiled(product)))
    return false;
  return type.getRank() == 2 && type.getElementType().isF32() && graph::numElements(type) > 0 &&
         !dsopt_device_product_has_chunks(lhs.getDimSize(product.getTransposeA() ? 0 : 1), DSOPT_F32);
}

/// The product that a value shows, if nothing else reads it and the library can go on with it.
graph::MatMulOp productOf(Value value, Operation *reader) {
  for (; value.hasOneUse(); value = value.getDefiningOp()->getOperand(0)) {
    if (auto product = value.getDefiningOp<graph::MatMulOp>())
      return isOfOneGroup(product, reader) && canHaveEpilogue(product) ? product : nullptr;
    if (!value.getDefiningOp<graph::ReshapeOp>())
      break;
  }
  return nullptr;
}

/// A sum of a product and a parameter that has a value for each column.
struct BiasedProduct {
  graph::MatMulOp product;
  Value bias;
};

std::optional<BiasedProduct> matchBias(graph::AddOp add) {
  for (auto [value, bias] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    auto product = productOf(value, add);
    if (!product || !unshaped(bias).getDefiningOp<graph::ReadOp>() || add.getType() != value.getType())
      continue;
    // Whatever leading dimensions the sum has: its last one are the columns.
    ArrayRef<int64_t> columns = product.getType().getShape().drop_front();
    if (typeOf(bias).getShape() == columns && add.getType().getShape().take_back() == columns)
      return BiasedProduct{product, bias};
  }
  return std::nullopt;
}

auto constant(double value) {
  return [value](Value operand) {
    auto op = operand.getDefiningOp<graph::ConstantOp>();
    auto elements = op ? dyn_cast<DenseFPElementsAttr>(op.getValue()) : nullptr;
    return elements && elements.isSplat() && elements.getElementType().isF32() &&
           elements.getSplatValue<APFloat>().convertToFloat() == static_cast<float>(value);
  };
}

/// The two operands of an operation that is there, else null ones.
template <typename Op> std::pair<Value, Value> operandsOf(Value value) {
  auto op = value ? value.getDefiningOp<Op>() : nullptr;
  return op ? std::pair<Value, Value>(op.getLhs(), op.getRhs()) : std::pair<Value, Value>();
}

/// The other operand of an operation one of whose operands is that number.
template <typename Op> Value besides(double number, Value value) {
  auto [lhs, rhs] = operandsOf<Op>(value);
  return !lhs ? Value() : constant(number)(lhs) ? rhs : constant(number)(rhs) ? lhs : Value();
}

/// x where `slope` is what GELU's derivative by x is written as: 0.5 (1 + t) + 0.5 x (1 - t t) u', with
/// t = tanh(u), u = sqrt(2 / pi) x (1 + 0.044715 x x).
Value matchGeluSlope(Value slope) {
  const double scale = M_2_SQRTPI * M_SQRT1_2, cubic = 0.044715;
  auto [left, right] = operandsOf<graph::AddOp>(slope);
  auto [halfX, bent] = operandsOf<graph::MulOp>(right);
  auto [bend, inner] = operandsOf<graph::MulOp>(bent);
  Value t = besides<graph::AddOp>(1, besides<graph::MulOp>(0.5, left)), x = besides<graph::MulOp>(0.5, halfX);
  auto tanh = t ? t.getDefiningOp<graph::TanhOp>() : nullptr;
  auto [one, squareT] = operandsOf<graph::SubOp>(bend);
  auto [u, polynomial] = operandsOf<graph::MulOp>(tanh ? tanh.getInput() : Value());
  Value square = besides<graph::MulOp>(cubic, besides<graph::AddOp>(1, polynomial));
  auto isSquareOf = [](Value value, Value of) {
    return of && operandsOf<graph::MulOp>(value) == std::pair(of, of);
  };
  bool isSlope = x && one && constant(1)(one) && isSquareOf(squareT, t) && isSquareOf(square, x) &&
                 besides<graph::MulOp>(scale, u) == x &&
                 besides<graph::MulOp>(3 * cubic * scale, besides<graph::AddOp>(scale, inner)) == square;
  return isSlope ? x : Value();
}

struct RaiseEpilogues : impl::RaiseEpiloguesBase<RaiseEpilogues> {
  void runOnOperation() override {
    StringRef precision = options::precision(getOperation());
    bool isOnDevice = isForDevice(getOperation());
    if (!isOnDevice && !canBias(precision))
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(graph::kIterateAttr))
        continue;
      Block &body = function.front();
      // Products of fp32 take as long as many passes over their results, and the library's documentation does
      // not say that it has these epilogues for them.
      bool takesGelu = isOnDevice && precision != "fp32";
      for (auto gelu : llvm::to_vector(body.getOps<graph::GeluOp>()))
        if (takesGelu)
          raise(gelu);
      for (auto gradient : llvm::to_vector(body.getOps<graph::MulOp>()))
        if (takesGelu)
          raise(gradient);
      for (auto add : llvm::to_vector(body.getOps<graph::AddOp>()))
        raise(add);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
        if (isOpTriviallyDead(&op))
          op.erase();
    }
  }

private:
  /// Whether kernels of products on the host add biases in the step's type.
  bool canBias(StringRef precision) {
    auto target = getOperation()->getAttrOfType<TargetAttr>(kTargetAttr);
    Builder builder(&getContext());
    Type type = precision == "fp32"   ? Type(builder.getF32Type())
                : precision == "bf16" ? Type(builder.getBF16Type())
                                      : Type(builder.getF16Type());
    return target && compilesProducts(target, type, type);
  }
  void raise(graph::GeluOp gelu);
  void raise(graph::MulOp gradient);
  void raise(graph::AddOp add);
};

/// The product with an epilogue, before `at`.
graph::MatMulEpilogueOp build(Epilogue kind, graph::MatMulOp product, Value given, bool keeps,
                              Operation *at) {
  OpBuilder builder(at);
  RankedTensorType type = product.getType();
  auto op = graph::MatMulEpilogueOp::create(builder, at->getLoc(), type, keeps ? Type(type) : Type(), kind,
                                            product.getLhs(), product.getRhs(), given,
                                            product.getTransposeA(), product.getTransposeB());
  op->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  return op;
}

/// Puts a matrix in the place of an operation's result.
void replace(Operation *op, Value matrix) {
  OpBuilder builder(op);
  if (RankedTensorType type = typeOf(op->getResult(0)); matrix.getType() != type) {
    auto reshape = graph::ReshapeOp::create(builder, op->getLoc(), type, matrix);
    reshape->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    matrix = reshape;
  }
  op->getResult(0).replaceAllUsesWith(matrix);
}

/// Backward readers of GELU's result take one that is computed again, from the operand that is kept: products
/// are not computed again, and a second matrix would have to be.
void computeAgain(graph::GeluOp gelu, ArrayRef<OpOperand *> readers) {
  if (readers.empty())
    return;
  Operation *first = readers.front()->getOwner();
  for (OpOperand *reader : readers)
    if (reader->getOwner()->isBeforeInBlock(first))
      first = reader->getOwner();
  OpBuilder builder(first);
  IRMapping again;
  // A value and the movements between it and GELU.
  auto copy = [&](auto &self, Value value) -> Value {
    if (Value known = again.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (op != gelu)
      self(self, op->getOperand(0));
    Operation *made = builder.clone(*op, again);
    made->setAttr(graph::kPhaseAttr, graph::PhaseAttr::get(gelu.getContext(), Phase::B));
    return again.lookup(value);
  };
  for (OpOperand *reader : readers)
    reader->set(copy(copy, reader->get()));
}
} // namespace

/// GELU of a biased product that routines read in their phase.
void RaiseEpilogues::raise(graph::GeluOp gelu) {
  auto add = unshaped(gelu.getInput()).getDefiningOp<graph::AddOp>();
  auto biased = add && gelu.getApproximateTanh() && isOfOneGroup(gelu, add) ? matchBias(add) : std::nullopt;
  if (!biased)
    return;
  auto inForward = [](Operation *op) { return !isBackward(op); };
  SmallVector<OpOperand *> ofSum, ofResult, backward;
  collectReaders(add.getResult(), inForward, ofSum);
  collectReaders(gelu.getResult(), inForward, ofResult);
  for (OpOperand *use : ofResult)
    if (isBackward(use->getOwner()))
      backward.push_back(use);
    else if (!isa<RoutineOpInterface>(use->getOwner()))
      return;
  llvm::erase_if(ofSum, [&](OpOperand *use) { return use->getOwner() == gelu; });
  bool keeps = !ofSum.empty() || !backward.empty();
  if (llvm::any_of(ofSum, [&](OpOperand *use) { return inForward(use->getOwner()); }))
    return;
  computeAgain(gelu, backward);
  auto made = build(Epilogue::BiasGelu, biased->product, biased->bias, keeps, add);
  // What backward takes of GELU is a copy, which takes the sum.
  if (keeps)
    replace(add, made.getPreActivation());
  replace(gelu, made.getResult());
}

/// A product's gradient times GELU's slope at what a product with GELU has kept.
void RaiseEpilogues::raise(graph::MulOp gradient) {
  Value x = matchGeluSlope(gradient.getRhs());
  auto forward = x ? unshaped(x).getDefiningOp<graph::MatMulEpilogueOp>() : nullptr;
  auto product = productOf(gradient.getLhs(), gradient);
  if (!forward || unshaped(x) != forward.getPreActivation() || !product ||
      product.getType() != unshaped(x).getType() || gradient.getType() != gradient.getLhs().getType())
    return;
  replace(gradient, build(Epilogue::GeluGrad, product, unshaped(x), /*keeps=*/false, gradient).getResult());
}

/// A bias alone saves nothing where a kernel reads the sum: it adds the bias.
void RaiseEpilogues::raise(graph::AddOp add) {
  auto biased = add->use_empty() ? std::nullopt : matchBias(add);
  SmallVector<OpOperand *> readers;
  collectReaders(add.getResult(), [](Operation *) { return true; }, readers);
  if (biased &&
      llvm::all_of(readers, [](OpOperand *use) { return isa<RoutineOpInterface>(use->getOwner()); }))
    replace(add, build(Epilogue::Bias, biased->product, biased->bias, /*keeps=*/false, add).getResult());
}
} // namespace dsopt
