//===- SamplingOps.cpp - images read between their pixels ------------------===//
//
// A sample is a sum of neighbouring pixels, which are looked up, each times the product of a weight for
// each dimension. Pixels and places both have gradients; borders are PyTorch's.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
enum class Filter { Nearest, Linear, Cubic };
enum class Border { Zeros, Nearest, Reflection };

/// A pixel along one dimension for each sample.
struct Tap {
  Value index;  ///< i64, within the dimension
  Value weight; ///< null: 1
};

/// Samples of `[N, C, sizes...]` at places `[N, P]` for each dimension, in pixels.
class Sampler {
public:
  Sampler(Emitter &e, Filter filter, Border border, bool alignsCorners)
      : e(e), filter(filter), border(border), alignsCorners(alignsCorners) {}

  /// `[N, P, C]`; null after an error.
  Value sample(Value image, ArrayRef<Value> places) {
    ArrayRef<int64_t> shape = Emitter::shapeOf(image), sizes = shape.drop_front(2);
    int64_t batch = shape[0], channels = shape[1], pixels = ShapedType::getNumElements(sizes),
            samples = Emitter::shapeOf(places.front())[1];
    Value rows = e.reshape(e.moveAxis(image, 1, Emitter::rankOf(image) - 1), {batch * pixels, channels});
    Type index = e.builder.getI64Type();
    Value first = e.mul(e.counting(index, batch, 0, 2), e.splat(index, pixels));
    SmallVector<Tap> taps{{}};
    for (auto [place, size] : llvm::zip_equal(places, sizes)) {
      SmallVector<Tap> along = tapsOf(place, size), all;
      for (const Tap &outer : taps)
        for (const Tap &inner : along)
          all.push_back(
              {outer.index ? e.add(e.mul(outer.index, e.splat(index, size)), inner.index) : inner.index,
               outer.weight && inner.weight ? e.mul(outer.weight, inner.weight)
               : outer.weight               ? outer.weight
                                            : inner.weight});
      taps = std::move(all);
    }
    Value sum;
    for (const Tap &tap : taps) {
      Value pixel = e.gather(rows, e.add(tap.index, first), 0);
      if (tap.weight && pixel)
        pixel = e.mul(pixel, e.reshape(tap.weight, {batch, samples, 1}));
      sum = sum ? e.add(sum, pixel) : pixel;
    }
    return sum;
  }

private:
  SmallVector<Tap> tapsOf(Value place, int64_t size);
  SmallVector<Value> weightsOf(Value fraction);
  Value reflected(Value place, double low, double high);
  Value clipped(Value place, int64_t size);
  Tap tapAt(Value whole, Value weight, int64_t size);

  Emitter &e;
  Filter filter;
  Border border;
  bool alignsCorners;
};
} // namespace

/// Within [0, size - 1]; without a gradient where it was not, or just so.
Value Sampler::clipped(Value place, int64_t size) {
  Value low = e.scalar(0, place), high = e.scalar(size - 1, place);
  Value above = e.where(e.less(place, high), place, high);
  return e.where(e.less(low, place), above, low);
}

/// Reflected at both borders until it is within them.
Value Sampler::reflected(Value place, double low, double high) {
  if (low == high)
    return e.mul(place, e.scalar(0, place));
  Value distance = e.make<graph::AbsOp>(e.sub(place, e.scalar(low, place)));
  Value width = e.scalar(high - low, place);
  Value flips = e.make<graph::FloorOp>(e.div(distance, width));
  Value rest = e.sub(distance, e.mul(flips, width));
  Value half = e.make<graph::FloorOp>(e.mul(flips, e.scalar(0.5, place)));
  Value isEven = e.equal(flips, e.mul(half, e.scalar(2, place)));
  return e.where(isEven, e.add(rest, e.scalar(low, place)), e.sub(e.scalar(high, place), rest));
}

/// A pixel at a whole number, which may lie outside.
Tap Sampler::tapAt(Value whole, Value weight, int64_t size) {
  if (!whole)
    return {};
  if (filter == Filter::Cubic && border == Border::Reflection)
    whole = alignsCorners ? reflected(whole, 0, size - 1) : reflected(whole, -0.5, size - 0.5);
  if (border == Border::Zeros) {
    Value isInside = e.make<graph::AndOp>({e.make<graph::GreaterEqualOp>({whole, e.scalar(0, whole)}),
                                           e.make<graph::LessEqualOp>({whole, e.scalar(size - 1, whole)})});
    Value one = weight ? weight : e.splat(Emitter::elementOf(whole), 1, Emitter::shapeOf(whole));
    weight = e.where(isInside, one, e.scalar(0, whole));
  }
  return {e.convert(clipped(whole, size), e.builder.getI64Type()), weight};
}

/// Weights of the pixels around a place, by its distance from the one before it.
SmallVector<Value> Sampler::weightsOf(Value t) {
  auto number = [&](double value) { return e.scalar(value, t); };
  if (filter == Filter::Linear)
    return {e.sub(number(1), t), t};
  // Keys 1981, with a slope of -0.75.
  constexpr double a = -0.75;
  auto near = [&](Value x) {
    Value line = e.sub(e.mul(x, number(a + 2)), number(a + 3));
    return e.add(e.mul(e.mul(line, x), x), number(1));
  };
  auto far = [&](Value x) {
    Value line = e.sub(e.mul(x, number(a)), number(5 * a));
    return e.sub(e.mul(e.add(e.mul(line, x), number(8 * a)), x), number(4 * a));
  };
  return {far(e.add(t, number(1))), near(t), near(e.sub(number(1), t)), far(e.sub(number(2), t))};
}

SmallVector<Tap> Sampler::tapsOf(Value place, int64_t size) {
  if (filter != Filter::Cubic && border == Border::Reflection)
    place = alignsCorners ? reflected(place, 0, size - 1) : reflected(place, -0.5, size - 0.5);
  if (filter != Filter::Cubic && border != Border::Zeros)
    place = clipped(place, size);
  if (filter == Filter::Nearest)
    return {tapAt(e.make<graph::RoundOp>(place), {}, size)};
  Value before = e.make<graph::FloorOp>(place);
  SmallVector<Tap> taps;
  int64_t offset = filter == Filter::Cubic ? -1 : 0;
  for (Value weight : weightsOf(e.sub(place, before))) {
    taps.push_back(tapAt(offset ? e.add(before, e.scalar(offset, before)) : before, weight, size));
    ++offset;
  }
  return taps;
}

/// The places of a grid from -1 to 1, in pixels.
static Value inPixels(Emitter &e, Value grid, int64_t size, bool alignsCorners) {
  Value fromZero = e.add(grid, e.scalar(1, grid));
  if (alignsCorners)
    return e.mul(fromZero, e.scalar((size - 1) / 2.0, grid));
  return e.mul(e.sub(e.mul(fromZero, e.scalar(size, grid)), e.scalar(1, grid)), e.scalar(0.5, grid));
}

static LogicalResult gridSample(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0), grid = n.input(1);
  if (!x || !grid)
    return failure();
  int64_t rank = Emitter::rankOf(x) - 2;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), places = Emitter::shapeOf(grid);
  if (rank < 1 || (int64_t)places.size() != rank + 2 || places.back() != rank || places[0] != shape[0] ||
      Emitter::elementOf(x) != Emitter::elementOf(grid) || !isa<FloatType>(Emitter::elementOf(x)))
    return n.error() << "has an image of type " << Emitter::typeOf(x) << " and a grid of type "
                     << Emitter::typeOf(grid)
                     << ", expected [batch, channels, sizes...] and [batch, places..., as many as sizes]";
  StringRef mode = n.stringAttr("mode", "linear"), padding = n.stringAttr("padding_mode", "zeros");
  if (!llvm::is_contained({"linear", "bilinear", "nearest", "cubic", "bicubic"}, mode) ||
      !llvm::is_contained({"zeros", "border", "reflection"}, padding))
    return n.error() << "has mode '" << mode << "' and padding_mode '" << padding
                     << "', expected linear, nearest or cubic, and zeros, border or reflection";
  bool alignsCorners = n.integerAttr("align_corners", 0);
  int64_t samples = ShapedType::getNumElements(places.drop_front().drop_back());
  Value flat = e.reshape(grid, {places[0], samples, rank});
  SmallVector<Value> coordinates;
  // The grid's last dimension comes first.
  for (int64_t dim = 0; dim < rank && flat; ++dim) {
    Value along = e.reshape(e.slice(flat, 2, rank - 1 - dim, 1), {places[0], samples});
    coordinates.push_back(inPixels(e, along, shape[2 + dim], alignsCorners));
  }
  Filter filter = mode == "nearest"         ? Filter::Nearest
                  : mode.ends_with("cubic") ? Filter::Cubic
                                            : Filter::Linear;
  Border border = padding == "zeros"    ? Border::Zeros
                  : padding == "border" ? Border::Nearest
                                        : Border::Reflection;
  if (llvm::is_contained(coordinates, Value()) || coordinates.empty())
    return failure();
  Value result = Sampler(e, filter, border, alignsCorners).sample(x, coordinates);
  SmallVector<int64_t> expected{shape[0]};
  llvm::append_range(expected, places.drop_front().drop_back());
  expected.push_back(shape[1]);
  Value shaped = e.reshape(result, expected);
  return n.set(0, shaped ? e.moveAxis(shaped, rank + 1, 1) : Value());
}

/// The places of an image's pixels from -1 to 1, last dimension first, then a one, as one row a pixel.
static std::vector<double> pixelRows(ArrayRef<int64_t> sizes, bool alignsCorners) {
  int64_t rank = sizes.size(), count = ShapedType::getNumElements(sizes);
  std::vector<double> rows;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      int64_t size = sizes[dim], at = rest % size;
      rest /= size;
      rows.push_back(alignsCorners ? (size > 1 ? 2.0 * at / (size - 1) - 1 : 0) : (2.0 * at + 1) / size - 1);
    }
    rows.push_back(1);
  }
  return rows;
}

static LogicalResult affineGrid(NodeBuilder &n) {
  Emitter &e = n.e;
  Value theta = n.input(0);
  FailureOr<SmallVector<int64_t>> size = n.integers(1, "a size");
  if (!theta || failed(size))
    return failure();
  int64_t rank = (int64_t)size->size() - 2;
  ArrayRef<int64_t> shape = Emitter::shapeOf(theta);
  if ((rank != 2 && rank != 3) || shape != ArrayRef<int64_t>{(*size)[0], rank, rank + 1} ||
      !isa<FloatType>(Emitter::elementOf(theta)))
    return n.error() << "has a theta of type " << Emitter::typeOf(theta) << " and a size of [" << *size
                     << "], expected [N, 2, 3] and [N, C, H, W], or [N, 3, 4] and [N, C, D, H, W]";
  ArrayRef<int64_t> sizes = ArrayRef(*size).drop_front(2);
  for (int64_t entry : sizes)
    if (entry < 1 || entry > (1 << 20))
      return n.error() << "has a size of [" << *size << "], expected 1 to 2^20 each";
  int64_t count = ShapedType::getNumElements(sizes);
  if (count > (1 << 24))
    return n.error() << "has a size of [" << *size << "], expected at most 2^24 places";
  std::vector<double> wide = pixelRows(sizes, n.integerAttr("align_corners", 0));
  std::vector<float> rows(wide.begin(), wide.end());
  auto type = RankedTensorType::get({count, rank + 1}, e.builder.getF32Type());
  Value base = e.convert(e.constant(DenseElementsAttr::get(type, ArrayRef(rows))), Emitter::elementOf(theta));
  Value grid = e.matmul(base, e.transpose(theta, {0, 2, 1}));
  SmallVector<int64_t> expected{(*size)[0]};
  llvm::append_range(expected, sizes);
  expected.push_back(rank);
  return n.set(0, e.reshape(grid, expected));
}

/// A convolution over pixels that offsets move, between which it reads.
static LogicalResult deformConv(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0), weight = n.input(1), offset = n.input(2);
  Value bias = n.has(3) ? n.input(3) : Value(), mask = n.has(4) ? n.input(4) : Value();
  if (!x || !weight || !offset || (n.has(3) && !bias) || (n.has(4) && !mask))
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), filter = Emitter::shapeOf(weight),
                    moved = Emitter::shapeOf(offset);
  if (shape.size() != 4 || filter.size() != 4 || moved.size() != 4)
    return n.error() << "has an image of type " << Emitter::typeOf(x) << ", a weight of type "
                     << Emitter::typeOf(weight) << " and offsets of type " << Emitter::typeOf(offset)
                     << ", expected rank 4";
  auto strides = n.integersAttr("strides", 2, 1), dilations = n.integersAttr("dilations", 2, 1),
       pads = n.integersAttr("pads", 4, 0);
  int64_t groups = n.integerAttr("group", 1), offsetGroups = n.integerAttr("offset_group", 1);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  int64_t batch = shape[0], channels = shape[1], outputs = filter[0], taps = filter[2] * filter[3];
  int64_t high = moved[2], wide = moved[3], places = high * wide;
  SmallVector<int64_t> expected{batch, offsetGroups * taps * 2, high, wide};
  for (int64_t dim : {0, 1}) {
    int64_t extent = (filter[2 + dim] - 1) * (*dilations)[dim] + 1,
            room = shape[2 + dim] + (*pads)[dim] + (*pads)[dim + 2] - extent;
    if ((*strides)[dim] < 1 || (*dilations)[dim] < 1 || room < 0)
      return n.error() << "has windows of " << extent << " pixels in steps of " << (*strides)[dim]
                       << ", expected steps of 1 or more and windows within the image and its pads";
    expected[2 + dim] = room / (*strides)[dim] + 1;
  }
  if (groups < 1 || offsetGroups < 1 || channels % offsetGroups || channels != filter[1] * groups ||
      outputs % groups || moved != ArrayRef(expected))
    return n.error() << "has an image of type " << Emitter::typeOf(x) << ", a weight of type "
                     << Emitter::typeOf(weight) << " and offsets of type " << Emitter::typeOf(offset)
                     << " in " << groups << " groups and " << offsetGroups
                     << " of offsets, expected offsets of shape [" << expected << "]";
  SmallVector<int64_t> maskShape{batch, offsetGroups * taps, high, wide};
  if (mask && Emitter::shapeOf(mask) != ArrayRef(maskShape))
    return n.error() << "has a mask of type " << Emitter::typeOf(mask) << ", expected shape [" << maskShape
                     << "]";
  // Where each tap of the kernel lies without an offset: [taps, high, wide].
  auto base = [&](int64_t dim) {
    std::vector<float> numbers;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t place = 0; place < places; ++place) {
        int64_t k = dim ? tap % filter[3] : tap / filter[3], at = dim ? place % wide : place / wide;
        numbers.push_back(at * (*strides)[dim] + k * (*dilations)[dim] - (*pads)[dim]);
      }
    auto type = RankedTensorType::get({1, taps * places}, e.builder.getF32Type());
    return e.convert(e.constant(DenseElementsAttr::get(type, ArrayRef(numbers))), Emitter::elementOf(x));
  };
  int64_t images = batch * offsetGroups, each = channels / offsetGroups;
  Value pairs = e.reshape(offset, {images, taps, 2, places});
  SmallVector<Value> coordinates;
  for (int64_t dim : {0, 1}) {
    Value along = pairs ? e.reshape(e.slice(pairs, 2, dim, 1), {images, taps * places}) : Value();
    coordinates.push_back(e.add(along, base(dim)));
    if (!coordinates.back())
      return failure();
  }
  Value samples = Sampler(e, Filter::Linear, Border::Zeros, true)
                      .sample(e.reshape(x, {images, each, shape[2], shape[3]}), coordinates);
  if (mask)
    samples = e.mul(samples, e.reshape(mask, {images, taps * places, 1}));
  // [batch, offset groups, taps, places, channels] as rows of places and columns of channels and taps.
  Value all = e.reshape(samples, {batch, offsetGroups, taps, places, each});
  Value columns =
      all ? e.reshape(e.transpose(all, {0, 3, 1, 4, 2}), {batch * places, groups, filter[1] * taps})
          : Value();
  Value lhs = columns ? e.transpose(columns, {1, 0, 2}) : Value();
  Value rhs = e.reshape(weight, {groups, outputs / groups, filter[1] * taps});
  Value product = e.make<graph::MatMulOp>({lhs, rhs}, e.flag("transpose_b"));
  Value result = product ? e.reshape(e.transpose(product, {1, 0, 2}), {batch, high, wide, outputs}) : Value();
  if (bias)
    result = e.add(result, bias);
  return n.set(0, result ? e.moveAxis(result, 3, 1) : Value());
}

ArrayRef<OpRow> samplingOps() {
  static const OpRow rows[] = {
      {"AffineGrid", 20, kMaxOpset, affineGrid},
      {"DeformConv", 19, kMaxOpset, deformConv},
      {"GridSample", 16, kMaxOpset, gridSample},
  };
  return rows;
}

} // namespace dsopt::onnx_import
