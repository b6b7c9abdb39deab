//===- GraphFoldReductions.cpp - folders of sums, products, scatters ------===//
//
// Sums of floats are taken in double and rounded once; running sums in the
// element type, since every partial sum is a result.
//
//===----------------------------------------------------------------------===//

#include "GraphFold.h"

#include <limits>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

/// What a value of type T is summed in: integers wrap around.
template <typename T> using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

/// Adds (or otherwise combines) the elements over `axes`: `combine(accumulator,
/// x)` for each, from `start`, then `finish(accumulator)`.
template <typename Accumulator, typename T, typename Combine, typename Finish>
static Attribute reduceAs(RankedTensorType type, const Elements &x, ArrayRef<int64_t> axes, Accumulator start,
                          Combine combine, Finish finish) {
  SmallVector<int64_t> kept(x.shape());
  for (int64_t axis : axes)
    kept[axis] = 1;
  SmallVector<int64_t> strides = rowMajor(kept);
  for (int64_t axis : axes)
    strides[axis] = 0;
  std::vector<Accumulator> sums(type.getNumElements(), start);
  const T *data = x.as<T>();
  forEachRow<2>(x.shape(), {x.strides(), strides}, [&](auto &offset, int64_t count, auto &step) {
    for (int64_t i = 0; i < count; ++i)
      combine(sums[offset[1] + i * step[1]], data[offset[0] + i * step[0]]);
  });
  Buffer out(sums.size() * sizeof(T));
  for (size_t i = 0; i < sums.size(); ++i)
    reinterpret_cast<T *>(out.data())[i] = finish(sums[i]);
  return fromNumbers(type, out);
}

template <typename Op> static OpFoldResult foldSum(Op op, Attribute input, bool mean) {
  if (op.getAxes().empty() && op.getInput().getType() == op.getType())
    return op.getInput();
  std::optional<Elements> x = Elements::numbers(input);
  if (!x || !fits(x->type))
    return {};
  auto type = cast<RankedTensorType>(op.getType());
  int64_t count = 1;
  for (int64_t axis : op.getAxes())
    count *= x->shape()[axis];
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    if (mean && count == 0 && std::is_integral_v<T>)
      return {};
    return reduceAs<Sum<T>, T>(
        type, *x, op.getAxes(), Sum<T>(0), [](Sum<T> &sum, T value) { sum += (Sum<T>)value; },
        [&](Sum<T> sum) -> T {
          if constexpr (std::is_floating_point_v<T>)
            return (T)(mean ? sum / (double)count : sum);
          else if constexpr (std::is_signed_v<T>)
            return (T)(mean ? (int64_t)sum / count : (int64_t)sum);
          else
            return (T)(mean ? sum / (uint64_t)count : sum);
        });
  });
}

template <typename Op> static OpFoldResult foldExtreme(Op op, Attribute input, bool maximum) {
  if (op.getAxes().empty() && op.getInput().getType() == op.getType())
    return op.getInput();
  std::optional<Elements> x = Elements::numbers(input);
  if (!x || !fits(x->type) || x->type.getNumElements() == 0)
    return {};
  auto type = cast<RankedTensorType>(op.getType());
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    using Limits = std::numeric_limits<T>;
    T start = Limits::has_infinity ? (maximum ? -Limits::infinity() : Limits::infinity())
                                   : (maximum ? Limits::lowest() : Limits::max());
    // A NaN replaces everything and nothing replaces it.
    auto combine = [&](T &best, T value) {
      if (value != value || (maximum ? value > best : value < best))
        best = value;
    };
    return reduceAs<T, T>(type, *x, op.getAxes(), start, combine, [](T best) { return best; });
  });
}

OpFoldResult ReduceSumOp::fold(FoldAdaptor adaptor) { return foldSum(*this, adaptor.getInput(), false); }
OpFoldResult ReduceMeanOp::fold(FoldAdaptor adaptor) { return foldSum(*this, adaptor.getInput(), true); }
OpFoldResult ReduceMaxOp::fold(FoldAdaptor adaptor) { return foldExtreme(*this, adaptor.getInput(), true); }
OpFoldResult ReduceMinOp::fold(FoldAdaptor adaptor) { return foldExtreme(*this, adaptor.getInput(), false); }

OpFoldResult ReduceProdOp::fold(FoldAdaptor adaptor) {
  if (getAxes().empty() && getInput().getType() == getType())
    return getInput();
  std::optional<Elements> x = Elements::numbers(adaptor.getInput());
  if (!x || !fits(x->type))
    return {};
  auto type = cast<RankedTensorType>(getType());
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    return reduceAs<Sum<T>, T>(
        type, *x, getAxes(), Sum<T>(1), [](Sum<T> &product, T value) { product *= (Sum<T>)value; },
        [](Sum<T> product) { return (T)product; });
  });
}

OpFoldResult CumSumOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> x = Elements::numbers(adaptor.getInput());
  auto type = cast<RankedTensorType>(getType());
  if (!x || !fits(type))
    return {};
  int64_t axis = getAxis(), size = type.getDimSize(axis);
  int64_t inner = ShapedType::getNumElements(type.getShape().drop_front(axis + 1));
  int64_t outer = ShapedType::getNumElements(type.getShape().take_front(axis));
  bool exclusive = getExclusive(), reverse = getReverse();
  return dispatchNumber(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    // Integers are added without a sign, where wrapping around is defined.
    using A = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
    Buffer out(type.getNumElements() * sizeof(T));
    const T *from = x->as<T>();
    T *to = reinterpret_cast<T *>(out.data());
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        A sum = 0;
        for (int64_t k = 0; k < size; ++k) {
          int64_t at = (o * size + (reverse ? size - 1 - k : k)) * inner + i;
          A value = (A)from[x->splat ? 0 : at];
          A next = k == 0 ? value : (A)(sum + value);
          to[at] = (T)(exclusive ? sum : next);
          sum = next;
        }
      }
    return fromNumbers(type, out);
  });
}

/// Products with more multiplications than this are left to run time.
static constexpr int64_t kMaxMultiplications = 1 << 22;

OpFoldResult MatMulOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> a = Elements::numbers(adaptor.getLhs()), b = Elements::numbers(adaptor.getRhs());
  if (!a || !b)
    return {};
  auto type = cast<RankedTensorType>(getType());
  int64_t rank = type.getRank(), depth = a->shape()[rank - (getTransposeA() ? 2 : 1)];
  if (!fits(type) || type.getNumElements() * depth > kMaxMultiplications)
    return {};
  SmallVector<int64_t> sa = a->strides(), sb = b->strides();
  if (getTransposeA())
    std::swap(sa[rank - 2], sa[rank - 1]);
  if (getTransposeB())
    std::swap(sb[rank - 2], sb[rank - 1]);
  int64_t alongA = sa.back(), alongB = sb[rank - 2];
  sa.back() = sb[rank - 2] = 0;
  return dispatchNumber(type.getElementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(type.getNumElements() * sizeof(T));
    forEachRow<3>(
        type.getShape(), {sa, sb, rowMajor(type.getShape())}, [&](auto &offset, int64_t count, auto &step) {
          for (int64_t i = 0; i < count; ++i) {
            const T *x = a->as<T>() + offset[0] + i * step[0], *y = b->as<T>() + offset[1] + i * step[1];
            Sum<T> sum = 0;
            for (int64_t k = 0; k < depth; ++k)
              sum += (Sum<T>)x[k * alongA] * (Sum<T>)y[k * alongB];
            reinterpret_cast<T *>(out.data())[offset[2] + i * step[2]] = (T)sum;
          }
        });
    return fromNumbers(type, out);
  });
}

OpFoldResult GatherGradOp::fold(FoldAdaptor adaptor) {
  std::optional<Elements> x = Elements::numbers(adaptor.getGrad());
  auto type = cast<RankedTensorType>(getType());
  if (!x || !fits({type, x->type}))
    return {};
  int64_t axis = getAxis(), size = type.getDimSize(axis);
  int64_t inner = ShapedType::getNumElements(type.getShape().drop_front(axis + 1));
  int64_t outer = ShapedType::getNumElements(type.getShape().take_front(axis));
  std::optional<SmallVector<int64_t>> indices = integers(adaptor.getIndices());
  if (!indices)
    return {};
  for (int64_t &index : *indices)
    if ((index += index < 0 ? size : 0) < 0 || index >= size)
      return {};
  return dispatchNumber(type.getElementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    Buffer out(type.getNumElements() * sizeof(T));
    const T *from = x->as<T>();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t index : *indices) {
        T *to = reinterpret_cast<T *>(out.data()) + (o * size + index) * inner;
        for (int64_t i = 0; i < inner; ++i)
          to[i] = (T)(to[i] + *from), from += x->splat ? 0 : 1;
      }
    return fromNumbers(type, out);
  });
}
