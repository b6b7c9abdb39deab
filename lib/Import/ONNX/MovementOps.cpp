//===- MovementOps.cpp - concatenations, slices, gathers, pads -------------===//

#include "OpTable.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace dsopt::onnx_import {

static LogicalResult concat(NodeBuilder &n) {
  SmallVector<Value> inputs;
  for (int i = 0; i < n.numInputs(); ++i)
    inputs.push_back(n.input(i));
  if (inputs.empty())
    return n.error() << "has no inputs, expected at least one";
  if (llvm::is_contained(inputs, Value()))
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(inputs[0]));
  if (failed(axis))
    return failure();
  return n.set(0, n.e.make<graph::ConcatOp>(inputs, n.e.attr("axis", *axis)));
}

static LogicalResult transpose(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  SmallVector<int64_t> perm = n.integersAttr("perm");
  if (!n.attribute("perm"))
    for (int64_t i = Emitter::rankOf(value); i > 0; --i)
      perm.push_back(i - 1);
  return n.set(0, n.e.transpose(value, perm));
}

template <typename Op> static LogicalResult gather(NodeBuilder &n) {
  Value data = n.input(0), indices = n.input(1);
  if (!data || !indices)
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(data));
  if (failed(axis))
    return failure();
  // Constant indices are checked here; those of data are checked by no one.
  if (auto known = constantIntegers(indices))
    for (int64_t index : *known)
      if (int64_t size = Emitter::shapeOf(data)[*axis]; index < -size || index >= size)
        return n.error() << "has index " << index << " along axis " << *axis << " of "
                         << Emitter::typeOf(data) << ", expected " << -size << " to " << size - 1;
  return n.set(0, n.e.make<Op>({data, indices}, n.e.attr("axis", *axis)));
}

/// With constant indices this is a gather of rows of the flattened data.
static LogicalResult gatherND(NodeBuilder &n) {
  Value data = n.input(0), indices = n.input(1);
  if (!data || !indices)
    return failure();
  Attribute ignored;
  int64_t batch = n.integerAttr("batch_dims", 0);
  Value result = n.e.make<graph::GatherNDOp>({data, indices}, n.e.attr("batch_dims", batch));
  auto known = constantIntegers(indices);
  if (!result || matchPattern(result, m_Constant(&ignored)) || !known || batch != 0)
    return n.set(0, result);
  ArrayRef<int64_t> shape = Emitter::shapeOf(data), indexShape = Emitter::shapeOf(indices);
  int64_t depth = indexShape.back(), rows = ShapedType::getNumElements(shape.take_front(depth));
  SmallVector<int64_t> flat;
  for (size_t at = 0; at < known->size(); at += depth) {
    int64_t row = 0;
    for (int64_t dim = 0; dim < depth; ++dim) {
      int64_t index = (*known)[at + dim], size = shape[dim];
      if (index < -size || index >= size)
        return n.error() << "has index " << index << " along axis " << dim << " of " << Emitter::typeOf(data)
                         << ", expected " << -size << " to " << size - 1;
      row = row * size + (index < 0 ? index + size : index);
    }
    flat.push_back(row);
  }
  SmallVector<int64_t> flatShape{rows};
  llvm::append_range(flatShape, shape.drop_front(depth));
  Value rowIndices = n.e.reshape(n.e.integers(flat), indexShape.drop_back());
  return n.set(0, n.e.make<graph::GatherOp>({n.e.reshape(data, flatShape), rowIndices}, n.e.attr("axis", 0)));
}

/// A list of one integer for each of `axes`, spread over all dimensions.
static SmallVector<int64_t> spread(ArrayRef<int64_t> values, ArrayRef<int64_t> axes, int64_t rank,
                                   int64_t byDefault) {
  SmallVector<int64_t> all(rank, byDefault);
  for (auto [value, axis] : llvm::zip(values, axes))
    all[axis] = value;
  return all;
}

static LogicalResult slice(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  int64_t rank = Emitter::rankOf(value);
  FailureOr<SmallVector<int64_t>> lists[4];
  StringRef names[] = {"starts", "ends", "axes", "steps"};
  for (int i = 0; i < 4; ++i) {
    if (i < 2 || n.has(i + 1)) {
      lists[i] = n.integers(i + 1, names[i]);
      if (failed(lists[i]))
        return failure();
    } else {
      lists[i] = SmallVector<int64_t>(lists[0]->size(), 1);
      if (i == 2)
        for (auto [position, axis] : llvm::enumerate(*lists[2]))
          axis = position;
    }
    if (lists[i]->size() != lists[0]->size())
      return n.error() << "has " << lists[0]->size() << " starts and " << lists[i]->size() << " " << names[i]
                       << ", expected as many";
  }
  for (int64_t &axis : *lists[2]) {
    FailureOr<int64_t> counted = n.axis(axis, rank);
    if (failed(counted))
      return failure();
    axis = *counted;
  }
  SmallVector<int64_t> starts = spread(*lists[0], *lists[2], rank, 0);
  SmallVector<int64_t> ends = spread(*lists[1], *lists[2], rank, std::numeric_limits<int64_t>::max());
  SmallVector<int64_t> steps = spread(*lists[3], *lists[2], rank, 1), sizes;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = Emitter::shapeOf(value)[dim], step = steps[dim];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return n.error() << "has step " << step << " along axis " << dim << ", expected another";
    // As in ONNX: from the end where negative, then clamped to what exists.
    auto place = [&](int64_t position, int64_t low, int64_t high) {
      return std::clamp(position < 0 ? position + size : position, low, high);
    };
    int64_t start =
        step > 0 ? place(starts[dim], 0, size) : place(starts[dim], 0, std::max<int64_t>(size - 1, 0));
    int64_t end = step > 0 ? place(ends[dim], 0, size) : place(ends[dim], -1, size - 1);
    int64_t span = step > 0 ? end - start : start - end;
    int64_t stride = std::min(step > 0 ? step : -step, std::max<int64_t>(size, 1));
    sizes.push_back(span <= 0 || size == 0 ? 0 : llvm::divideCeil(span, stride));
    steps[dim] = step > 0 ? stride : -stride;
    starts[dim] = sizes.back() == 0 ? 0 : start;
  }
  return n.set(0, n.e.make<graph::SliceOp>(value, {n.e.attr("starts", starts), n.e.attr("sizes", sizes),
                                                   n.e.attr("steps", steps)}));
}

static LogicalResult pad(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> pads = value ? n.integers(1, "pads") : FailureOr<SmallVector<int64_t>>();
  if (failed(pads))
    return failure();
  StringRef mode = n.stringAttr("mode", "constant");
  if (mode != "constant")
    return n.error() << "pads with mode '" << mode << "', expected constant: others are not available";
  int64_t rank = Emitter::rankOf(value);
  SmallVector<int64_t> axes;
  if (n.opset >= 18 && n.has(3)) {
    FailureOr<SmallVector<int64_t>> given = n.integers(3, "axes");
    if (failed(given))
      return failure();
    for (int64_t entry : *given) {
      FailureOr<int64_t> axis = n.axis(entry, rank);
      if (failed(axis))
        return failure();
      axes.push_back(*axis);
    }
  } else {
    for (int64_t i = 0; i < rank; ++i)
      axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size())
    return n.error() << "has " << pads->size() << " pads, expected two for each of " << axes.size()
                     << " axes";
  for (int64_t count : *pads)
    if (count < -kMaxElements || count > kMaxElements)
      return n.error() << "pads with " << count << " elements, expected at most 2^40";
  Type element = Emitter::elementOf(value);
  TypedAttr filler = cast<TypedAttr>(n.e.builder.getZeroAttr(element));
  if (n.has(2)) {
    DenseElementsAttr given = n.constant(2, "a value");
    if (!given)
      return failure();
    if (given.getNumElements() != 1 || given.getElementType() != element)
      return n.error() << "pads " << Emitter::typeOf(value) << " with a value of type " << given.getType()
                       << ", expected one " << element;
    filler = cast<TypedAttr>(*given.value_begin<Attribute>());
  }
  ArrayRef<int64_t> list(*pads);
  return n.set(0, n.e.make<graph::PadOp>(
                      value, {n.e.attr("lows", spread(list.take_front(axes.size()), axes, rank, 0)),
                              n.e.attr("highs", spread(list.drop_front(axes.size()), axes, rank, 0)),
                              n.e.attr("value", filler)}));
}

static LogicalResult cumSum(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<int64_t> given = value ? n.integer(1, "axis") : FailureOr<int64_t>();
  FailureOr<int64_t> axis = failed(given) ? given : n.axis(*given, Emitter::rankOf(value));
  if (failed(axis))
    return failure();
  SmallVector<NamedAttribute> attributes{n.e.attr("axis", *axis)};
  if (n.integerAttr("exclusive", 0))
    attributes.push_back(n.e.flag("exclusive"));
  if (n.integerAttr("reverse", 0))
    attributes.push_back(n.e.flag("reverse"));
  return n.set(0, n.e.make<graph::CumSumOp>(value, attributes));
}

/// Zeros above (or below) a diagonal.
static LogicalResult trilu(NodeBuilder &n) {
  Value value = n.input(0);
  if (!value)
    return failure();
  if (Emitter::rankOf(value) < 2)
    return n.error() << "has an input of type " << Emitter::typeOf(value) << ", expected rank 2 or more";
  int64_t diagonal = 0;
  if (n.has(1)) {
    FailureOr<int64_t> given = n.integer(1, "k");
    if (failed(given))
      return failure();
    diagonal = std::clamp(*given, -kMaxElements, kMaxElements);
  }
  bool isUpper = n.integerAttr("upper", 1) != 0;
  int64_t rows = Emitter::shapeOf(value).take_back(2)[0], columns = Emitter::shapeOf(value).back();
  if (columns && rows > (1 << 26) / columns)
    return n.error() << "has matrices of " << rows << " by " << columns << ", expected at most 2^26 elements";
  SmallVector<bool> keeps;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      keeps.push_back(isUpper ? j - i >= diagonal : j - i <= diagonal);
  Value zero = n.e.splat(Emitter::elementOf(value), 0);
  return n.set(0, n.e.make<graph::WhereOp>({n.e.bools(keeps, {rows, columns}), value, zero}));
}

ArrayRef<OpRow> movementOps() {
  static const OpRow rows[] = {
      {"Concat", 13, kMaxOpset, concat},
      {"CumSum", 11, kMaxOpset, cumSum},
      {"Gather", 13, kMaxOpset, gather<graph::GatherOp>},
      {"GatherElements", 13, kMaxOpset, gather<graph::GatherElementsOp>},
      {"GatherND", 12, kMaxOpset, gatherND},
      {"Pad", 13, kMaxOpset, pad},
      {"Slice", 13, kMaxOpset, slice},
      {"Transpose", 13, kMaxOpset, transpose},
      {"Trilu", 14, kMaxOpset, trilu},
  };
  return rows;
}

} // namespace dsopt::onnx_import
