//===- ConvolutionWindows.cpp - convolutions among products ----------------===//

#include "ConvolutionWindows.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Nothing of a block goes into another: a cut may be between windows and their product.
static bool isOfOneBlock(Operation *a, Operation *b) {
  return a->getAttr(graph::kBlockAttr) == b->getAttr(graph::kBlockAttr);
}

std::optional<ConvolutionWindows> dsopt::matchColumns(Value value, Operation *product) {
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
  if (!op || !isOfOneBlock(op, product))
    return std::nullopt;
  RankedTensorType image = typeOf(op.getInput());
  size_t rank = op.getKernel().size();
  auto fill = dyn_cast<FloatAttr>(op.getValue());
  if (op.getAxis() != 1 || image.getRank() != static_cast<int64_t>(rank + 2) || !fill ||
      !fill.getValue().isZero())
    return std::nullopt;
  ConvolutionWindows windows{
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

std::optional<SummedWindows> dsopt::matchSums(graph::WindowsSumOp sums) {
  RankedTensorType from = typeOf(sums.getInput()), to = typeOf(sums);
  size_t rank = sums.getStrides().size();
  if (sums.getAxis() != 1 || to.getRank() != static_cast<int64_t>(rank + 2) || !to.getElementType().isF32())
    return std::nullopt;
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
      return std::nullopt;
    split = Sizes(typeOf(transpose).getShape());
    groups = split[2];
    source = transpose.getInput();
    step();
  }
  auto product = source.getDefiningOp<graph::MatMulOp>();
  if (!product || product.getTransposeA() || product.getTransposeB() || !isOfOneBlock(product, sums))
    return std::nullopt;
  ConvolutionWindows windows{{},
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
    return std::nullopt;
  return SummedWindows{windows, product};
}

ConvolutionPadding dsopt::paddingOf(const ConvolutionWindows &windows) {
  ConvolutionPadding padding;
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

Sizes dsopt::paddedShape(const ConvolutionWindows &windows, const ConvolutionPadding &padding) {
  Sizes shape = windows.shape;
  if (padding.isApart)
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] += padding.lows[i] + padding.highs[i];
  return shape;
}
