//===- WindowOps.cpp - convolutions and pools ------------------------------===//
//
// A convolution is a product of the elements under its windows with the weight;
// channels are moved last first, so that what windows copy is contiguous. A pool
// reduces its windows.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include <cstdlib>

using namespace mlir;

namespace dsopt::onnx_import {

Value makeWindows(Emitter &e, Value value, int64_t axis, const Windows &w, TypedAttr fill) {
  return e.make<graph::WindowsOp>(value, {e.attr("axis", axis), e.attr("counts", ArrayRef(w.counts)),
                                          e.attr("kernel", ArrayRef(w.kernel)),
                                          e.attr("strides", ArrayRef(w.strides)),
                                          e.attr("dilations", ArrayRef(w.dilations)),
                                          e.attr("lows", ArrayRef(w.lows)), e.attr("value", fill)});
}

/// Elements, strides and pads of a dimension with windows.
static constexpr int64_t kMaxExtent = 1 << 24;
static bool isExtent(int64_t value) { return value >= 1 && value <= kMaxExtent; }

static int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

/// Padding behind the last element, for the counts of averages.
using Highs = SmallVector<int64_t>;

/// The windows of a node over the spatial dimensions `sizes`, from its attributes.
static FailureOr<Windows> windowsOf(NodeBuilder &n, ArrayRef<int64_t> sizes, ArrayRef<int64_t> kernel,
                                    Highs &highs) {
  size_t rank = sizes.size();
  Windows w;
  w.kernel.assign(kernel.begin(), kernel.end());
  auto strides = n.integersAttr("strides", rank, 1), dilations = n.integersAttr("dilations", rank, 1),
       pads = n.integersAttr("pads", 2 * rank, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  if (kernel.size() != rank)
    return n.error() << "has a kernel of [" << kernel << "] for " << rank << " dimensions, expected one each";
  w.strides = *strides, w.dilations = *dilations;
  StringRef automatic = n.stringAttr("auto_pad", "NOTSET");
  if (!llvm::is_contained({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, automatic))
    return n.error() << "has auto_pad '" << automatic
                     << "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER";
  bool roundsUp = n.integerAttr("ceil_mode", 0) != 0;
  for (size_t i = 0; i < rank; ++i) {
    if (!isExtent(w.kernel[i]) || !isExtent(w.strides[i]) || !isExtent(w.dilations[i]) ||
        w.dilations[i] > kMaxExtent / w.kernel[i] || sizes[i] > kMaxExtent)
      return n.error() << "has a kernel of [" << kernel << "], strides of [" << w.strides
                       << "] and dilations of [" << w.dilations << "] over [" << sizes
                       << "], expected 1 or more and at most 2^24 each";
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
    int64_t low = (*pads)[i], high = (*pads)[i + rank];
    if (automatic != "NOTSET")
      low = high = 0;
    if (automatic.starts_with("SAME")) {
      int64_t total =
          std::max<int64_t>(((sizes[i] + stride - 1) / stride - 1) * stride + extent - sizes[i], 0);
      low = automatic == "SAME_LOWER" ? total - total / 2 : total / 2;
      high = total - low;
    }
    if (low < 0 || high < 0 || low > kMaxExtent || high > kMaxExtent)
      return n.error() << "has pads of [" << *pads << "], expected 0 or more and at most 2^24 each";
    int64_t room = sizes[i] + low + high - extent;
    if (room < 0)
      return n.error() << "has windows of " << extent << " elements over " << sizes[i] + low + high
                       << " of dimension " << i << ", expected no larger ones";
    int64_t count = room / stride + 1;
    // A last window that is not whole begins inside the input or its low padding.
    if (roundsUp && room % stride && count * stride < sizes[i] + low)
      ++count;
    w.counts.push_back(count);
    w.lows.push_back(low);
    highs.push_back(high);
  }
  return w;
}

/// A convolution's or pool's input: batch, channels, then spatial dimensions.
static Value image(NodeBuilder &n) {
  Value x = n.input(0);
  if (x && Emitter::rankOf(x) < 3) {
    n.error() << "has an input of type " << Emitter::typeOf(x) << ", expected rank 3 or more";
    return {};
  }
  return x;
}

/// Channels from dimension 1 to the last place, and back.
static Value channelsLast(Emitter &e, Value x) { return x ? e.moveAxis(x, 1, Emitter::rankOf(x) - 1) : x; }
static Value channelsSecond(Emitter &e, Value x) { return x ? e.moveAxis(x, Emitter::rankOf(x) - 1, 1) : x; }

/// `[rows, rest..., groups * size]` as `[groups, rows, rest * size]`.
static Value splitGroups(Emitter &e, Value value, int64_t rows, int64_t groups) {
  if (!value)
    return {};
  int64_t channels = Emitter::shapeOf(value).back(), all = graph::numElements(value.getType());
  int64_t rest = rows * channels ? all / rows / channels : 0;
  if (groups == 1)
    return e.reshape(value, {1, rows, rest * channels});
  Value split = e.reshape(value, {rows, rest, groups, channels / groups});
  return split ? e.reshape(e.transpose(split, {2, 0, 1, 3}), {groups, rows, rest * channels / groups})
               : Value();
}

static LogicalResult addBias(NodeBuilder &n, Value result) {
  if (n.has(2)) {
    Value bias = n.input(2);
    if (bias && result && Emitter::shapeOf(bias) != Emitter::shapeOf(result).take_back())
      return n.error() << "has a bias of type " << Emitter::typeOf(bias) << ", expected "
                       << Emitter::shapeOf(result).back() << " channels";
    result = n.e.add(result, bias);
  }
  return n.set(0, channelsSecond(n.e, result));
}

static LogicalResult refuseGroups(NodeBuilder &n, Value x, Value weight, int64_t groups) {
  return n.error() << "has an input of type " << Emitter::typeOf(x) << " and a weight of type "
                   << Emitter::typeOf(weight) << " in " << groups
                   << " groups, expected equal ranks and channels that fit";
}

static LogicalResult conv(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n), weight = n.input(1);
  if (!x || !weight)
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), filter = Emitter::shapeOf(weight);
  int64_t groups = n.integerAttr("group", 1);
  if (filter.size() != shape.size() || groups < 1 || filter[1] > kMaxElements / groups ||
      shape[1] != filter[1] * groups || filter[0] % groups)
    return refuseGroups(n, x, weight, groups);
  SmallVector<int64_t> kernel(filter.drop_front(2));
  if (n.attribute("kernel_shape") && n.integersAttr("kernel_shape") != kernel)
    return n.error() << "has kernel_shape [" << n.integersAttr("kernel_shape") << "], expected ["
                     << ArrayRef(kernel) << "] as its weight has";
  Highs highs;
  FailureOr<Windows> windows = windowsOf(n, shape.drop_front(2), kernel, highs);
  if (failed(windows))
    return failure();
  int64_t batch = shape[0], outputs = filter[0], rows = batch * product(windows->counts);
  TypedAttr zero = cast<TypedAttr>(e.builder.getZeroAttr(Emitter::elementOf(x)));
  // Where windows are single elements side by side, they are the input.
  Value last = channelsLast(e, x);
  bool isPlain = llvm::all_of(kernel, [](int64_t size) { return size == 1; }) &&
                 ArrayRef(windows->counts) == shape.drop_front(2) &&
                 llvm::all_of(windows->strides, [](int64_t stride) { return stride == 1; });
  Value columns = isPlain ? last : makeWindows(e, last, 1, *windows, zero);
  Value lhs = splitGroups(e, columns, rows, groups);
  // The weight in the windows' order: the kernel's dimensions, then channels.
  Value rhs = e.reshape(channelsLast(e, weight), {groups, outputs / groups, product(kernel) * filter[1]});
  if (!lhs || !rhs)
    return failure();
  SmallVector<int64_t> result{batch};
  llvm::append_range(result, windows->counts);
  result.push_back(outputs);
  if (groups == 1) {
    lhs = e.reshape(lhs, Emitter::shapeOf(lhs).drop_front());
    rhs = e.reshape(rhs, Emitter::shapeOf(rhs).drop_front());
  }
  Value all = e.make<graph::MatMulOp>({lhs, rhs}, e.flag("transpose_b"));
  if (groups > 1 && all)
    all = e.transpose(all, {1, 0, 2});
  return addBias(n, e.reshape(all, result));
}

/// The adjoint of a convolution: each element times the weight, added where its window lies.
static LogicalResult convTranspose(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n), weight = n.input(1);
  if (!x || !weight)
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), filter = Emitter::shapeOf(weight);
  int64_t groups = n.integerAttr("group", 1);
  if (filter.size() != shape.size() || groups < 1 || shape[1] % groups || filter[0] != shape[1])
    return refuseGroups(n, x, weight, groups);
  size_t rank = shape.size() - 2;
  ArrayRef<int64_t> kernel = filter.drop_front(2), sizes = shape.drop_front(2);
  auto strides = n.integersAttr("strides", rank, 1), dilations = n.integersAttr("dilations", rank, 1),
       pads = n.integersAttr("pads", 2 * rank, 0), extra = n.integersAttr("output_padding", rank, 0),
       asked = n.integersAttr("output_shape", rank, 0);
  if (failed(strides) || failed(dilations) || failed(pads) || failed(extra) || failed(asked))
    return failure();
  StringRef automatic = n.stringAttr("auto_pad", "NOTSET");
  SmallVector<int64_t> out, lows;
  for (size_t i = 0; i < rank; ++i) {
    if (!isExtent((*strides)[i]) || !isExtent((*dilations)[i]) || !isExtent(kernel[i]) ||
        !isExtent(sizes[i]) || (*dilations)[i] > kMaxExtent / kernel[i] || (*extra)[i] < 0 ||
        (*extra)[i] > kMaxExtent || std::abs((*pads)[i]) > kMaxExtent ||
        std::abs((*pads)[i + rank]) > kMaxExtent)
      return n.error() << "has strides of [" << *strides << "], dilations of [" << *dilations
                       << "], pads of [" << *pads << "] and output_padding of [" << *extra
                       << "], expected none too small and at most 2^24 each";
    int64_t whole = (sizes[i] - 1) * (*strides)[i] + (kernel[i] - 1) * (*dilations)[i] + 1 + (*extra)[i];
    int64_t low = (*pads)[i], high = (*pads)[i + rank];
    bool isGiven = n.attribute("output_shape") != nullptr, isSame = automatic.starts_with("SAME");
    if (isGiven || isSame) {
      int64_t size = isGiven ? (*asked)[i] : sizes[i] * (*strides)[i],
              total = std::max<int64_t>(whole - size, 0);
      low = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = whole - size - low;
    } else if (automatic == "VALID") {
      low = high = 0;
    }
    out.push_back(whole - low - high);
    lows.push_back(low);
    if (out.back() < 1)
      return n.error() << "gives " << out.back() << " elements in dimension " << i << ", expected 1 or more";
  }
  // [groups, rows, channels] times [groups, channels, kernel * outputs]
  int64_t batch = shape[0], rows = batch * product(sizes), perGroup = filter[1];
  Value lhs = splitGroups(e, channelsLast(e, x), rows, groups);
  Value rhs = e.reshape(channelsLast(e, weight), {groups, filter[0] / groups, product(kernel) * perGroup});
  Value columns = e.make<graph::MatMulOp>({lhs, rhs});
  SmallVector<int64_t> placed{groups * batch}, result{groups * batch};
  llvm::append_range(placed, sizes);
  llvm::append_range(placed, kernel);
  placed.push_back(perGroup);
  llvm::append_range(result, out);
  result.push_back(perGroup);
  columns = e.reshape(columns, placed);
  if (!columns)
    return failure();
  Value sums = e.shapedWith<graph::WindowsSumOp>(columns, result,
                                                 {e.attr("axis", 1), e.attr("strides", ArrayRef(*strides)),
                                                  e.attr("dilations", ArrayRef(*dilations)),
                                                  e.attr("lows", ArrayRef(lows))});
  if (groups > 1 && sums) {
    int64_t places = product(out);
    sums = e.transpose(e.reshape(sums, {groups, batch * places, perGroup}), {1, 0, 2});
    result.front() = batch;
    result.back() = groups * perGroup;
    sums = e.reshape(sums, result);
  }
  return addBias(n, sums);
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// The windows' own dimensions, behind batch, channels and places.
static SmallVector<int64_t> kernelAxes(const Windows &w) {
  int64_t rank = w.kernel.size();
  return llvm::to_vector(llvm::seq<int64_t>(2 + rank, 2 + 2 * rank));
}

static FailureOr<Windows> poolOf(NodeBuilder &n, Value x, Highs &highs) {
  return windowsOf(n, Emitter::shapeOf(x).drop_front(2), n.integersAttr("kernel_shape"), highs);
}

/// The least number of a type.
static TypedAttr least(Type element) {
  if (auto real = dyn_cast<FloatType>(element))
    return FloatAttr::get(real, APFloat::getInf(real.getFloatSemantics(), /*Negative=*/true));
  unsigned width = element.getIntOrFloatBitWidth();
  return IntegerAttr::get(element, element.isUnsignedInteger() ? APInt::getZero(width)
                                                               : APInt::getSignedMinValue(width));
}

/// Where in the flattened input the first of the largest elements of each window is.
static Value placesOfLargest(NodeBuilder &n, Value x, Value windows, Value largest, const Windows &w) {
  Emitter &e = n.e;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), sizes = shape.drop_front(2);
  Type i64 = e.builder.getI64Type();
  int64_t planes = shape[0] * shape[1], rank = sizes.size();
  SmallVector<int64_t> plane{1, 1}, perm{0, 1};
  llvm::append_range(plane, sizes);
  Value places = e.counting(i64, product(sizes), 0, 1);
  if (n.integerAttr("storage_order", 0)) { // the first spatial dimension varies fastest
    SmallVector<int64_t> reversed(plane);
    std::reverse(reversed.begin() + 2, reversed.end());
    for (int64_t dim = rank - 1; dim >= 0; --dim)
      perm.push_back(2 + dim);
    places = e.transpose(e.reshape(places, reversed), perm);
  }
  places = makeWindows(e, e.reshape(places, plane), 2, w, e.builder.getI64IntegerAttr(0));
  SmallVector<int64_t> ones(2 + 2 * rank, 1);
  ones[0] = shape[0], ones[1] = shape[1];
  Value bases = e.mul(e.reshape(e.counting(i64, planes, 0, 1), ones), e.splat(i64, product(sizes)));
  SmallVector<int64_t> kept(Emitter::shapeOf(windows));
  for (int64_t axis : kernelAxes(w))
    kept[axis] = 1;
  Value isLargest = e.equal(windows, e.reshape(largest, kept));
  Value none = e.constant(DenseElementsAttr::get(RankedTensorType::get({}, i64), INT64_MAX));
  return e.reduce<graph::ReduceMinOp>(e.where(isLargest, e.add(places, bases), none), kernelAxes(w), false);
}

static LogicalResult maxPool(NodeBuilder &n) {
  Value x = image(n);
  Highs highs;
  FailureOr<Windows> w = x ? poolOf(n, x, highs) : FailureOr<Windows>();
  if (failed(w))
    return failure();
  Value windows = makeWindows(n.e, x, 2, *w, least(Emitter::elementOf(x)));
  Value largest =
      n.e.make<graph::ReduceMaxOp>(windows, {n.e.attr("axes", kernelAxes(*w)), n.e.flag("first")});
  if (failed(n.set(0, largest)))
    return failure();
  return n.wants(1) ? n.set(1, placesOfLargest(n, x, windows, largest, *w)) : success();
}

/// How many elements each window of one dimension has: of the input, or of its padding too.
static SmallVector<int64_t> countElements(const Windows &w, size_t dim, int64_t size, int64_t high,
                                          bool padding) {
  SmallVector<int64_t> counts;
  int64_t first = padding ? -w.lows[dim] : 0, last = padding ? size + high : size;
  for (int64_t o = 0; o < w.counts[dim]; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[dim]; ++k) {
      int64_t place = o * w.strides[dim] + k * w.dilations[dim] - w.lows[dim];
      count += place >= first && place < last;
    }
    counts.push_back(std::max<int64_t>(count, 1));
  }
  return counts;
}

static LogicalResult averagePool(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n);
  Highs highs;
  FailureOr<Windows> w = x ? poolOf(n, x, highs) : FailureOr<Windows>();
  if (failed(w))
    return failure();
  Type element = Emitter::elementOf(x);
  Value sums =
      e.sum(makeWindows(e, x, 2, *w, cast<TypedAttr>(e.builder.getZeroAttr(element))), kernelAxes(*w),
            /*keepdims=*/false);
  bool padding = n.integerAttr("count_include_pad", 0) != 0;
  for (auto [size, count] : llvm::zip(w->kernel, w->counts))
    if (size > (1 << 26) / count)
      return n.error() << "has " << count << " windows of " << size
                       << " elements, expected a product of 2^26 at most";
  Value counts;
  for (size_t dim = 0; dim < highs.size(); ++dim) {
    SmallVector<int64_t> shape(highs.size() + 2, 1);
    shape[dim + 2] = w->counts[dim];
    Value along = e.integers(countElements(*w, dim, Emitter::shapeOf(x)[dim + 2], highs[dim], padding));
    along = e.reshape(e.convert(along, element), shape);
    counts = counts ? e.mul(counts, along) : along;
  }
  return n.set(0, e.div(sums, counts));
}

static LogicalResult lpPool(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n);
  Highs highs;
  FailureOr<Windows> w = x ? poolOf(n, x, highs) : FailureOr<Windows>();
  if (failed(w))
    return failure();
  double p = n.integerAttr("p", 2);
  Value powers = e.make<graph::PowOp>({e.make<graph::AbsOp>(x), e.scalar(p, x)});
  TypedAttr zero = cast<TypedAttr>(e.builder.getZeroAttr(Emitter::elementOf(x)));
  Value sums = e.sum(makeWindows(e, powers, 2, *w, zero), kernelAxes(*w), /*keepdims=*/false);
  return n.set(0, e.make<graph::PowOp>({sums, e.scalar(1 / p, x)}));
}

template <typename Op> static LogicalResult globalPool(NodeBuilder &n) {
  Value x = image(n);
  if (!x)
    return failure();
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, Emitter::rankOf(x)));
  SmallVector<NamedAttribute> attributes{n.e.attr("axes", axes), n.e.flag("keepdims")};
  if (std::is_same_v<Op, graph::ReduceMaxOp>)
    attributes.push_back(n.e.flag("first"));
  return n.set(0, n.e.make<Op>(x, attributes));
}

static LogicalResult globalLpPool(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n);
  if (!x)
    return failure();
  double p = n.integerAttr("p", 2);
  Value powers = e.make<graph::PowOp>({e.make<graph::AbsOp>(x), e.scalar(p, x)});
  Value sums = e.sum(powers, llvm::to_vector(llvm::seq<int64_t>(2, Emitter::rankOf(x))));
  return n.set(0, e.make<graph::PowOp>({sums, e.scalar(1 / p, x)}));
}

/// What windows hold, added where they lie.
static LogicalResult col2Im(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  auto sizes = n.integers(1, "image_shape"), kernel = n.integers(2, "block_shape");
  if (!x || failed(sizes) || failed(kernel))
    return failure();
  Highs highs;
  FailureOr<Windows> w = windowsOf(n, *sizes, *kernel, highs);
  if (failed(w))
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t taps = product(*kernel);
  if (shape.size() != 3 || shape[1] % taps || shape[2] != product(w->counts))
    return n.error() << "has an input of type " << Emitter::typeOf(x) << ", expected [batch, channels times "
                     << taps << ", " << product(w->counts) << "]";
  int64_t channels = shape[1] / taps;
  Value columns = e.transpose(e.reshape(x, {shape[0], channels, taps, shape[2]}), {0, 1, 3, 2});
  SmallVector<int64_t> placed{shape[0], channels}, result{shape[0], channels};
  llvm::append_range(placed, w->counts);
  llvm::append_range(placed, *kernel);
  llvm::append_range(result, *sizes);
  return n.set(0, e.shapedWith<graph::WindowsSumOp>(
                      e.reshape(columns, placed), result,
                      {e.attr("axis", 2), e.attr("strides", ArrayRef(w->strides)),
                       e.attr("dilations", ArrayRef(w->dilations)), e.attr("lows", ArrayRef(w->lows))}));
}

/// What a max pool has kept, at the places it came from; zero elsewhere.
static LogicalResult maxUnpool(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = image(n), places = n.input(1);
  if (!x || !places)
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  size_t rank = shape.size() - 2;
  SmallVector<int64_t> kernel = n.integersAttr("kernel_shape");
  auto strides = n.integersAttr("strides", rank, 1), pads = n.integersAttr("pads", 2 * rank, 0);
  if (failed(strides) || failed(pads))
    return failure();
  if (kernel.size() != rank || Emitter::shapeOf(places) != shape)
    return n.error() << "has an input of type " << Emitter::typeOf(x) << ", places of type "
                     << Emitter::typeOf(places) << " and a kernel of [" << kernel
                     << "], expected a place for each element and a size for each dimension";
  SmallVector<int64_t> whole(shape.take_front(2)), asked;
  for (size_t i = 0; i < rank; ++i)
    whole.push_back((shape[2 + i] - 1) * (*strides)[i] + kernel[i] - (*pads)[i] - (*pads)[i + rank]);
  asked = whole;
  if (n.has(2)) {
    FailureOr<SmallVector<int64_t>> given = n.integers(2, "an output_shape");
    if (failed(given))
      return failure();
    asked = *given;
  }
  for (size_t i = 0; i < rank + 2; ++i)
    if (whole[i] < 1 || asked.size() != rank + 2 || asked[i] < whole[i])
      return n.error() << "gives a tensor of [" << asked << "] for elements of [" << whole
                       << "], expected 1 or more and no smaller ones";
  int64_t all = product(whole), count = product(shape);
  if (std::optional<SmallVector<int64_t>> known = constantIntegers(places))
    for (int64_t place : *known)
      if (place < 0 || place >= all)
        return n.error() << "puts an element at place " << place << " of a tensor of " << all << " elements";
  Value zeros = e.splat(Emitter::elementOf(x), 0, {all, 1});
  Value placed = e.make<graph::ScatterOp>(
      {zeros, e.reshape(places, count), e.reshape(x, {count, 1})},
      e.attr("mode", ScatterModeAttr::get(e.builder.getContext(), ScatterMode::Set)));
  SmallVector<int64_t> lows(rank + 2, 0), behind;
  for (auto [size, own] : llvm::zip(asked, whole))
    behind.push_back(size - own);
  Value result = e.reshape(placed, whole);
  if (asked != whole)
    result = e.make<graph::PadOp>(result, {e.attr("lows", lows), e.attr("highs", behind),
                                           e.attr("value", e.builder.getZeroAttr(Emitter::elementOf(x)))});
  return n.set(0, result);
}

ArrayRef<OpRow> windowOps() {
  static const OpRow rows[] = {
      {"AveragePool", 7, kMaxOpset, averagePool},
      {"Col2Im", 18, kMaxOpset, col2Im},
      {"Conv", 1, kMaxOpset, conv},
      {"ConvTranspose", 1, kMaxOpset, convTranspose},
      {"GlobalAveragePool", 1, kMaxOpset, globalPool<graph::ReduceMeanOp>},
      {"GlobalLpPool", 2, kMaxOpset, globalLpPool},
      {"GlobalMaxPool", 1, kMaxOpset, globalPool<graph::ReduceMaxOp>},
      {"LpPool", 2, kMaxOpset, lpPool},
      {"MaxPool", 1, kMaxOpset, maxPool},
      {"MaxUnpool", 9, kMaxOpset, maxUnpool},
  };
  return rows;
}

} // namespace dsopt::onnx_import
