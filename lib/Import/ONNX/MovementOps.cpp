//===- MovementOps.cpp - concatenations, slices, pads, tiles -------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Blocks of images are at most this wide.
static constexpr int64_t kMaxRepeat = 1 << 16;
/// A dimension that is padded with the tensor's own elements has at most so many.
static constexpr int64_t kMaxOwn = 1 << 24;

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

/// Pads with elements of the tensor itself: a gather along each padded axis.
static LogicalResult padWithOwn(NodeBuilder &n, Value value, StringRef mode, ArrayRef<int64_t> lows,
                                ArrayRef<int64_t> highs) {
  for (int64_t dim = 0; dim < Emitter::rankOf(value); ++dim) {
    int64_t size = Emitter::shapeOf(value)[dim], low = lows[dim], high = highs[dim];
    if (low == 0 && high == 0)
      continue;
    if (size == 0 || size + low + high < 0 || size + low + high > kMaxOwn)
      return n.error() << "pads dimension " << dim << " of " << Emitter::typeOf(value) << " with " << low
                       << " and " << high << " of its elements, expected some, and 2^24 in all at most";
    SmallVector<int64_t> places;
    for (int64_t at = -low; at < size + high; ++at) {
      int64_t period = mode == "wrap" ? size : std::max<int64_t>(2 * (size - 1), 1);
      int64_t place = ((at % period) + period) % period;
      if (mode == "reflect" && place >= size)
        place = period - place;
      places.push_back(mode == "edge" ? std::clamp<int64_t>(at, 0, size - 1) : place);
    }
    value = n.e.gather(value, n.e.integers(places), dim);
    if (!value)
      return failure();
  }
  return n.set(0, value);
}

static LogicalResult pad(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> pads = value ? n.integers(1, "pads") : FailureOr<SmallVector<int64_t>>();
  if (failed(pads))
    return failure();
  StringRef mode = n.stringAttr("mode", "constant");
  if (!llvm::is_contained({"constant", "edge", "reflect", "wrap"}, mode) || (mode == "wrap" && n.opset < 19))
    return n.error() << "pads with mode '" << mode
                     << "', expected constant, edge, reflect or (from opset 19) wrap";
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
      return n.error() << "pads with " << count << " elements, expected at most 2^48";
  ArrayRef<int64_t> list(*pads);
  SmallVector<int64_t> lows = spread(list.take_front(axes.size()), axes, rank, 0),
                       highs = spread(list.drop_front(axes.size()), axes, rank, 0);
  if (mode != "constant")
    return padWithOwn(n, value, mode, lows, highs);
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
  return n.set(
      0, n.e.make<graph::PadOp>(value, {n.e.attr("lows", ArrayRef(lows)), n.e.attr("highs", ArrayRef(highs)),
                                        n.e.attr("value", filler)}));
}

/// Repeats the whole along each dimension.
static LogicalResult tile(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> repeats =
      value ? n.integers(1, "repeats") : FailureOr<SmallVector<int64_t>>();
  if (failed(repeats))
    return failure();
  if ((int64_t)repeats->size() != Emitter::rankOf(value))
    return n.error() << "has " << repeats->size() << " repeats, expected one for each dimension of "
                     << Emitter::typeOf(value);
  SmallVector<int64_t> split, repeated, shape;
  for (auto [size, count] : llvm::zip(Emitter::shapeOf(value), *repeats)) {
    if (count < 0 || count > kMaxElements || (size && count > kMaxElements / size))
      return n.error() << "has repeats of [" << *repeats << "], expected 0 or more and at most 2^48 elements";
    split.append({1, size});
    repeated.append({count, size});
    shape.push_back(size * count);
  }
  return n.set(0, n.e.reshape(n.e.expand(n.e.reshape(value, split), repeated), shape));
}

/// Blocks of an image as channels, and back; DCR and CRD name the order of the channels.
static LogicalResult depthToSpace(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  int64_t block = n.integerAttr("blocksize", 0);
  StringRef mode = n.stringAttr("mode", "DCR");
  if (!x)
    return failure();
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (s.size() != 4 || block < 1 || block > kMaxRepeat || s[1] % (block * block) ||
      (mode != "DCR" && mode != "CRD"))
    return n.error() << "has blocks of " << block << ", mode '" << mode << "' and an input of type "
                     << Emitter::typeOf(x) << ", expected rank 4 and channels for the blocks";
  int64_t channels = s[1] / (block * block);
  Value split = mode == "DCR" ? e.reshape(x, {s[0], block, block, channels, s[2], s[3]})
                              : e.reshape(x, {s[0], channels, block, block, s[2], s[3]});
  Value moved =
      mode == "DCR" ? e.transpose(split, {0, 3, 4, 1, 5, 2}) : e.transpose(split, {0, 1, 4, 2, 5, 3});
  return n.set(0, e.reshape(moved, {s[0], channels, s[2] * block, s[3] * block}));
}
static LogicalResult spaceToDepth(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  int64_t block = n.integerAttr("blocksize", 0);
  if (!x)
    return failure();
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (s.size() != 4 || block < 1 || block > kMaxRepeat || s[2] % block || s[3] % block)
    return n.error() << "has blocks of " << block << " and an input of type " << Emitter::typeOf(x)
                     << ", expected rank 4 and whole blocks";
  StringRef mode = n.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return n.error() << "has mode '" << mode << "', expected DCR or CRD";
  Value split = e.reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  Value moved =
      mode == "DCR" ? e.transpose(split, {0, 3, 5, 1, 2, 4}) : e.transpose(split, {0, 1, 3, 5, 2, 4});
  return n.set(0, e.reshape(moved, {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
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
  std::optional<int64_t> lowest, highest;
  (isUpper ? lowest : highest) = diagonal;
  Value zero = n.e.splat(Emitter::elementOf(value), 0), kept = n.e.band(rows, columns, lowest, highest);
  return n.set(0, n.e.make<graph::WhereOp>({kept, value, zero}));
}

/// The middle of an axis, or zeros around it; of an odd number one more behind.
static LogicalResult centerCropPad(NodeBuilder &n) {
  Value value = n.input(0);
  FailureOr<SmallVector<int64_t>> shape = n.integers(1, "a shape");
  if (!value || failed(shape))
    return failure();
  int64_t rank = Emitter::rankOf(value);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank)), lows(rank, 0), highs(rank, 0);
  if (n.attribute("axes"))
    axes = n.integersAttr("axes");
  if (axes.size() != shape->size())
    return n.error() << "has a shape of [" << *shape << "] for axes [" << axes << "], expected one size each";
  for (auto [given, size] : llvm::zip(axes, *shape)) {
    FailureOr<int64_t> axis = n.axis(given, rank);
    if (failed(axis))
      return failure();
    if (size < 0 || size > kMaxElements)
      return n.error() << "has a shape of [" << *shape << "], expected sizes of 0 to 2^48";
    int64_t more = size - Emitter::shapeOf(value)[*axis];
    lows[*axis] = more / 2;
    highs[*axis] = more - more / 2;
  }
  return n.set(0, n.e.make<graph::PadOp>(
                      value, {n.e.attr("lows", lows), n.e.attr("highs", highs),
                              n.e.attr("value", n.e.builder.getZeroAttr(Emitter::elementOf(value)))}));
}

ArrayRef<OpRow> movementOps() {
  static const OpRow rows[] = {
      {"CenterCropPad", 18, kMaxOpset, centerCropPad},
      {"Concat", 4, kMaxOpset, concat},
      {"DepthToSpace", 1, kMaxOpset, depthToSpace},
      {"Pad", 2, kMaxOpset, pad},
      {"Slice", 1, kMaxOpset, slice},
      {"SpaceToDepth", 1, kMaxOpset, spaceToDepth},
      {"Tile", 6, kMaxOpset, tile},
      {"Transpose", 1, kMaxOpset, transpose},
      {"Trilu", 14, kMaxOpset, trilu},
  };
  return rows;
}

} // namespace dsopt::onnx_import
