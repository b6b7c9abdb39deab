//===- ShapeOps.cpp - constants, shapes and what computes with them --------===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Ranges have at most this many elements: each is stored.
static constexpr int64_t kMaxRange = 1 << 24;

static LogicalResult constant(NodeBuilder &n) {
  OpBuilder &b = n.e.builder;
  auto list = [&](auto values, Type element, bool isScalar) {
    SmallVector<int64_t> shape;
    if (!isScalar)
      shape.push_back(values.size());
    return n.set(
        0, n.e.constant(DenseElementsAttr::get(RankedTensorType::get(shape, element), ArrayRef(values))));
  };
  if (const onnx::AttributeProto *value = n.attribute("value")) {
    DenseElementsAttr elements = constantOf(value->t(), "the constant", n.e.location);
    return elements ? n.set(0, elements) : failure();
  }
  if (const onnx::AttributeProto *value = n.attribute("value_int"))
    return list(SmallVector<int64_t>{value->i()}, b.getI64Type(), true);
  if (n.attribute("value_ints"))
    return list(n.integersAttr("value_ints"), b.getI64Type(), false);
  if (const onnx::AttributeProto *value = n.attribute("value_float"))
    return list(SmallVector<float>{value->f()}, b.getF32Type(), true);
  if (const onnx::AttributeProto *value = n.attribute("value_floats"))
    return list(SmallVector<float>(value->floats().begin(), value->floats().end()), b.getF32Type(), false);
  return n.error() << "has neither value, value_int(s) nor value_float(s); other constants are not available";
}

static LogicalResult constantOfShape(NodeBuilder &n) {
  FailureOr<SmallVector<int64_t>> shape = n.integers(0, "a shape");
  if (failed(shape))
    return failure();
  if (!isSaneShape(*shape))
    return n.error() << "gives a tensor of dimensions [" << *shape
                     << "], expected none negative and at most 2^48 elements";
  const onnx::AttributeProto *value = n.attribute("value");
  if (!value)
    return n.set(0, n.e.splat(n.e.builder.getF32Type(), 0, *shape));
  DenseElementsAttr element = constantOf(value->t(), "the value", n.e.location);
  if (!element)
    return failure();
  if (element.getNumElements() != 1)
    return n.error() << "has a value of " << element.getNumElements() << " elements, expected one";
  return n.set(0, element.resizeSplat(RankedTensorType::get(*shape, element.getElementType())));
}

static LogicalResult shape(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  int64_t rank = Emitter::rankOf(value);
  auto clamp = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  int64_t start = n.opset < 15 ? 0 : clamp(n.integerAttr("start", 0));
  int64_t end = n.opset < 15 ? rank : clamp(n.integerAttr("end", rank));
  return n.set(0, n.e.integers(Emitter::shapeOf(value).slice(start, std::max<int64_t>(end - start, 0))));
}

static LogicalResult size(NodeBuilder &n) {
  Value value = n.input(0);
  return value
             ? n.set(0,
                     n.e.constant(DenseElementsAttr::get(RankedTensorType::get({}, n.e.builder.getI64Type()),
                                                         graph::numElements(value.getType()))))
             : failure();
}

/// The numbers start, start + delta and so on, before limit.
template <typename T> static LogicalResult rangeOf(NodeBuilder &n, Type element, T start, T limit, T delta) {
  if (delta == 0)
    return n.error() << "has delta 0, expected another";
  double exact = std::ceil(((double)limit - (double)start) / (double)delta);
  if (!(exact <= (double)kMaxRange))
    return n.error() << "gives " << std::to_string(exact) << " elements, expected at most " << kMaxRange;
  SmallVector<T> values;
  for (int64_t i = 0; i < (int64_t)exact; ++i)
    values.push_back(start + (T)i * delta);
  auto type = RankedTensorType::get((int64_t)values.size(), element);
  return n.set(0, n.e.constant(DenseElementsAttr::get(type, ArrayRef<T>(values))));
}

static LogicalResult range(NodeBuilder &n) {
  DenseElementsAttr bounds[3];
  for (int i = 0; i < 3; ++i) {
    bounds[i] = n.constant(i, i == 0 ? "start" : i == 1 ? "limit" : "delta");
    if (!bounds[i])
      return failure();
    if (bounds[i].getNumElements() != 1 || bounds[i].getElementType() != bounds[0].getElementType())
      return n.error() << "has bounds of types " << bounds[0].getType() << " and " << bounds[i].getType()
                       << ", expected single elements of one type";
  }
  Type element = bounds[0].getElementType();
  auto get = [&](auto tag, int i) { return *bounds[i].value_begin<decltype(tag)>(); };
  auto of = [&](auto tag) { return rangeOf(n, element, get(tag, 0), get(tag, 1), get(tag, 2)); };
  if (element.isF32())
    return of(float());
  if (element.isF64())
    return of(double());
  if (element.isSignlessInteger(64))
    return of(int64_t());
  if (element.isSignlessInteger(32))
    return of(int32_t());
  if (element.isSignlessInteger(16))
    return of(int16_t());
  return n.error() << "has bounds of element type " << element << ", expected f32, f64, i16, i32 or i64";
}

/// The shape that Reshape's second input asks for.
static FailureOr<SmallVector<int64_t>> reshapeTo(NodeBuilder &n, Value value, ArrayRef<int64_t> asked) {
  bool allowsZero = n.opset >= 14 && n.integerAttr("allowzero", 0) != 0;
  SmallVector<int64_t> shape(asked);
  int64_t unknown = -1, known = 1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == 0 && !allowsZero) {
      if ((int64_t)i >= Emitter::rankOf(value))
        return n.error() << "copies dimension " << i << " of " << Emitter::typeOf(value)
                         << ", which has none";
      size = Emitter::shapeOf(value)[i];
    }
    if (size == -1 && unknown == -1) {
      unknown = i;
      continue;
    }
    if (size < 0 || size > kMaxElements || (size > 0 && known > kMaxElements / size))
      return n.error() << "reshapes " << Emitter::typeOf(value) << " to [" << asked << "]";
    known *= size;
  }
  int64_t elements = graph::numElements(value.getType());
  if (unknown >= 0)
    shape[unknown] = known == 0 ? 0 : elements / known;
  if (unknown >= 0 ? known * shape[unknown] != elements : known != elements)
    return n.error() << "reshapes " << Emitter::typeOf(value) << " of " << elements << " elements to ["
                     << asked << "], expected as many";
  return shape;
}

static LogicalResult reshape(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> asked =
      value ? n.integers(1, "a shape") : FailureOr<SmallVector<int64_t>>();
  FailureOr<SmallVector<int64_t>> shape = failed(asked) ? asked : reshapeTo(n, value, *asked);
  return failed(shape) ? failure() : n.set(0, n.e.reshape(value, *shape));
}

static LogicalResult flatten(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  int64_t rank = Emitter::rankOf(value), axis = n.integerAttr("axis", 1);
  if (axis < -rank || axis > rank)
    return n.error() << "has axis " << axis << " for a tensor of rank " << rank;
  ArrayRef<int64_t> shape = Emitter::shapeOf(value);
  size_t cut = axis < 0 ? axis + rank : axis;
  return n.set(0, n.e.reshape(value, {ShapedType::getNumElements(shape.take_front(cut)),
                                      ShapedType::getNumElements(shape.drop_front(cut))}));
}

static LogicalResult unsqueeze(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  FailureOr<SmallVector<int64_t>> given = n.integers(1, "axes");
  if (failed(given))
    return failure();
  auto axes = n.axes(1, 13, Emitter::rankOf(value) + given->size());
  if (failed(axes))
    return failure();
  if ((*axes)->size() != given->size())
    return n.error() << "has axes [" << *given << "], expected each once";
  SmallVector<int64_t> shape(Emitter::shapeOf(value));
  for (int64_t axis : **axes)
    shape.insert(shape.begin() + axis, 1);
  return n.set(0, n.e.reshape(value, shape));
}

static LogicalResult squeeze(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  auto axes = n.axes(1, 13, Emitter::rankOf(value));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [i, size] : llvm::enumerate(Emitter::shapeOf(value))) {
    bool isNamed = *axes && llvm::is_contained(**axes, (int64_t)i);
    if (isNamed && size != 1)
      return n.error() << "removes axis " << i << " of " << Emitter::typeOf(value)
                       << ", expected a dimension of 1";
    if (!(isNamed || (!*axes && size == 1)))
      shape.push_back(size);
  }
  return n.set(0, n.e.reshape(value, shape));
}

static LogicalResult expand(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> asked =
      value ? n.integers(1, "a shape") : FailureOr<SmallVector<int64_t>>();
  if (failed(asked))
    return failure();
  auto shape = graph::broadcastShapes(Emitter::shapeOf(value), *asked);
  if (failed(shape))
    return n.error() << "expands " << Emitter::typeOf(value) << " to [" << *asked
                     << "], expected shapes that broadcast";
  return n.set(0, n.e.expand(value, *shape));
}

/// Ones on a diagonal.
static LogicalResult eyeLike(NodeBuilder &n) {
  Emitter &e = n.e;
  Value like = n.input(0);
  if (!like)
    return failure();
  if (Emitter::rankOf(like) != 2)
    return n.error() << "has an input of type " << Emitter::typeOf(like) << ", expected a matrix";
  Type element = Emitter::elementOf(like);
  if (n.attribute("dtype"))
    element = elementType(n.integerAttr("dtype", 0), "the result", e.location);
  if (!element)
    return failure();
  Type i64 = e.builder.getI64Type();
  int64_t diagonal = std::clamp(n.integerAttr("k", 0), -kMaxElements, kMaxElements);
  Value rows = e.counting(i64, Emitter::shapeOf(like)[0], 0, 2),
        columns = e.counting(i64, Emitter::shapeOf(like)[1], 1, 2);
  return n.set(0, e.convert(e.equal(columns, e.add(rows, e.splat(i64, diagonal))), element));
}

static LogicalResult identity(NodeBuilder &n) { return n.alias(0); }

ArrayRef<OpRow> shapeOps() {
  static const OpRow rows[] = {
      {"Constant", 1, kMaxOpset, constant}, {"ConstantOfShape", 9, kMaxOpset, constantOfShape},
      {"Expand", 8, kMaxOpset, expand},     {"EyeLike", 9, kMaxOpset, eyeLike},
      {"Flatten", 1, kMaxOpset, flatten},   {"Identity", 1, kMaxOpset, identity},
      {"Range", 11, kMaxOpset, range},      {"Reshape", 5, kMaxOpset, reshape},
      {"Shape", 1, kMaxOpset, shape},       {"Size", 1, kMaxOpset, size},
      {"Squeeze", 1, kMaxOpset, squeeze},   {"Unsqueeze", 1, kMaxOpset, unsqueeze},
  };
  return rows;
}

} // namespace dsopt::onnx_import
