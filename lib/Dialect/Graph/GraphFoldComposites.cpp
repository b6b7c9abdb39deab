//===- GraphFoldComposites.cpp - folders of the composite operations ------===//
//
// Computed in double and rounded once.
//
//===----------------------------------------------------------------------===//

#include "GraphFold.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

/// The elements as doubles, one each even of a splat; none if they are too many.
static std::optional<std::vector<double>> doubles(Attribute constant) {
  std::optional<Elements> x = Elements::numbers(constant);
  if (!x || !fits(x->type))
    return std::nullopt;
  std::vector<double> values(x->type.getNumElements());
  Attribute read = dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (double)x->as<decltype(tag)>()[x->splat ? 0 : i];
    return constant;
  });
  if (!read)
    return std::nullopt;
  return values;
}

/// A constant of floats with these values, rounded.
static Attribute fromDoubles(Type resultType, ArrayRef<double> values) {
  auto type = cast<RankedTensorType>(resultType);
  return dispatchNumber(type.getElementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(values.size() * sizeof(T));
    for (auto [i, value] : llvm::enumerate(values))
      reinterpret_cast<T *>(out.data())[i] = (T)value;
    return fromNumbers(type, out);
  });
}

OpFoldResult SoftmaxOp::fold(FoldAdaptor adaptor) {
  std::optional<std::vector<double>> x = doubles(adaptor.getInput());
  if (!x)
    return {};
  auto type = cast<RankedTensorType>(getType());
  int64_t axis = getAxis(), size = type.getDimSize(axis);
  int64_t inner = ShapedType::getNumElements(type.getShape().drop_front(axis + 1));
  for (int64_t row = 0, rows = size ? (int64_t)x->size() / size : 0; row < rows; ++row) {
    double *first = x->data() + row / inner * size * inner + row % inner, largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < size; ++k)
      largest = std::fmax(largest, first[k * inner]);
    for (int64_t k = 0; k < size; ++k)
      sum += first[k * inner] = std::exp(first[k * inner] - largest);
    for (int64_t k = 0; k < size; ++k)
      first[k * inner] /= sum;
  }
  return fromDoubles(type, *x);
}

OpFoldResult GeluOp::fold(FoldAdaptor adaptor) {
  std::optional<std::vector<double>> x = doubles(adaptor.getInput());
  if (!x)
    return {};
  for (double &y : *x)
    y = getApproximateTanh() ? 0.5 * y * (1 + std::tanh(std::sqrt(2 / M_PI) * (y + 0.044715 * y * y * y)))
                             : 0.5 * y * (1 + std::erf(y * M_SQRT1_2));
  return fromDoubles(getType(), *x);
}

OpFoldResult SiluOp::fold(FoldAdaptor adaptor) {
  std::optional<std::vector<double>> x = doubles(adaptor.getInput());
  if (!x)
    return {};
  for (double &y : *x)
    y /= 1 + std::exp(-y);
  return fromDoubles(getType(), *x);
}

LogicalResult RmsNormOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  std::optional<std::vector<double>> x = doubles(adaptor.getInput()), scale = doubles(adaptor.getScale());
  if (!x || !scale)
    return failure();
  size_t size = scale->size(), rows = numElements(getRstd().getType());
  std::vector<double> rstds(rows);
  for (size_t row = 0; row < rows; ++row) {
    double *first = x->data() + row * size, square = 0;
    for (size_t i = 0; i < size; ++i)
      square += first[i] * first[i];
    rstds[row] = 1 / std::sqrt(square / size + getEpsilon().convertToDouble());
    for (size_t i = 0; i < size; ++i)
      first[i] *= rstds[row] * (*scale)[i];
  }
  Attribute folded[] = {fromDoubles(getResult().getType(), *x), fromDoubles(getRstd().getType(), rstds)};
  if (!folded[0])
    return failure();
  results.append(std::begin(folded), std::end(folded));
  return success();
}

LogicalResult LayerNormOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  std::optional<std::vector<double>> x = doubles(adaptor.getInput()), scale = doubles(adaptor.getScale()),
                                     bias;
  if (getBias() ? !(bias = doubles(adaptor.getBias())) : false)
    return failure();
  if (!x || !scale)
    return failure();
  size_t size = scale->size(), rows = numElements(getMean().getType());
  std::vector<double> means(rows), rstds(rows);
  for (size_t row = 0; row < rows; ++row) {
    double *first = x->data() + row * size, mean = 0, variance = 0;
    for (size_t i = 0; i < size; ++i)
      mean += first[i];
    mean /= size;
    for (size_t i = 0; i < size; ++i)
      variance += (first[i] - mean) * (first[i] - mean);
    means[row] = mean;
    rstds[row] = 1 / std::sqrt(variance / size + getEpsilon().convertToDouble());
    for (size_t i = 0; i < size; ++i)
      first[i] = (first[i] - mean) * rstds[row] * (*scale)[i] + (bias ? (*bias)[i] : 0);
  }
  Attribute folded[] = {fromDoubles(getResult().getType(), *x), fromDoubles(getMean().getType(), means),
                        fromDoubles(getRstd().getType(), rstds)};
  if (!folded[0])
    return failure();
  results.append(std::begin(folded), std::end(folded));
  return success();
}

LogicalResult NllOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  std::optional<std::vector<double>> logits = doubles(adaptor.getLogits());
  std::optional<SmallVector<int64_t>> labels = integers(adaptor.getLabels());
  if (!logits || !labels)
    return failure();
  int64_t classes = cast<ShapedType>(getLogits().getType()).getDimSize(1), ignored = getIgnoreIndex();
  std::vector<double> losses(labels->size()), lses(labels->size());
  for (auto [row, label] : llvm::enumerate(*labels)) {
    const double *first = logits->data() + row * classes;
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; ++k)
      largest = std::fmax(largest, first[k]);
    for (int64_t k = 0; k < classes; ++k)
      sum += std::exp(first[k] - largest);
    lses[row] = largest + std::log(sum);
    if (label == ignored)
      continue;
    if (label < 0 || label >= classes)
      return failure();
    losses[row] = lses[row] - first[label];
  }
  Attribute folded[] = {fromDoubles(getLoss().getType(), losses), fromDoubles(getLse().getType(), lses)};
  if (!folded[0])
    return failure();
  results.append(std::begin(folded), std::end(folded));
  return success();
}
