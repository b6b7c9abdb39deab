//===- GraphFoldWindows.cpp - folders of windows and scatters -------------===//

#include "GraphFold.h"

#include <cstring>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

/// Counts the indices of `shape` in row-major order.
template <typename F> static void forEachIndex(ArrayRef<int64_t> shape, F f) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t at = 0, count = ShapedType::getNumElements(shape); at < count; ++at) {
    f(index, at);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

OpFoldResult WindowsOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> x = Elements::raw(adaptor.getInput());
  auto type = cast<RankedTensorType>(getType());
  std::optional<Elements> value =
      Elements::raw(DenseElementsAttr::get(RankedTensorType::get({}, type.getElementType()), getValue()));
  if (!x || !value || !fits(type))
    return {};
  SmallVector<int64_t> strides = x->strides();
  size_t axis = getAxis(), count = getKernel().size();
  Buffer out(type.getNumElements() * x->width);
  forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index, int64_t at) {
    int64_t from = 0;
    bool inside = true;
    for (size_t dim = 0; dim < strides.size(); ++dim) {
      int64_t place = index[dim < axis ? dim : dim + count];
      if (dim >= axis && dim < axis + count) {
        size_t i = dim - axis;
        place = index[dim] * getStrides()[i] + index[dim + count] * getDilations()[i] - getLows()[i];
        inside = inside && place >= 0 && place < x->shape()[dim];
      }
      from += place * strides[dim];
    }
    std::memcpy(out.data() + at * x->width, inside ? x->data + from * x->width : value->data, x->width);
  });
  return fromRaw(type, out);
}

/// Adds every element of the windows at its place; the kernel's own dimensions come last, if kept.
template <typename Op> static OpFoldResult foldAdjoint(Op op, Attribute input, bool kernelLast) {
  std::optional<Elements> x = Elements::numbers(input);
  auto type = cast<RankedTensorType>(op.getType());
  if (!x || !fits({type, x->type}))
    return {};
  SmallVector<int64_t> own = x->strides(), strides = rowMajor(type.getShape());
  size_t axis = op.getAxis(), count = op.getStrides().size(), rank = own.size();
  return dispatchNumber(type.getElementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    std::vector<double> sums(type.getNumElements());
    forEachIndex(x->shape(), [&](ArrayRef<int64_t> index, int64_t at) {
      int64_t to = 0;
      for (size_t dim = 0; dim < rank; ++dim) {
        if (dim < axis) {
          to += index[dim] * strides[dim];
        } else if (dim < axis + count) {
          size_t i = dim - axis;
          int64_t place =
              index[dim] * op.getStrides()[i] + index[dim + count] * op.getDilations()[i] - op.getLows()[i];
          if (place < 0 || place >= type.getDimSize(dim))
            return;
          to += place * strides[dim];
        } else if (dim < axis + 2 * count) {
          if (kernelLast)
            to += index[dim] * strides[rank + dim - axis - 2 * count];
        } else {
          to += index[dim] * strides[dim - count];
        }
      }
      sums[to] += (double)x->as<T>()[x->splat ? 0 : at];
    });
    Buffer out(sums.size() * sizeof(T));
    for (size_t i = 0; i < sums.size(); ++i)
      reinterpret_cast<T *>(out.data())[i] = (T)sums[i];
    return fromNumbers(type, out);
  });
}
OpFoldResult WindowsSumOp::fold(FoldAdaptor adaptor) { return foldAdjoint(*this, adaptor.getInput(), false); }
OpFoldResult WindowsPlaceOp::fold(FoldAdaptor adaptor) {
  return foldAdjoint(*this, adaptor.getInput(), true);
}

OpFoldResult ScatterOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> data = Elements::numbers(adaptor.getData()),
                          updates = Elements::numbers(adaptor.getUpdates());
  std::optional<SmallVector<int64_t>> indices = integers(adaptor.getIndices());
  auto type = cast<RankedTensorType>(getType());
  if (!data || !updates || !indices || !fits(type))
    return {};
  int64_t rows = type.getDimSize(0), width = type.getDimSize(1);
  ScatterMode mode = getMode();
  return dispatchAny(type.getElementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(type.getNumElements() * sizeof(T));
    T *to = reinterpret_cast<T *>(out.data());
    for (int64_t i = 0; i < rows * width; ++i)
      to[i] = data->as<T>()[data->splat ? 0 : i];
    for (auto [m, given] : llvm::enumerate(*indices)) {
      int64_t row = given < 0 ? given + rows : given;
      if (row < 0 || row >= rows)
        continue;
      for (int64_t i = 0; i < width; ++i) {
        T x = to[row * width + i], y = updates->as<T>()[updates->splat ? 0 : m * width + i];
        to[row * width + i] = mode == ScatterMode::Set   ? y
                              : mode == ScatterMode::Add ? (T)(x + y)
                              : mode == ScatterMode::Mul ? (T)(x * y)
                              : mode == ScatterMode::Min ? (x != x || x < y ? x : y)
                                                         : (x != x || x > y ? x : y);
      }
    }
    return fromNumbers(type, out);
  });
}
