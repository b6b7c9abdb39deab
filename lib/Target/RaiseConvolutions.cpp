//===- RaiseConvolutions.cpp - products of windows as convolutions --------===//
//
// Importers write a convolution as a product of what is under its windows, channels last;
// autodiff makes of it a product for the weight and a sum of windows for the input. Each
// of the three is found by itself. fp32 convolutions have their channels second, as
// models have, so that the transposes around them cancel.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Convolution.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Target/Passes.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_RAISECONVOLUTIONS
#include "dsopt/Target/Passes.h.inc"

namespace {
using Sizes = SmallVector<int64_t>;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Windows over all dimensions between the batch and the channels, and how many groups there are of these.
struct Windows {
  Value image;          ///< what is under them, if that is read
  Sizes shape;          ///< [batch, size..., channels]
  Sizes counts, kernel; ///< of the windows
  Sizes strides, dilations, lows;
  int64_t groups = 1;

  int64_t rows() const { return shape[0] * ShapedType::getNumElements(counts); }
  int64_t columns() const { return ShapedType::getNumElements(kernel) * shape.back() / groups; }
};

/// Nothing of a block goes into another: a cut may be between windows and their product.
bool isOfOneBlock(Operation *a, Operation *b) {
  return a->getAttr(graph::kBlockAttr) == b->getAttr(graph::kBlockAttr);
}

class Raiser {
public:
  Raiser(func::FuncOp function, bool isNarrow) : builder(function.getContext()), isNarrow(isNarrow) {}

  void raise(graph::MatMulOp product);
  void raise(graph::WindowsSumOp sums);

private:
  /// A convolution's padding: alike on both sides by the library, else before by an operation of its own.
  struct Padding {
    Sizes pads, lows, highs;
    bool isApart = false;
  };

  std::optional<Windows> matchColumns(Value value);
  Padding paddingOf(const Windows &windows);
  std::optional<dsopt_convolution> find(ConvolutionKind kind, const Windows &windows, int64_t outputs);

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

  Value imageOf(const Windows &windows, const Padding &padding);
  Value weightOf(Value matrix, const Windows &windows);
  Value resultsOf(Value matrix, const Windows &windows);
  Value convolve(ConvolutionKind kind, Value lhs, Value rhs, const Sizes &shape, const Windows &windows,
                 const Padding &padding);

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

/// The windows that a matrix of a product shows: [rows, columns], or [groups, rows, columns].
std::optional<Windows> Raiser::matchColumns(Value value) {
  RankedTensorType matrix = typeOf(value);
  int64_t groups = matrix.getRank() == 3 ? matrix.getDimSize(0) : 1;
  if (matrix.getRank() > 3)
    return std::nullopt;
  Value source = value;
  auto step = [&]() {
    auto reshape = source.getDefiningOp<graph::ReshapeOp>();
    if (reshape)
      source = reshape.getInput();
    return reshape != nullptr;
  };
  step();
  Sizes split;
  if (groups > 1) {
    auto transpose = source.getDefiningOp<graph::TransposeOp>();
    if (!transpose || transpose.getPerm() != ArrayRef<int64_t>{2, 0, 1, 3})
      return std::nullopt;
    source = transpose.getInput();
    split.assign(typeOf(source).getShape().begin(), typeOf(source).getShape().end());
    step();
  }
  auto op = source.getDefiningOp<graph::WindowsOp>();
  if (!op || !isOfOneBlock(op, anchor))
    return std::nullopt;
  RankedTensorType image = typeOf(op.getInput());
  size_t rank = op.getKernel().size();
  auto fill = dyn_cast<FloatAttr>(op.getValue());
  if (op.getAxis() != 1 || image.getRank() != static_cast<int64_t>(rank + 2) || !fill ||
      !fill.getValue().isZero())
    return std::nullopt;
  Windows windows{
      op.getInput(),          Sizes(image.getShape()),  Sizes(op.getCounts()), Sizes(op.getKernel()),
      Sizes(op.getStrides()), Sizes(op.getDilations()), Sizes(op.getLows()),   groups};
  if (windows.shape.back() % groups ||
      matrix.getShape().take_back(2) != ArrayRef<int64_t>{windows.rows(), windows.columns()})
    return std::nullopt;
  int64_t channels = windows.shape.back() / groups;
  if (groups > 1 && split != Sizes{windows.rows(), windows.columns() / channels, groups, channels})
    return std::nullopt;
  return windows;
}

Raiser::Padding Raiser::paddingOf(const Windows &windows) {
  Padding padding;
  padding.lows.push_back(0), padding.highs.push_back(0);
  bool isAlike = true;
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    int64_t size = windows.shape[1 + i], low = windows.lows[i], stride = windows.strides[i];
    int64_t extent = (windows.kernel[i] - 1) * windows.dilations[i] + 1;
    int64_t needed = (windows.counts[i] - 1) * stride + extent, room = size + 2 * low - extent;
    isAlike &= low >= 0 && room >= 0 && room / stride + 1 == windows.counts[i];
    padding.pads.push_back(low);
    padding.lows.push_back(low);
    // What lies behind the last window stays if it is no whole step, else it is cut off.
    int64_t behind = size + low - needed;
    padding.highs.push_back(behind < 0 || behind >= stride ? -behind : 0);
  }
  padding.lows.push_back(0), padding.highs.push_back(0);
  if (!isAlike) {
    padding.isApart = true;
    padding.pads.assign(padding.pads.size(), 0);
  }
  return padding;
}

/// The sizes of the image that the library sees.
static Sizes paddedShape(const Windows &windows, ArrayRef<int64_t> lows, ArrayRef<int64_t> highs,
                         bool isApart) {
  Sizes shape = windows.shape;
  if (isApart)
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] += lows[i] + highs[i];
  return shape;
}

/// What the table says of a convolution, if it has an algorithm.
std::optional<dsopt_convolution> Raiser::find(ConvolutionKind kind, const Windows &windows, int64_t outputs) {
  if (outputs % windows.groups || windows.kernel.size() > DSOPT_CONVOLUTION_RANK)
    return std::nullopt;
  Padding padding = paddingOf(windows);
  Sizes x = paddedShape(windows, padding.lows, padding.highs, padding.isApart), w{outputs},
        y{windows.shape[0]};
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

Value Raiser::imageOf(const Windows &windows, const Padding &padding) {
  Value image = windows.image;
  if (padding.isApart)
    image = make<graph::PadOp>(image, padding.lows, padding.highs,
                               cast<TypedAttr>(FloatAttr::get(typeOf(image).getElementType(), 0.0)));
  return toLibrary(image);
}

/// The weight of a matrix [groups, outputs / groups, columns].
Value Raiser::weightOf(Value matrix, const Windows &windows) {
  Sizes shape{typeOf(matrix).getNumElements() / windows.columns()};
  llvm::append_range(shape, windows.kernel);
  shape.push_back(windows.shape.back() / windows.groups);
  return toLibrary(reshaped(matrix, shape));
}

/// The results of windows that a matrix [groups, rows, outputs / groups] has.
Value Raiser::resultsOf(Value matrix, const Windows &windows) {
  if (windows.groups > 1)
    matrix = moved(matrix, 0, 1);
  Sizes shape{windows.shape[0]};
  llvm::append_range(shape, windows.counts);
  shape.push_back(typeOf(matrix).getNumElements() / windows.rows());
  return toLibrary(reshaped(matrix, shape));
}

Value Raiser::convolve(ConvolutionKind kind, Value lhs, Value rhs, const Sizes &shape, const Windows &windows,
                       const Padding &padding) {
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
  auto windows =
      !product.getTransposeA() && product.getTransposeB() ? matchColumns(product.getLhs()) : std::nullopt;
  if (windows) {
    int64_t outputs = type.getShape().back() * windows->groups;
    if (!find(ConvolutionKind::Forward, *windows, outputs))
      return missed(product);
    Padding padding = paddingOf(*windows);
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
  windows =
      product.getTransposeA() && !product.getTransposeB() ? matchColumns(product.getRhs()) : std::nullopt;
  if (!windows)
    return;
  int64_t outputs = type.getShape().take_back(2)[0] * windows->groups;
  if (!find(ConvolutionKind::Weight, *windows, outputs))
    return missed(product);
  Padding padding = paddingOf(*windows);
  Sizes shape{outputs};
  llvm::append_range(shape, windows->kernel);
  shape.push_back(windows->shape.back() / windows->groups);
  Value w = convolve(ConvolutionKind::Weight, imageOf(*windows, padding),
                     resultsOf(product.getLhs(), *windows), shape, *windows, padding);
  product.getResult().replaceAllUsesWith(reshaped(w, type.getShape()));
}

/// The gradient of x: the sums of the windows of y w.
void Raiser::raise(graph::WindowsSumOp sums) {
  RankedTensorType from = typeOf(sums.getInput()), to = typeOf(sums);
  size_t rank = sums.getStrides().size();
  if (sums.getAxis() != 1 || to.getRank() != static_cast<int64_t>(rank + 2) || !to.getElementType().isF32())
    return;
  Value source = sums.getInput();
  auto step = [&]() {
    if (auto reshape = source.getDefiningOp<graph::ReshapeOp>())
      source = reshape.getInput();
  };
  step();
  int64_t groups = 1;
  Sizes split;
  if (auto transpose = source.getDefiningOp<graph::TransposeOp>()) {
    if (transpose.getPerm() != ArrayRef<int64_t>{1, 2, 0, 3})
      return;
    split = Sizes(typeOf(transpose).getShape());
    groups = split[2];
    source = transpose.getInput();
    step();
  }
  auto product = source.getDefiningOp<graph::MatMulOp>();
  if (!product || product.getTransposeA() || product.getTransposeB() || !isOfOneBlock(product, sums))
    return;
  Windows windows{{},
                  Sizes(to.getShape()),
                  Sizes(from.getShape().slice(1, rank)),
                  Sizes(from.getShape().slice(1 + rank, rank)),
                  Sizes(sums.getStrides()),
                  Sizes(sums.getDilations()),
                  Sizes(sums.getLows()),
                  groups};
  RankedTensorType matrix = typeOf(product);
  int64_t channels = windows.shape.back() / groups;
  if (matrix.getRank() > 3 || (matrix.getRank() == 3 ? matrix.getDimSize(0) : 1) != groups ||
      matrix.getShape().take_back(2) != ArrayRef<int64_t>{windows.rows(), windows.columns()} ||
      (groups > 1 && split != Sizes{windows.rows(), windows.columns() / channels, groups, channels}))
    return;
  anchor = sums;
  builder.setInsertionPoint(sums);
  int64_t outputs = typeOf(product.getLhs()).getShape().back() * groups;
  if (!find(ConvolutionKind::Data, windows, outputs))
    return missed(sums);
  Padding padding = paddingOf(windows);
  Sizes padded = paddedShape(windows, padding.lows, padding.highs, padding.isApart);
  Value x = convolve(ConvolutionKind::Data, resultsOf(product.getLhs(), windows),
                     weightOf(product.getRhs(), windows), padded, windows, padding);
  // Padding's adjoint is cutting off, and what was cut off takes no part.
  if (padding.isApart) {
    Sizes lows = padding.lows, highs = padding.highs;
    for (size_t i = 0; i < lows.size(); ++i)
      lows[i] = -lows[i], highs[i] = -highs[i];
    x = make<graph::PadOp>(x, lows, highs, cast<TypedAttr>(FloatAttr::get(to.getElementType(), 0.0)));
  }
  sums.getResult().replaceAllUsesWith(x);
}

struct RaiseConvolutions : impl::RaiseConvolutionsBase<RaiseConvolutions> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StringRef type = takeOption(module, "precision", StringRef(precision), "fp32");
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
