//===- ResizeOps.cpp - resizing by interpolation ---------------------------===//
//
// Interpolation along an axis is linear: a product with a matrix that the node's
// attributes and shapes give. Where each row takes one element, it is a gather.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Elements of an interpolation's matrix at most.
static constexpr int64_t kMaxMatrix = 1 << 24;

namespace {
/// How one axis is resized.
struct Axis {
  int64_t input, output;
  double scale, begin = 0, end = 1; ///< of the region, relative to the input
};

class Resize {
public:
  explicit Resize(NodeBuilder &n) : n(n), e(n.e) {}
  LogicalResult run();

private:
  LogicalResult readAttributes();
  FailureOr<SmallVector<int64_t>> axesOf(Value x);
  FailureOr<std::vector<Axis>> sizesOf(Value x, ArrayRef<int64_t> axes);
  double placeOf(const Axis &axis, int64_t at) const;
  SmallVector<double> tapsOf(double ratio, double scale) const;
  Value resizeAxis(Value x, int64_t dim, const Axis &axis);
  int64_t roundedOf(double place) const;

  NodeBuilder &n;
  Emitter &e;
  StringRef mode, transform, nearest;
  bool antialias = false, excludeOutside = false;
  double cubic = -0.75, outside = 0;
};
} // namespace

LogicalResult Resize::readAttributes() {
  mode = n.stringAttr("mode", "nearest");
  transform = n.stringAttr("coordinate_transformation_mode", "half_pixel");
  nearest = n.stringAttr("nearest_mode", "round_prefer_floor");
  antialias = n.opset >= 18 && n.integerAttr("antialias", 0) != 0;
  excludeOutside = n.integerAttr("exclude_outside", 0) != 0;
  cubic = n.floatAttr("cubic_coeff_a", -0.75);
  outside = n.floatAttr("extrapolation_value", 0);
  auto check = [&](StringRef name, StringRef value, ArrayRef<StringRef> known) -> LogicalResult {
    if (llvm::is_contained(known, value))
      return success();
    InFlightDiagnostic diagnostic = n.error() << "has " << name << " '" << value << "', expected ";
    for (auto [i, other] : llvm::enumerate(known))
      diagnostic << (i ? ", " : "") << other;
    return diagnostic;
  };
  return failure(
      failed(check("mode", mode, {"nearest", "linear", "cubic"})) ||
      failed(check("coordinate_transformation_mode", transform,
                   {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                    "tf_crop_and_resize"})) ||
      failed(check("nearest_mode", nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})));
}

FailureOr<SmallVector<int64_t>> Resize::axesOf(Value x) {
  SmallVector<int64_t> axes;
  if (n.opset >= 18 && n.attribute("axes")) {
    for (int64_t given : n.integersAttr("axes")) {
      FailureOr<int64_t> axis = n.axis(given, Emitter::rankOf(x));
      if (failed(axis))
        return failure();
      axes.push_back(*axis);
    }
    return axes;
  }
  return llvm::to_vector(llvm::seq<int64_t>(0, Emitter::rankOf(x)));
}

/// An input that is there and not empty.
static bool isGiven(NodeBuilder &n, int index) {
  if (!n.has(index))
    return false;
  Value value = n.input(index);
  return value && graph::numElements(value.getType()) > 0;
}

FailureOr<std::vector<Axis>> Resize::sizesOf(Value x, ArrayRef<int64_t> axes) {
  std::vector<Axis> resized;
  bool hasScales = isGiven(n, 2), hasSizes = isGiven(n, 3);
  if (hasScales == hasSizes)
    return n.error() << "has " << (hasScales ? "scales and sizes" : "neither scales nor sizes")
                     << ", expected one of them";
  for (int64_t axis : axes)
    resized.push_back({Emitter::shapeOf(x)[axis], 0, 1});
  if (hasScales) {
    auto scales = n.floats(2, "scales");
    if (failed(scales))
      return failure();
    if (scales->size() != axes.size())
      return n.error() << "has " << scales->size() << " scales for " << axes.size()
                       << " axes, expected as many";
    for (auto [axis, scale] : llvm::zip(resized, *scales)) {
      if (!(scale > 0) || !(scale * axis.input <= kMaxMatrix))
        return n.error() << "has scale " << std::to_string(scale) << " for " << axis.input
                         << " elements, expected more than 0 and at most 2^24 elements";
      axis.scale = scale;
      axis.output = std::floor(axis.input * scale);
    }
  } else {
    auto sizes = n.integers(3, "sizes");
    if (failed(sizes))
      return failure();
    if (sizes->size() != axes.size())
      return n.error() << "has " << sizes->size() << " sizes for " << axes.size()
                       << " axes, expected as many";
    StringRef policy = n.opset < 18 ? "stretch" : n.stringAttr("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
      return n.error() << "has keep_aspect_ratio_policy '" << policy
                       << "', expected stretch, not_larger or not_smaller";
    std::optional<double> common;
    for (auto [axis, size] : llvm::zip(resized, *sizes)) {
      if (size < 1 || size > kMaxMatrix || axis.input < 1)
        return n.error() << "resizes " << axis.input << " to " << size
                         << " elements, expected 1 or more and at most 2^24";
      axis.output = size;
      axis.scale = (double)size / axis.input;
      if (policy != "stretch")
        common = !common ? axis.scale
                         : (policy == "not_larger" ? std::min(*common, axis.scale)
                                                   : std::max(*common, axis.scale));
    }
    for (Axis &axis : resized)
      if (common) {
        axis.scale = *common;
        axis.output = std::floor(axis.input * *common + 0.5);
      }
  }
  if (transform == "tf_crop_and_resize") {
    auto region = n.has(1) ? n.floats(1, "roi") : FailureOr<SmallVector<double>>(SmallVector<double>());
    if (failed(region))
      return failure();
    if (region->size() != 2 * axes.size())
      return n.error() << "has " << region->size() << " numbers as roi, expected two for each of "
                       << axes.size() << " axes";
    for (auto [i, axis] : llvm::enumerate(resized))
      axis.begin = (*region)[i], axis.end = (*region)[i + axes.size()];
  }
  return resized;
}

/// Where in the input an element of the output lies.
double Resize::placeOf(const Axis &axis, int64_t at) const {
  double whole = axis.scale * axis.input, last = axis.input - 1;
  if (transform == "align_corners")
    return whole == 1 ? 0 : at * last / (whole - 1);
  if (transform == "asymmetric")
    return at / axis.scale;
  if (transform == "tf_crop_and_resize")
    return axis.begin * last + (whole == 1 ? (axis.end - axis.begin) * last / 2
                                           : at * (axis.end - axis.begin) * last / (whole - 1));
  if (transform == "pytorch_half_pixel" && whole == 1)
    return -0.5;
  double place = (at + 0.5) / axis.scale - 0.5;
  if (transform == "half_pixel_symmetric")
    place += axis.input / 2.0 * (1 - axis.output / whole);
  return place;
}

/// The weights of neighbours for a place that lies `ratio`, in (0, 1], behind the one on its left;
/// as many on both sides.
SmallVector<double> Resize::tapsOf(double ratio, double scale) const {
  SmallVector<double> taps;
  double shrink = antialias ? std::min(scale, 1.0) : 1;
  int64_t reach = mode == "linear" ? 1 : 2, start = std::floor(-reach / shrink) + 1;
  auto weigh = [&](double x) {
    x = std::abs(x);
    if (mode == "linear")
      return std::max(0.0, 1 - x);
    if (x <= 1)
      return ((cubic + 2) * x - (cubic + 3)) * x * x + 1;
    return x < 2 ? ((cubic * x - 5 * cubic) * x + 8 * cubic) * x - 4 * cubic : 0;
  };
  double total = 0;
  for (int64_t i = start; i < 2 - start; ++i) {
    taps.push_back(weigh(shrink * (i - ratio)));
    total += taps.back();
  }
  if (antialias)
    for (double &tap : taps)
      tap /= total;
  return taps;
}

int64_t Resize::roundedOf(double place) const {
  double below = std::floor(place), ratio = place - below;
  if (ratio == 0)
    return below;
  bool up = nearest == "ceil" || (nearest == "round_prefer_floor" && ratio > 0.5) ||
            (nearest == "round_prefer_ceil" && ratio >= 0.5);
  return below + up;
}

Value Resize::resizeAxis(Value x, int64_t dim, const Axis &axis) {
  if (!x)
    return {};
  auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, axis.input - 1); };
  Type element = Emitter::elementOf(x);
  SmallVector<bool> isOutside;
  for (int64_t at = 0; at < axis.output; ++at) {
    double place = placeOf(axis, at);
    isOutside.push_back(transform == "tf_crop_and_resize" && (place < 0 || place > axis.input - 1));
  }
  Value result;
  if (mode == "nearest") {
    SmallVector<int64_t> places;
    for (int64_t at = 0; n.isUpgraded() && axis.scale < 1 && at < axis.output; ++at)
      if (double place = placeOf(axis, at); place != std::floor(place)) {
        n.error() << "takes element " << std::to_string(place) << " of " << axis.input << " as element " << at
                  << " of " << axis.output
                  << ", which runtimes round in different ways at this opset, expected "
                  << "a whole number: export the model with opset 11 or newer, which says how";
        return {};
      }
    for (int64_t at = 0; at < axis.output; ++at)
      places.push_back(clamped(roundedOf(placeOf(axis, at))));
    result = e.gather(x, e.integers(places), dim);
  } else {
    if (axis.input * axis.output > kMaxMatrix) {
      n.error() << "resizes " << axis.input << " to " << axis.output
                << " elements, expected a product of 2^24 at most";
      return {};
    }
    SmallVector<double> matrix(axis.input * axis.output);
    for (int64_t at = 0; at < axis.output; ++at) {
      double place = placeOf(axis, at), below = std::floor(place), ratio = place - below;
      if (ratio == 0)
        ratio = 1, below -= 1;
      SmallVector<double> taps = tapsOf(ratio, axis.scale);
      int64_t first = (int64_t)below - ((int64_t)taps.size() / 2 - 1);
      double total = 0;
      for (auto [i, tap] : llvm::enumerate(taps)) {
        if (excludeOutside && (first + (int64_t)i < 0 || first + (int64_t)i >= axis.input))
          tap = 0;
        total += tap;
      }
      for (auto [i, tap] : llvm::enumerate(taps))
        matrix[at * axis.input + clamped(first + i)] += excludeOutside ? tap / total : tap;
    }
    auto wide = RankedTensorType::get({axis.output, axis.input}, e.builder.getF64Type());
    Value weights = e.convert(e.constant(DenseElementsAttr::get(wide, ArrayRef<double>(matrix))), element);
    int64_t last = Emitter::rankOf(x) - 1;
    Value rows = e.moveAxis(x, dim, last);
    if (!rows)
      return {};
    SmallVector<int64_t> shape(Emitter::shapeOf(rows));
    shape.back() = axis.output;
    Value flat = e.reshape(rows, {graph::numElements(rows.getType()) / axis.input, axis.input});
    Value product = e.make<graph::MatMulOp>({flat, weights}, e.flag("transpose_b"));
    result = e.moveAxis(e.reshape(product, shape), last, dim);
  }
  if (!result || !llvm::is_contained(isOutside, true))
    return result;
  SmallVector<int64_t> shape(Emitter::rankOf(x), 1);
  shape[dim] = axis.output;
  return e.where(e.bools(isOutside, shape), e.scalar(outside, x), result);
}

LogicalResult Resize::run() {
  Value x = n.input(0);
  if (!x || failed(readAttributes()))
    return failure();
  if (mode != "nearest" && !isa<FloatType>(Emitter::elementOf(x)))
    return n.error() << "interpolates " << Emitter::typeOf(x) << ", expected floating point";
  FailureOr<SmallVector<int64_t>> axes = axesOf(x);
  if (failed(axes))
    return failure();
  auto resized = sizesOf(x, *axes);
  if (failed(resized))
    return failure();
  for (auto [dim, axis] : llvm::zip(*axes, *resized))
    if (axis.output != axis.input || axis.scale != 1 || transform == "tf_crop_and_resize")
      x = resizeAxis(x, dim, axis);
  return n.set(0, x);
}

static LogicalResult resize(NodeBuilder &n) { return Resize(n).run(); }

ArrayRef<OpRow> resizeOps() {
  static const OpRow rows[] = {
      {"Resize", 10, kMaxOpset, resize},
      {"Upsample", 7, 9, resize},
  };
  return rows;
}

} // namespace dsopt::onnx_import
