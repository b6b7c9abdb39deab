//===- ClosedForms.cpp - weights that no initialization makes --------------===//

#include "ClosedForms.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// A matrix of the values, or its transpose.
struct Matrix {
  const TensorValues &values;
  int64_t rows, columns, rowStride, columnStride;
  double operator()(int64_t row, int64_t column) const {
    return values[row * rowStride + column * columnStride];
  }
};
} // namespace

/// Equal steps: an arange, a linspace.
static bool isArithmetic(const TensorValues &values) {
  if (values.size() < 4)
    return false;
  double first = values[0], step = values[1] - first;
  for (int64_t i = 1; i < values.size(); ++i)
    if (double expected = first + i * step; !(std::fabs(values[i] - expected) <= 1e-5 * std::fabs(expected)))
      return false;
  return step != 0;
}

/// Equal ratios: frequencies of rotary embeddings, slopes of ALiBi.
static bool isGeometric(const TensorValues &values) {
  if (values.size() < 4 || !(values[0] > 0 && values[1] > 0))
    return false;
  double ratio = values[1] / values[0];
  for (int64_t i = 2; i < values.size(); ++i)
    if (!(std::fabs(values[i] - ratio * values[i - 1]) <= 1e-4 * values[i]))
      return false;
  return std::fabs(ratio - 1) > 1e-4;
}

/// Rising to the middle and falling as it rose, zeros beside it: Hann's window and its like. One for a
/// periodic signal has its first sample once.
static bool isWindow(const TensorValues &values) {
  int64_t first = 0, last = values.size() - 1;
  double peak = 0;
  for (int64_t i = 0; i <= last; ++i)
    peak = std::max(peak, values[i]);
  // One end of a window is often a zero that is rounded to something.
  auto isZero = [&](int64_t n) { return std::fabs(values[n]) <= 1e-9 * peak; };
  while (first < last && isZero(first))
    ++first;
  while (last > first && isZero(last))
    --last;
  if (last - first < 7)
    return false;
  auto isMirrored = [&](int64_t from) {
    for (int64_t low = from, high = last; low < high; ++low, --high)
      if (!(values[low] >= 0 && std::fabs(values[low] - values[high]) <= 1e-6 * peak &&
            (low + 1 >= high || values[low + 1] >= values[low])))
        return false;
    return values[from] < 0.5 * peak;
  };
  return isMirrored(first) || isMirrored(first + 1);
}

/// Samples of a wave satisfy v[n + 1] + v[n - 1] = 2 cos(w) v[n]: sines and cosines of positions, DFT, DCT.
/// A window, if there is one, is the first row.
static bool areWaves(const Matrix &at, bool windowed) {
  if (at.rows < 2 || at.columns < 5)
    return false;
  double peak = 0;
  if (windowed)
    for (int64_t n = 0; n < at.columns; ++n) {
      if (at(0, n) < 0)
        return false;
      peak = std::max(peak, at(0, n));
    }
  if (windowed && peak == 0)
    return false;
  bool move = false;
  double scale = 0;
  SmallVector<double> row(at.columns);
  for (int64_t r = windowed; r < at.rows; ++r) {
    double largest = 0, product = 0, square = 0;
    int64_t first = 0, last = at.columns;
    auto isOpen = [&](int64_t n) { return !windowed || at(0, n) > 1e-2 * peak; };
    while (first < last && !isOpen(first))
      ++first;
    while (last > first && !isOpen(last - 1))
      --last;
    if (last - first < 5)
      return false;
    for (int64_t n = first; n < last; ++n) {
      row[n] = windowed ? at(r, n) / at(0, n) : at(r, n);
      largest = std::max(largest, std::fabs(row[n]));
    }
    for (int64_t n = first + 1; n + 1 < last; ++n) {
      product += row[n] * (row[n + 1] + row[n - 1]);
      square += row[n] * row[n];
    }
    // A sine of multiples of pi is rounded to something.
    scale = std::max(scale, largest);
    largest = largest < 1e-4 * scale ? 0 : largest;
    double slope = square > 0 ? product / square : 0;
    for (int64_t n = first + 1; largest > 0 && n + 1 < last; ++n)
      if (!(std::fabs(row[n + 1] + row[n - 1] - slope * row[n]) <= 2e-3 * largest))
        return false;
    move |= largest > 0 && std::fabs(slope) < 1.999;
  }
  return move;
}

/// Triangles one behind the other: filters of a mel scale.
static bool areTriangles(const Matrix &at) {
  if (at.rows < 4 || at.columns < 4)
    return false;
  int64_t wide = 0, nonzero = 0, lastPeak = -1;
  for (int64_t r = 0; r < at.rows; ++r) {
    int64_t first = -1, last = -1, peak = 0;
    for (int64_t n = 0; n < at.columns; ++n) {
      if (!(at(r, n) >= 0))
        return false;
      if (at(r, n) == 0)
        continue;
      first = first < 0 ? n : first;
      last = n;
      peak = at(r, n) > at(r, peak) ? n : peak;
    }
    if (first < 0)
      continue;
    for (int64_t n = first; n < last; ++n)
      if (at(r, n) == 0 || (n < peak ? at(r, n + 1) < at(r, n) : at(r, n + 1) > at(r, n)))
        return false;
    if (peak < lastPeak)
      return false;
    lastPeak = peak;
    nonzero += last - first + 1;
    wide += last - first >= 2;
  }
  return wide >= 2 && 2 * nonzero <= at.rows * at.columns;
}

/// Zeros and ones that are neither an identity nor a permutation: sums over parts, selections.
static bool areChoices(const Matrix &at) {
  bool isRepeated = false;
  std::vector<bool> taken(at.columns);
  for (int64_t r = 0; r < at.rows; ++r) {
    int64_t ones = 0;
    for (int64_t n = 0; n < at.columns; ++n) {
      double value = at(r, n);
      if (value != 0 && value != 1)
        return false;
      if (value == 0)
        continue;
      isRepeated |= ++ones > 1 || taken[n];
      taken[n] = true;
    }
  }
  return isRepeated && at.rows > 1 && at.columns > 1;
}

namespace {
/// A window of a kernel without the zeros before and behind, which pad filters of unlike lengths.
struct Filter {
  const TensorValues &values;
  int64_t first, size;
  double peak = 0;

  Filter(const TensorValues &values, int64_t start, int64_t length)
      : values(values), first(start), size(length) {
    for (int64_t i = 0; i < length; ++i)
      peak = std::max(peak, std::fabs(values[start + i]));
    auto isZero = [&](double value) { return std::fabs(value) <= 1e-9 * peak; };
    while (size > 0 && isZero((*this)[size - 1]))
      --size;
    for (; size > 0 && isZero((*this)[0]); ++first)
      --size;
  }
  double operator[](int64_t i) const { return values[first + i]; }
  /// Whether the other one backwards is this one, or its opposite.
  bool mirrors(const Filter &other) const {
    bool even = size == other.size, odd = even;
    for (int64_t i = 0; i < size && (even || odd); ++i) {
      double value = (*this)[i], mirrored = other[size - 1 - i];
      even &= std::fabs(value - mirrored) <= 1e-6 * peak;
      odd &= std::fabs(value + mirrored) <= 1e-6 * peak;
    }
    return even || odd;
  }
  bool isSumOfWaves() const;
};
} // namespace

/// A wave under a cosine's window (Hann's, Hamming's) wherever either has its middle is three waves, and
/// these satisfy v[n + 3] + v[n - 3] = a (v[n + 2] + v[n - 2]) + b (v[n + 1] + v[n - 1]) + c v[n].
bool Filter::isSumOfWaves() const {
  if (size < 16)
    return false;
  auto pair = [&](int64_t n, int64_t distance) {
    return (*this)[n + distance] + (distance ? (*this)[n - distance] : 0);
  };
  // Least squares for a, b and c by their normal equations, which may well be singular.
  double left[3][4] = {};
  for (int64_t n = 3; n + 3 < size; ++n)
    for (int64_t i : {0, 1, 2})
      for (int64_t j : {0, 1, 2, 3})
        left[i][j] += pair(n, i) * pair(n, j);
  double slack = 1e-13 * (left[0][0] + left[1][1] + left[2][2]);
  for (int64_t i : {0, 1, 2})
    left[i][i] += slack;
  for (int64_t i : {0, 1, 2})
    for (int64_t row : {0, 1, 2})
      if (double factor = left[row][i] / left[i][i]; row != i)
        for (int64_t j : {0, 1, 2, 3})
          left[row][j] -= factor * left[i][j];
  for (int64_t n = 3; n + 3 < size; ++n) {
    double rest = pair(n, 3);
    for (int64_t i : {0, 1, 2})
      rest -= left[i][3] / left[i][i] * pair(n, i);
    if (!(std::fabs(rest) <= 1e-4 * peak))
      return false;
  }
  return true;
}

/// Every window a mirror image of itself or of another, or a wave under a window: a blur, a difference, an
/// upsampling, a resampling, a transform.
static bool areFixed(ArrayRef<int64_t> window, const TensorValues &values) {
  int64_t size = 1;
  for (int64_t length : window)
    size *= length;
  if (llvm::none_of(window, [](int64_t length) { return length >= 3; }))
    return false;
  auto starts = llvm::seq<int64_t>(0, values.size() / size);
  bool any = false;
  for (int64_t i : starts) {
    Filter filter(values, i * size, size);
    // The identity of convolutions is an initialization.
    if (filter.size == 1)
      return false;
    any |= filter.size > 1;
    if (!filter.mirrors(filter) && !filter.isSumOfWaves() &&
        llvm::none_of(starts, [&](int64_t j) { return filter.mirrors(Filter(values, j * size, size)); }))
      return false;
  }
  return any;
}

/// Numbers of samples and the like, or their roots: rising or falling, and whole once they are squared.
static bool areRootsOfWholes(const TensorValues &values) {
  if (values.size() < 4)
    return false;
  bool rises = true, falls = true;
  for (int64_t i = 0; i < values.size(); ++i) {
    double square = values[i] * values[i], slack = 0.25 * values.precision() * square;
    // Of a large number the fraction is lost.
    if (!(values[i] > 0 && slack < 0.05 && std::fabs(square - std::round(square)) <= slack))
      return false;
    rises &= i == 0 || values[i] >= values[i - 1];
    falls &= i == 0 || values[i] <= values[i - 1];
  }
  return rises || falls;
}

/// The form of values of one or two dimensions.
static StringRef formOf(ArrayRef<int64_t> shape, const TensorValues &values) {
  SmallVector<int64_t> sizes;
  for (int64_t size : shape)
    if (size > 1)
      sizes.push_back(size);
  if (sizes.size() == 1)
    return isArithmetic(values)       ? "an arithmetic sequence"
           : isGeometric(values)      ? "a geometric sequence"
           : isWindow(values)         ? "a window"
           : areRootsOfWholes(values) ? "whole numbers or their roots"
                                      : "";
  if (sizes.size() != 2)
    return "";
  Matrix plain{values, sizes[0], sizes[1], sizes[1], 1}, turned{values, sizes[1], sizes[0], 1, sizes[1]};
  if (areWaves(plain, false) || areWaves(turned, false) || areWaves(plain, true) || areWaves(turned, true))
    return "a table of waves";
  if (areTriangles(plain) || areTriangles(turned))
    return "a bank of filters";
  return areChoices(plain) ? "zeros and ones" : "";
}

StringRef closedForm(ArrayRef<int64_t> shape, const TensorValues &values, bool isKernel) {
  if (values.size() < 3)
    return "";
  ArrayRef<int64_t> window = isKernel && shape.size() > 2 ? shape.drop_front(2) : ArrayRef<int64_t>();
  if (values.areEqual()) {
    // Zeros and ones are initializations; a mean over the window is none.
    int64_t size = 1;
    for (int64_t length : window)
      size *= length;
    return size > 1 && std::fabs(values[0] * size - 1) <= values.precision() ? "a blur" : "";
  }
  StringRef form = formOf(shape, values);
  return form.empty() && !window.empty() && areFixed(window, values) ? "mirrored filters or waves" : form;
}

} // namespace dsopt::onnx_import
