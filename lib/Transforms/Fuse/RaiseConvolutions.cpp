//===- RaiseConvolutions.cpp - products of windows as convolutions --------===//
//
// Each of a convolution's three products that ConvolutionWindows.h finds becomes one. fp32
// convolutions have their channels second, as models have, so that the transposes around
// them cancel.
//
//===----------------------------------------------------------------------===//

#include "ConvolutionWindows.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_RAISECONVOLUTIONS
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class Raiser {
public:
  Raiser(func::FuncOp function, bool isNarrow) : builder(function.getContext()), isNarrow(isNarrow) {}

  void raise(graph::MatMulOp product);
  void raise(graph::WindowsSumOp sums);

private:
  std::optional<dsopt_convolution> find(ConvolutionKind kind, const ConvolutionWindows &windows,
                                        int64_t outputs);

  template <typename Op, typename... Args> Value make(Args &&...args) {
    auto op = Op::create(builder, anchor->getLoc(), std::forward<Args>(args)...);
    op->setDiscardableAttrs(anchor->getDiscardableAttrDictionary());
    return op->getResult(0);
  }
  Value reshaped(Value value, ArrayRef<int64_t> shape);
  Value moved(Value value, int64_t from, int64_t to);
  /// Between what convolutions have in the graph and in the library: channels last or second.
  Value toLibrary(Value value) { return isNarrow ? value : moved(value, typeOf(value).getRank() - 1, 1); }
  Value toGraph(Value value) { return isNarrow ? value : moved(value, 1, typeOf(value).getRank() - 1); }
  Sizes inLibrary(Sizes shape);

  Value imageOf(const ConvolutionWindows &windows, const ConvolutionPadding &padding);
  Value weightOf(Value matrix, const ConvolutionWindows &windows);
  Value resultsOf(Value matrix, const ConvolutionWindows &windows);
  Value convolve(ConvolutionKind kind, Value lhs, Value rhs, const Sizes &shape,
                 const ConvolutionWindows &windows, const ConvolutionPadding &padding);

  OpBuilder builder;
  Operation *anchor = nullptr;
  bool isNarrow;
};

Value Raiser::reshaped(Value value, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  return value.getType() == type ? value : make<graph::ReshapeOp>(type, value);
}

Value Raiser::moved(Value value, int64_t from, int64_t to) {
  Sizes perm = llvm::to_vector(llvm::seq<int64_t>(typeOf(value).getRank()));
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return make<graph::TransposeOp>(value, perm);
}

Sizes Raiser::inLibrary(Sizes shape) {
  if (!isNarrow) {
    int64_t channels = shape.pop_back_val();
    shape.insert(shape.begin() + 1, channels);
  }
  return shape;
}

/// What the table says of a convolution, if it has an algorithm.
std::optional<dsopt_convolution> Raiser::find(ConvolutionKind kind, const ConvolutionWindows &windows,
                                              int64_t outputs) {
  if (outputs % windows.groups || windows.kernel.size() > DSOPT_CONVOLUTION_RANK)
    return std::nullopt;
  ConvolutionPadding padding = paddingOf(windows);
  Sizes x = paddedShape(windows, padding), w{outputs}, y{windows.shape[0]};
  llvm::append_range(w, windows.kernel);
  w.push_back(windows.shape.back() / windows.groups);
  llvm::append_range(y, windows.counts);
  y.push_back(outputs);
  x = inLibrary(x), w = inLibrary(w), y = inLibrary(y);
  ConvolutionShape shape = {
      kind, x, w, y, windows.strides, windows.dilations, padding.pads, windows.groups, isNarrow, isNarrow};
  if (checkConvolution(shape))
    return std::nullopt;
  dsopt_convolution d = describeConvolution(shape);
  return d.algorithm == DSOPT_CONVOLUTION_PRODUCTS ? std::nullopt : std::optional(d);
}

Value Raiser::imageOf(const ConvolutionWindows &windows, const ConvolutionPadding &padding) {
  Value image = windows.image;
  if (padding.isApart)
    image = make<graph::PadOp>(image, padding.lows, padding.highs,
                               cast<TypedAttr>(FloatAttr::get(typeOf(image).getElementType(), 0.0)));
  return toLibrary(image);
}

/// The weight of a matrix [groups, outputs / groups, columns].
Value Raiser::weightOf(Value matrix, const ConvolutionWindows &windows) {
  Sizes shape{typeOf(matrix).getNumElements() / windows.columns()};
  llvm::append_range(shape, windows.kernel);
  shape.push_back(windows.shape.back() / windows.groups);
  return toLibrary(reshaped(matrix, shape));
}

/// The results of windows that a matrix [groups, rows, outputs / groups] has.
Value Raiser::resultsOf(Value matrix, const ConvolutionWindows &windows) {
  if (windows.groups > 1)
    matrix = moved(matrix, 0, 1);
  Sizes shape{windows.shape[0]};
  llvm::append_range(shape, windows.counts);
  shape.push_back(typeOf(matrix).getNumElements() / windows.rows());
  return toLibrary(reshaped(matrix, shape));
}

Value Raiser::convolve(ConvolutionKind kind, Value lhs, Value rhs, const Sizes &shape,
                       const ConvolutionWindows &windows, const ConvolutionPadding &padding) {
  auto type = RankedTensorType::get(inLibrary(shape), typeOf(lhs).getElementType());
  return toGraph(make<graph::ConvolutionOp>(type, kind, lhs, rhs, windows.strides, windows.dilations,
                                            padding.pads, windows.groups, isNarrow));
}

void missed(Operation *op) {
  remark::missed(op->getLoc(), remark::RemarkOpts::name("convolution").category("idiom"))
      << "the table has no algorithm for its shape and type: it stays a product";
}

void Raiser::raise(graph::MatMulOp product) {
  if (!typeOf(product).getElementType().isF32())
    return;
  anchor = product;
  builder.setInsertionPoint(product);
  RankedTensorType type = typeOf(product);
  // y = columns w^T
  auto windows = !product.getTransposeA() && product.getTransposeB() ? matchColumns(product.getLhs(), product)
                                                                     : std::nullopt;
  if (windows) {
    int64_t outputs = type.getShape().back() * windows->groups;
    if (!find(ConvolutionKind::Forward, *windows, outputs))
      return missed(product);
    ConvolutionPadding padding = paddingOf(*windows);
    Sizes shape{windows->shape[0]};
    llvm::append_range(shape, windows->counts);
    shape.push_back(outputs);
    Value y = convolve(ConvolutionKind::Forward, imageOf(*windows, padding),
                       weightOf(product.getRhs(), *windows), shape, *windows, padding);
    if (windows->groups > 1)
      y = moved(reshaped(y, {windows->rows(), windows->groups, outputs / windows->groups}), 1, 0);
    product.getResult().replaceAllUsesWith(reshaped(y, type.getShape()));
    return;
  }
  // The gradient of w: y^T columns
  windows = product.getTransposeA() && !product.getTransposeB() ? matchColumns(product.getRhs(), product)
                                                                : std::nullopt;
  if (!windows)
    return;
  int64_t outputs = type.getShape().take_back(2)[0] * windows->groups;
  if (!find(ConvolutionKind::Weight, *windows, outputs))
    return missed(product);
  ConvolutionPadding padding = paddingOf(*windows);
  Sizes shape{outputs};
  llvm::append_range(shape, windows->kernel);
  shape.push_back(windows->shape.back() / windows->groups);
  Value w = convolve(ConvolutionKind::Weight, imageOf(*windows, padding),
                     resultsOf(product.getLhs(), *windows), shape, *windows, padding);
  product.getResult().replaceAllUsesWith(reshaped(w, type.getShape()));
}

/// The gradient of x: the sums of the windows of y w.
void Raiser::raise(graph::WindowsSumOp sums) {
  std::optional<SummedWindows> found = matchSums(sums);
  if (!found)
    return;
  const ConvolutionWindows &windows = found->windows;
  graph::MatMulOp product = found->product;
  anchor = sums;
  builder.setInsertionPoint(sums);
  int64_t outputs = typeOf(product.getLhs()).getShape().back() * windows.groups;
  if (!find(ConvolutionKind::Data, windows, outputs))
    return missed(sums);
  ConvolutionPadding padding = paddingOf(windows);
  Sizes padded = paddedShape(windows, padding);
  Value x = convolve(ConvolutionKind::Data, resultsOf(product.getLhs(), windows),
                     weightOf(product.getRhs(), windows), padded, windows, padding);
  // Padding's adjoint is cutting off, and what was cut off takes no part.
  if (padding.isApart) {
    Sizes lows = padding.lows, highs = padding.highs;
    for (size_t i = 0; i < lows.size(); ++i)
      lows[i] = -lows[i], highs[i] = -highs[i];
    x = make<graph::PadOp>(x, lows, highs,
                           cast<TypedAttr>(FloatAttr::get(typeOf(sums).getElementType(), 0.0)));
  }
  sums.getResult().replaceAllUsesWith(x);
}

struct RaiseConvolutions : impl::RaiseConvolutionsBase<RaiseConvolutions> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "precision", StringRef(precision));
    StringRef type = options::precision(module);
    if (!isForDevice(module) || (type != "fp32" && type != "bf16"))
      return;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(graph::kIterateAttr))
        continue;
      Raiser raiser(function, type == "bf16");
      // Sums first: they take the products that they read with them.
      for (auto sums : llvm::to_vector(function.front().getOps<graph::WindowsSumOp>()))
        raiser.raise(sums);
      for (auto product : llvm::to_vector(function.front().getOps<graph::MatMulOp>()))
        raiser.raise(product);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
        if (isOpTriviallyDead(&op))
          op.erase();
    }
  }
};
} // namespace
} // namespace dsopt
