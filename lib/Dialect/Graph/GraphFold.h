//===- GraphFold.h - the elements of constants, for the folders -*- C++ -*-===//
//
// The folders are a reference interpreter. They work on raw buffers: an integer
// tensor of a million elements folds in milliseconds. A bool takes one byte
// here, and f16 and bf16 are computed in float and rounded once.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_DIALECT_GRAPH_GRAPHFOLD_H
#define DSOPT_LIB_DIALECT_GRAPH_GRAPHFOLD_H

#include "GraphSupport.h"

#include <array>
#include <optional>
#include <vector>

namespace dsopt::graph::fold {
/// Larger results (unless every element is the same) are left to run time.
inline constexpr int64_t kMaxElements = 16 << 20;

/// Bytes of a result, in row-major order.
using Buffer = std::vector<char>;

/// The elements of a constant.
class Elements {
public:
  /// As stored; none if `constant` is no constant whose bytes can be read.
  static std::optional<Elements> raw(mlir::Attribute constant);
  /// With f16 and bf16 widened to float.
  static std::optional<Elements> numbers(mlir::Attribute constant);

  Elements(Elements &&) = default;
  Elements(const Elements &) = delete;

  template <typename T> const T *as() const { return reinterpret_cast<const T *>(data); }
  mlir::Type elementType() const { return type.getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  /// Distances between neighbours in each dimension, 0 throughout for a splat.
  llvm::SmallVector<int64_t> strides() const;
  /// The same, for reading the constant broadcast to `shape`.
  llvm::SmallVector<int64_t> stridesIn(llvm::ArrayRef<int64_t> shape) const;

  mlir::RankedTensorType type;
  /// Whether `data` holds one element that stands for all.
  bool splat = false;
  /// Bytes of one element of `data`.
  int64_t width = 0;
  const char *data = nullptr;

private:
  Elements() = default;
  Buffer owned;
};

/// Integers of any width, as int64.
std::optional<llvm::SmallVector<int64_t>> integers(mlir::Attribute constant);

/// A constant of `type` with these elements as stored (bools: a byte each), or
/// with the only element given. Equal elements become a splat.
mlir::Attribute fromRaw(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
/// The same where f16 and bf16 are given as floats.
mlir::Attribute fromNumbers(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);

/// Whether the constant is `value` everywhere.
bool isSplatOf(mlir::Attribute constant, double value);

/// Row-major distances between neighbours.
llvm::SmallVector<int64_t> rowMajor(llvm::ArrayRef<int64_t> shape);

/// Whether none of the types has more elements than are folded.
bool fits(llvm::ArrayRef<mlir::Type> types);

/// Calls `f` with a value of the C++ type that stands for `element` and returns
/// what it returns; a null attribute for other types.
template <typename F> mlir::Attribute dispatchNumber(mlir::Type element, F f) {
  if (element.isF32() || element.isF16() || element.isBF16())
    return f(float());
  if (element.isF64())
    return f(double());
  auto integer = llvm::dyn_cast<mlir::IntegerType>(element);
  if (!integer)
    return {};
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 8:
    return isUnsigned ? f(uint8_t()) : f(int8_t());
  case 16:
    return isUnsigned ? f(uint16_t()) : f(int16_t());
  case 32:
    return isUnsigned ? f(uint32_t()) : f(int32_t());
  case 64:
    return isUnsigned ? f(uint64_t()) : f(int64_t());
  }
  return {};
}
template <typename F> mlir::Attribute dispatchAny(mlir::Type element, F f) {
  return element.isInteger(1) ? f(bool()) : dispatchNumber(element, f);
}

/// Walks `shape` over N buffers with their strides, in row-major order, and calls
/// `f(offsets, count, steps)` for runs along the innermost dimension.
template <size_t N, typename F>
void forEachRow(llvm::ArrayRef<int64_t> shape, const std::array<llvm::ArrayRef<int64_t>, N> &strides, F f) {
  struct Dim {
    int64_t size;
    std::array<int64_t, N> step;
  };
  llvm::SmallVector<Dim> dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0)
      return;
    if (shape[i] == 1)
      continue;
    Dim dim{shape[i], {}};
    bool merges = !dims.empty();
    for (size_t k = 0; k < N; ++k) {
      dim.step[k] = strides[k][i];
      merges = merges && dims.back().step[k] == dim.step[k] * dim.size;
    }
    if (merges)
      dim.size *= dims.pop_back_val().size;
    dims.push_back(dim);
  }
  if (dims.empty())
    dims.push_back({1, {}});
  Dim inner = dims.pop_back_val();
  llvm::SmallVector<int64_t> index(dims.size());
  std::array<int64_t, N> offsets{};
  while (true) {
    f(offsets, inner.size, inner.step);
    size_t i = dims.size();
    for (; i > 0; --i) {
      Dim &dim = dims[i - 1];
      for (size_t k = 0; k < N; ++k)
        offsets[k] += dim.step[k];
      if (++index[i - 1] < dim.size)
        break;
      for (size_t k = 0; k < N; ++k)
        offsets[k] -= dim.step[k] * dim.size;
      index[i - 1] = 0;
    }
    if (i == 0)
      return;
  }
}
} // namespace dsopt::graph::fold

#endif // DSOPT_LIB_DIALECT_GRAPH_GRAPHFOLD_H
