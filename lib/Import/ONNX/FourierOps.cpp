//===- FourierOps.cpp - Fourier transforms, and windows of signals ---------===//
//
// A transform of few points is a product with a constant matrix, whose rows and columns are pairs of
// real and imaginary parts. One of more points, a times b of them, is b transforms of a points, a
// product with roots of unity, and a transforms of b points (Cooley and Tukey 1965).
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

/// Points of a transform that is one product, whatever its factors are.
static constexpr int64_t kFewPoints = 128;
/// Points of a transform without factors at most.
static constexpr int64_t kMostPoints = 2048;
/// Roots of unity are constants of as many numbers.
static constexpr int64_t kMostRoots = int64_t(1) << 24;

/// A constant whose element at (row, column) is a function of both.
template <typename F> static Value matrix(Emitter &e, Type element, int64_t rows, int64_t columns, F f) {
  std::vector<double> numbers;
  numbers.reserve(rows * columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      numbers.push_back(f(row, column));
  if (element.isF64())
    return e.constant(
        DenseElementsAttr::get(RankedTensorType::get({rows, columns}, element), ArrayRef(numbers)));
  std::vector<float> narrow(numbers.begin(), numbers.end());
  auto type = RankedTensorType::get({rows, columns}, e.builder.getF32Type());
  return e.convert(e.constant(DenseElementsAttr::get(type, ArrayRef(narrow))), element);
}

namespace {
/// A transform along rows of pairs.
struct Transform {
  Emitter &e;
  bool inverse;

  double angle(int64_t k, int64_t n, int64_t points) const {
    // What is whole turns more is none: sines of small angles are exact.
    return (inverse ? 2 : -2) * M_PI * static_cast<double>(k * n % points) / points;
  }

  /// `[rows, points, 1 or 2]` to `[rows, results, 2]`: the first of the results.
  Value rows(Value x, int64_t results, double scale) const {
    if (!x)
      return {};
    int64_t points = Emitter::shapeOf(x)[1];
    return points <= kFewPoints || factorOf(points) == 1 ? direct(x, results, scale)
                                                         : factored(x, results, scale);
  }

  /// The largest factor that is not larger than the root.
  static int64_t factorOf(int64_t points) {
    int64_t factor = static_cast<int64_t>(std::sqrt(static_cast<double>(points)));
    while (points % factor)
      --factor;
    return factor;
  }

  /// One product.
  Value direct(Value x, int64_t results, double scale) const {
    int64_t rows = Emitter::shapeOf(x)[0], points = Emitter::shapeOf(x)[1], parts = Emitter::shapeOf(x)[2];
    if (points > kMostPoints) {
      e.error() << "transforms " << points << " points, a prime number, expected factors of at most "
                << kMostPoints;
      return {};
    }
    Value roots =
        matrix(e, Emitter::elementOf(x), points * parts, results * 2, [&](int64_t row, int64_t column) {
          double turn = angle(row / parts, column / 2, points);
          bool fromImaginary = row % parts, toImaginary = column % 2;
          double part = fromImaginary == toImaginary ? std::cos(turn) : std::sin(turn);
          return scale * (fromImaginary && !toImaginary ? -part : part);
        });
    return e.reshape(e.matmul(e.reshape(x, {rows, points * parts}), roots), {rows, results, 2});
  }

  Value factored(Value x, int64_t results, double scale) const {
    int64_t rows = Emitter::shapeOf(x)[0], points = Emitter::shapeOf(x)[1], parts = Emitter::shapeOf(x)[2];
    int64_t a = factorOf(points), b = points / a;
    // Point b n + m is (n, m); result k + a l is (k, l).
    Value columns = e.transpose(e.reshape(x, {rows, a, b, parts}), {0, 2, 1, 3});
    Value inner = this->rows(e.reshape(columns, {rows * b, a, parts}), a, scale);
    Value turned = e.transpose(turn(e.reshape(inner, {rows, b, a, 2}), points), {0, 2, 1, 3});
    Value outer = this->rows(e.reshape(turned, {rows * a, b, 2}), b, 1);
    Value all = e.reshape(e.transpose(e.reshape(outer, {rows, a, b, 2}), {0, 2, 1, 3}), {rows, points, 2});
    return results == points || !all ? all : e.slice(all, 1, 0, results);
  }

  /// Pair (m, k) of `[rows, b, a, 2]` times a root of unity.
  Value turn(Value x, int64_t points) const {
    if (!x)
      return {};
    int64_t b = Emitter::shapeOf(x)[1], a = Emitter::shapeOf(x)[2];
    auto roots = [&](auto part) {
      Value table = matrix(e, Emitter::elementOf(x), b, a,
                           [&](int64_t m, int64_t k) { return part(angle(m, k, points)); });
      return e.reshape(table, {1, b, a, 1});
    };
    Value cosines = roots([](double turn) { return std::cos(turn); }),
          sines = roots([](double turn) { return std::sin(turn); });
    Value real = e.slice(x, 3, 0, 1), imaginary = e.slice(x, 3, 1, 1);
    return e.concat({e.sub(e.mul(real, cosines), e.mul(imaginary, sines)),
                     e.add(e.mul(real, sines), e.mul(imaginary, cosines))},
                    3);
  }

  /// `[rows, points / 2 + 1, 2]`, half of a symmetric spectrum, to `[rows, points, 1]`.
  Value toReal(Value x, int64_t points) const {
    if (!x)
      return {};
    int64_t rows = Emitter::shapeOf(x)[0], half = Emitter::shapeOf(x)[1];
    if (points <= kFewPoints) {
      Value roots = matrix(e, Emitter::elementOf(x), half * 2, points, [&](int64_t row, int64_t n) {
        int64_t k = row / 2;
        double twice = k == 0 || 2 * k == points ? 1 : 2, turn = angle(k, n, points);
        return twice / points * (row % 2 ? -std::sin(turn) : std::cos(turn));
      });
      return e.reshape(e.matmul(e.reshape(x, {rows, half * 2}), roots), {rows, points, 1});
    }
    // The other half is the conjugate, backwards.
    int64_t others = points - half;
    Value mirrored = e.make<graph::SliceOp>(x, {e.attr("starts", ArrayRef<int64_t>{0, others, 0}),
                                                e.attr("sizes", ArrayRef<int64_t>{rows, others, 2}),
                                                e.attr("steps", ArrayRef<int64_t>{1, -1, 1})});
    Value signs = matrix(e, Emitter::elementOf(x), 1, 2, [](int64_t, int64_t part) { return part ? -1 : 1; });
    Value spectrum = e.concat({x, e.mul(mirrored, signs)}, 1);
    Value all = this->rows(spectrum, points, 1.0 / points);
    return all ? e.slice(all, 2, 0, 1) : Value();
  }
};
} // namespace

/// With `size` elements along an axis: what is more is cut off, what lacks is zero.
static Value resized(Emitter &e, Value x, int64_t axis, int64_t size) {
  int64_t own = Emitter::shapeOf(x)[axis];
  if (own >= size)
    return own == size ? x : e.slice(x, axis, 0, size);
  SmallVector<int64_t> lows(Emitter::rankOf(x), 0), highs(Emitter::rankOf(x), 0);
  highs[axis] = size - own;
  return e.make<graph::PadOp>(x, {e.attr("lows", lows), e.attr("highs", highs),
                                  e.attr("value", e.builder.getZeroAttr(Emitter::elementOf(x)))});
}

static LogicalResult dft(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  if (!x)
    return failure();
  int64_t rank = Emitter::rankOf(x), parts = rank ? Emitter::shapeOf(x).back() : 0;
  if (rank < 2 || (parts != 1 && parts != 2) || !isa<FloatType>(Emitter::elementOf(x)))
    return n.error() << "has an input of type " << Emitter::typeOf(x)
                     << ", expected floating point with a last dimension of 1 (real) or 2 (complex)";
  int64_t given = n.opset < 20 ? n.integerAttr("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) {
    FailureOr<int64_t> input = n.integer(2, "an axis");
    if (failed(input))
      return failure();
    given = *input;
  }
  FailureOr<int64_t> axis = n.axis(given, rank);
  if (failed(axis))
    return failure();
  if (*axis == rank - 1)
    return n.error() << "transforms axis " << given << ", the real and imaginary parts, expected another";
  bool inverse = n.integerAttr("inverse", 0), isOnesided = n.integerAttr("onesided", 0);
  int64_t own = Emitter::shapeOf(x)[*axis], points = inverse && isOnesided ? 2 * (own - 1) : own;
  if (n.has(1)) {
    FailureOr<int64_t> length = n.integer(1, "a dft_length");
    if (failed(length))
      return failure();
    points = *length;
  }
  if (points < 1 || points > kMostRoots)
    return n.error() << "transforms " << points << " points, expected 1 to " << kMostRoots;
  if (isOnesided && parts != (inverse ? 2 : 1))
    return n.error() << "is onesided with an input of type " << Emitter::typeOf(x) << ", expected a "
                     << (inverse ? "complex" : "real") << " one";
  bool toReal = inverse && isOnesided;
  int64_t results = isOnesided && !inverse ? points / 2 + 1 : points;
  x = resized(e, e.moveAxis(x, *axis, rank - 2), rank - 2, toReal ? points / 2 + 1 : points);
  if (!x)
    return failure();
  SmallVector<int64_t> shape(Emitter::shapeOf(x));
  int64_t rows = ShapedType::getNumElements(ArrayRef(shape).drop_back(2));
  Transform transform{e, inverse};
  Value pairs = e.reshape(x, {rows, shape[rank - 2], parts});
  Value result =
      toReal ? transform.toReal(pairs, points) : transform.rows(pairs, results, inverse ? 1.0 / points : 1);
  shape[rank - 2] = results;
  shape[rank - 1] = toReal ? 1 : 2;
  return n.set(0, e.moveAxis(e.reshape(result, shape), rank - 2, *axis));
}

/// The transforms of a signal's pieces, each times a window.
static LogicalResult stft(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0), window = n.has(2) ? n.input(2) : Value();
  FailureOr<int64_t> step = n.integer(1, "a frame_step");
  if (!x || (n.has(2) && !window) || failed(step))
    return failure();
  if (x && Emitter::rankOf(x) == 2)
    x = e.reshape(x, {Emitter::shapeOf(x)[0], Emitter::shapeOf(x)[1], 1});
  if (Emitter::rankOf(x) != 3 || Emitter::shapeOf(x)[2] < 1 || Emitter::shapeOf(x)[2] > 2 ||
      (window && Emitter::rankOf(window) != 1))
    return n.error() << "has a signal of type " << Emitter::typeOf(x)
                     << ", expected [batch, length, 1 or 2], and a window of rank 1 if there is one";
  int64_t batch = Emitter::shapeOf(x)[0], length = Emitter::shapeOf(x)[1], parts = Emitter::shapeOf(x)[2];
  int64_t size = window ? Emitter::shapeOf(window)[0] : length;
  if (n.has(3)) {
    FailureOr<int64_t> given = n.integer(3, "a frame_length");
    if (failed(given))
      return failure();
    if (window && *given != size)
      return n.error() << "has frames of " << *given << " points and a window of " << size
                       << ", expected equal numbers";
    size = *given;
  }
  if (*step < 1 || size < 1 || size > length)
    return n.error() << "takes frames of " << size << " points every " << *step << " of " << length
                     << ", expected steps of 1 or more and frames within the signal";
  int64_t frames = (length - size) / *step + 1;
  bool isOnesided = n.integerAttr("onesided", 1) && parts == 1;
  Value pieces = makeWindows(e, x, 1, {{size}, {*step}, {1}, {0}, {frames}},
                             cast<TypedAttr>(e.builder.getZeroAttr(Emitter::elementOf(x))));
  if (window)
    pieces = e.mul(pieces, e.reshape(window, {size, 1}));
  int64_t results = isOnesided ? size / 2 + 1 : size;
  Value result = Transform{e, false}.rows(e.reshape(pieces, {batch * frames, size, parts}), results, 1);
  return n.set(0, e.reshape(result, {batch, frames, results, 2}));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// A window whose weights are sums of cosines.
static LogicalResult cosines(NodeBuilder &n, double first, double second, double third) {
  FailureOr<int64_t> size = n.integer(0, "a size");
  Type element =
      elementType(n.integerAttr("output_datatype", onnx::TensorProto::FLOAT), "the result", n.e.location);
  if (failed(size) || !element)
    return failure();
  if (*size < 1 || *size > (1 << 24) || !isa<FloatType>(element))
    return n.error() << "is a window of " << *size << " elements of type " << element
                     << ", expected 1 to 2^24 of floating point";
  double turn = 2 * M_PI / (n.integerAttr("periodic", 1) ? *size : std::max<int64_t>(*size - 1, 1));
  Value row = matrix(n.e, element, 1, *size, [&](int64_t, int64_t i) {
    return first - second * std::cos(turn * i) + third * std::cos(2 * turn * i);
  });
  return n.set(0, n.e.reshape(row, *size));
}
static LogicalResult hannWindow(NodeBuilder &n) { return cosines(n, 0.5, 0.5, 0); }
static LogicalResult hammingWindow(NodeBuilder &n) { return cosines(n, 25.0 / 46, 21.0 / 46, 0); }
static LogicalResult blackmanWindow(NodeBuilder &n) { return cosines(n, 0.42, 0.5, 0.08); }

/// What sums the bins of a spectrum to bands that are as wide as the ear hears them: triangles, of which
/// each begins where the one before has its peak.
static LogicalResult melWeightMatrix(NodeBuilder &n) {
  auto bands = n.integer(0, "num_mel_bins"), points = n.integer(1, "dft_length"),
       rate = n.integer(2, "sample_rate");
  auto low = n.floats(3, "lower_edge_hertz"), high = n.floats(4, "upper_edge_hertz");
  Type element =
      elementType(n.integerAttr("output_datatype", onnx::TensorProto::FLOAT), "the result", n.e.location);
  if (failed(bands) || failed(points) || failed(rate) || failed(low) || failed(high) || !element)
    return failure();
  if (*bands < 1 || *points < 1 || *rate < 1 || low->size() != 1 || high->size() != 1 || *bands > (1 << 16) ||
      *points > (1 << 24) || !isa<FloatType>(element))
    return n.error() << "has " << *bands << " bands, " << *points << " points and " << *rate
                     << " samples a second of type " << element << ", expected 1 or more, of floating point";
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double first = mel(low->front()), width = (mel(high->front()) - first) / (*bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < *bands + 2; ++i) {
    double hertz = 700 * (std::pow(10, (first + i * width) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(std::floor((*points + 1) * hertz / *rate)));
  }
  int64_t bins = *points / 2 + 1;
  if (edges.front() < 0 || edges.back() > bins)
    return n.error() << "has bands up to bin " << edges.back() << ", expected bins of 0 to " << bins - 1;
  Value table = matrix(n.e, element, bins, *bands, [&](int64_t bin, int64_t band) -> double {
    int64_t left = edges[band], peak = edges[band + 1], right = edges[band + 2];
    if (peak <= bin && bin < right)
      return double(right - bin) / (right - peak);
    if (left <= bin && bin <= peak)
      return left == peak ? 1 : double(bin - left) / (peak - left);
    return 0;
  });
  return n.set(0, table);
}

ArrayRef<OpRow> fourierOps() {
  static const OpRow rows[] = {
      {"BlackmanWindow", 17, kMaxOpset, blackmanWindow},   {"DFT", 17, kMaxOpset, dft},
      {"HammingWindow", 17, kMaxOpset, hammingWindow},     {"HannWindow", 17, kMaxOpset, hannWindow},
      {"MelWeightMatrix", 17, kMaxOpset, melWeightMatrix}, {"STFT", 17, kMaxOpset, stft},
  };
  return rows;
}

} // namespace dsopt::onnx_import
