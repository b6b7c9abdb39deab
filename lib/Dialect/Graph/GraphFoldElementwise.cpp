//===- GraphFoldElementwise.cpp - folders of elementwise operations -------===//
//
// + - x / and sqrt are computed in the element type; other functions in double
// and rounded once, which gives equal bits on every machine. Of the identities
// on floating point only exact ones are here.
//
//===----------------------------------------------------------------------===//

#include "GraphFold.h"
#include "NarrowFloats.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::fold;

/// `f` of each element; `f` may return another type than it takes.
template <typename F> static Attribute foldUnary(Type resultType, Attribute input, F f) {
  std::optional<Elements> x = Elements::numbers(input);
  if (!x || (!x->splat && !fits(resultType)))
    return {};
  return dispatchAny(x->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    using R = decltype(f(tag));
    int64_t count = x->splat ? 1 : x->type.getNumElements();
    Buffer out(count * sizeof(R));
    for (int64_t i = 0; i < count; ++i)
      reinterpret_cast<R *>(out.data())[i] = f(x->as<T>()[i]);
    return fromNumbers(cast<RankedTensorType>(resultType), out);
  });
}

/// `f` of each pair of elements that broadcasting makes.
template <typename F> static Attribute foldBinary(Type resultType, Attribute lhs, Attribute rhs, F f) {
  std::optional<Elements> a = Elements::numbers(lhs), b = Elements::numbers(rhs);
  if (!a || !b)
    return {};
  auto type = cast<RankedTensorType>(resultType);
  bool splat = a->splat && b->splat;
  if (!splat && !fits(type))
    return {};
  return dispatchAny(a->elementType(), [&](auto tag) -> Attribute {
    using T = decltype(tag);
    using R = decltype(f(tag, tag));
    SmallVector<int64_t> shape(type.getShape());
    if (splat)
      shape.assign(shape.size(), 1);
    SmallVector<int64_t> sa = a->stridesIn(shape), sb = b->stridesIn(shape), so = rowMajor(shape);
    Buffer out(ShapedType::getNumElements(shape) * sizeof(R));
    const T *pa = a->as<T>(), *pb = b->as<T>();
    R *po = reinterpret_cast<R *>(out.data());
    forEachRow<3>(shape, {sa, sb, so}, [&](auto &offset, int64_t count, auto &step) {
      const T *x = pa + offset[0], *y = pb + offset[1];
      R *z = po + offset[2];
      for (int64_t i = 0; i < count; ++i)
        z[i * step[2]] = f(x[i * step[0]], y[i * step[1]]);
    });
    return fromNumbers(type, out);
  });
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// A function of double, of which `x` is rounded once. Integers and bools, which
/// the verifier keeps out, are left alone.
template <typename T, typename F> static T inDouble(T x, F f) {
  if constexpr (std::is_floating_point_v<T>)
    return (T)f((double)x);
  else
    return x;
}

#define FOLD_UNARY(Op, expression)                                                                           \
  OpFoldResult Op::fold(FoldAdaptor adaptor) {                                                               \
    return foldUnary(getType(), adaptor.getInput(), [](auto x) {                                             \
      using T = decltype(x);                                                                                 \
      return (T)(expression);                                                                                \
    });                                                                                                      \
  }
#define FOLD_DOUBLE(Op, expression) FOLD_UNARY(Op, inDouble(x, [](double y) { return expression; }))

FOLD_DOUBLE(ExpOp, std::exp(y))
FOLD_DOUBLE(LogOp, std::log(y))
FOLD_DOUBLE(AcosOp, std::acos(y))
FOLD_DOUBLE(AcoshOp, std::acosh(y))
FOLD_DOUBLE(AsinOp, std::asin(y))
FOLD_DOUBLE(AsinhOp, std::asinh(y))
FOLD_DOUBLE(AtanOp, std::atan(y))
FOLD_DOUBLE(AtanhOp, std::atanh(y))
FOLD_DOUBLE(CoshOp, std::cosh(y))
FOLD_DOUBLE(SinhOp, std::sinh(y))
FOLD_DOUBLE(TanhOp, std::tanh(y))
FOLD_DOUBLE(ErfOp, std::erf(y))
FOLD_DOUBLE(SigmoidOp, 1 / (1 + std::exp(-y)))
FOLD_DOUBLE(SqrtOp, std::sqrt(y))
FOLD_DOUBLE(ReciprocalOp, 1 / y)
FOLD_DOUBLE(FloorOp, std::floor(y))
FOLD_DOUBLE(CeilOp, std::ceil(y))
FOLD_DOUBLE(RoundOp, std::nearbyint(y))
FOLD_DOUBLE(SinOp, std::sin(y))
FOLD_DOUBLE(CosOp, std::cos(y))
// A NaN fails the comparison and stays.
FOLD_UNARY(ReluOp, x < T(0) ? T(0) : x)
FOLD_UNARY(SignOp, x > T(0) ? T(1) : x < T(0) ? T(-1) : x)

template <typename T> static T magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else
    return x < T(0) ? T(0) - x : x;
}
FOLD_UNARY(AbsOp, magnitude(x))

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>())
    return inner.getInput();
  return foldUnary(getType(), adaptor.getInput(), [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return (T)(uint64_t(0) - (uint64_t)x);
  });
}
OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getInput().getDefiningOp<NotOp>())
    return inner.getInput();
  return foldUnary(getType(), adaptor.getInput(), [](auto x) { return !x; });
}
OpFoldResult IsNaNOp::fold(FoldAdaptor adaptor) {
  return foldUnary(getType(), adaptor.getInput(), [](auto x) { return x != x; });
}

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Integer arithmetic wraps around, as in numpy.
#define WRAPPING(operator_)                                                                                  \
  [](auto x, auto y) {                                                                                       \
    using T = decltype(x);                                                                                   \
    if constexpr (std::is_floating_point_v<T>)                                                               \
      return x operator_ y;                                                                                  \
    else                                                                                                     \
      return (T)((uint64_t)x operator_(uint64_t) y);                                                         \
  }

/// `x` if it has the result's type already.
static OpFoldResult keep(Value x, Type resultType) { return x.getType() == resultType ? x : OpFoldResult(); }

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // Not exact on floating point: -0 + 0 is 0.
  if (isa<IntegerType>(getElementTypeOrSelf(getType()))) {
    if (isSplatOf(adaptor.getRhs(), 0) && keep(getLhs(), getType()))
      return getLhs();
    if (isSplatOf(adaptor.getLhs(), 0) && keep(getRhs(), getType()))
      return getRhs();
  }
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(), WRAPPING(+));
}
OpFoldResult TreeAddOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (isa<IntegerType>(getElementTypeOrSelf(getType())) && isSplatOf(adaptor.getRhs(), 0) &&
      keep(getLhs(), getType()))
    return getLhs();
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(), WRAPPING(-));
}
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1) && keep(getLhs(), getType()))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 1) && keep(getRhs(), getType()))
    return getRhs();
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(), WRAPPING(*));
}

/// Whether some integer of a constant is 0.
static bool hasZero(Attribute constant) {
  std::optional<SmallVector<int64_t>> values = integers(constant);
  return !values || llvm::is_contained(*values, 0);
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1) && keep(getLhs(), getType()))
    return getLhs();
  if (!adaptor.getLhs() || !adaptor.getRhs())
    return {};
  if (isa<IntegerType>(getElementTypeOrSelf(getType())) && hasZero(adaptor.getRhs()))
    return {};
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(), [](auto x, auto y) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return x / y;
    else if constexpr (std::is_signed_v<T>)
      return y == T(-1) ? (T)(uint64_t(0) - (uint64_t)x) : (T)(x / y);
    else
      return (T)(x / y);
  });
}

OpFoldResult RemOp::fold(FoldAdaptor adaptor) {
  if (!adaptor.getLhs() || !adaptor.getRhs())
    return {};
  if (isa<IntegerType>(getElementTypeOrSelf(getType())) && hasZero(adaptor.getRhs()))
    return {};
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(), [](auto x, auto y) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return (T)std::fmod((double)x, (double)y);
    else if constexpr (std::is_signed_v<T>)
      return y == T(-1) ? T(0) : (T)(x % y);
    else
      return (T)(x % y);
  });
}

template <typename T> static T power(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return (T)std::pow((double)x, (double)y);
  } else {
    if (y < T(0)) // 1 / x^-y, truncated
      return x == T(1) ? T(1) : x == T(-1) ? (y % 2 ? T(-1) : T(1)) : T(0);
    uint64_t result = 1, base = x;
    for (uint64_t exponent = y; exponent; exponent >>= 1, base *= base)
      if (exponent & 1)
        result *= base;
    return (T)result;
  }
}

OpFoldResult PowOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1) && keep(getLhs(), getType()))
    return getLhs();
  return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(),
                    [](auto x, auto y) { return power(x, y); });
}

#define FOLD_BINARY(Op, expression)                                                                          \
  OpFoldResult Op::fold(FoldAdaptor adaptor) {                                                               \
    return foldBinary(getType(), adaptor.getLhs(), adaptor.getRhs(),                                         \
                      [](auto x, auto y) { return expression; });                                            \
  }
FOLD_BINARY(MinOp, x != x || x < y ? x : y)
FOLD_BINARY(MaxOp, x != x || x > y ? x : y)
FOLD_BINARY(EqualOp, x == y)
FOLD_BINARY(LessOp, x < y)
FOLD_BINARY(LessEqualOp, x <= y)
FOLD_BINARY(GreaterOp, x > y)
FOLD_BINARY(GreaterEqualOp, x >= y)

/// Folds `op` where one operand is `neutral` (gives the other) or its opposite
/// (gives that everywhere), or where both are constant; of integers where both are.
template <typename Op, typename F>
static OpFoldResult foldLogical(Op op, typename Op::FoldAdaptor adaptor, bool neutral, F f) {
  if (!getElementTypeOrSelf(op.getType()).isInteger(1))
    return foldBinary(op.getType(), adaptor.getLhs(), adaptor.getRhs(), f);
  std::pair<Attribute, Value> sides[] = {{adaptor.getLhs(), op.getRhs()}, {adaptor.getRhs(), op.getLhs()}};
  for (auto [constant, other] : sides) {
    if (isSplatOf(constant, neutral) && keep(other, op.getType()))
      return other;
    if (isSplatOf(constant, !neutral))
      return DenseElementsAttr::get(cast<ShapedType>(op.getType()), !neutral);
  }
  return foldBinary(op.getType(), adaptor.getLhs(), adaptor.getRhs(), f);
}
/// Floats, which the verifier keeps out, are left alone.
#define BITWISE(operator_)                                                                                   \
  [](auto x, auto y) {                                                                                       \
    using T = decltype(x);                                                                                   \
    if constexpr (std::is_floating_point_v<T>)                                                               \
      return x;                                                                                              \
    else                                                                                                     \
      return (T)(x operator_ y);                                                                             \
  }
OpFoldResult AndOp::fold(FoldAdaptor adaptor) { return foldLogical(*this, adaptor, true, BITWISE(&)); }
OpFoldResult OrOp::fold(FoldAdaptor adaptor) { return foldLogical(*this, adaptor, false, BITWISE(|)); }

//===----------------------------------------------------------------------===//
// Selection and conversion
//===----------------------------------------------------------------------===//

template <typename T>
static Attribute select(RankedTensorType type, const Elements &c, const Elements &a, const Elements &b) {
  SmallVector<int64_t> shape(type.getShape());
  if (c.splat && a.splat && b.splat)
    shape.assign(shape.size(), 1);
  else if (!fits(type))
    return {};
  SmallVector<int64_t> sc = c.stridesIn(shape), sa = a.stridesIn(shape), sb = b.stridesIn(shape),
                       so = rowMajor(shape);
  Buffer out(ShapedType::getNumElements(shape) * sizeof(T));
  T *po = reinterpret_cast<T *>(out.data());
  forEachRow<4>(shape, {sc, sa, sb, so}, [&](auto &offset, int64_t count, auto &step) {
    const bool *holds = c.as<bool>() + offset[0];
    const T *x = a.as<T>() + offset[1], *y = b.as<T>() + offset[2];
    for (int64_t i = 0; i < count; ++i)
      po[offset[3] + i * step[3]] = holds[i * step[0]] ? x[i * step[1]] : y[i * step[2]];
  });
  return fromRaw(type, out);
}

OpFoldResult WhereOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getCondition(), 1) && keep(getLhs(), getType()))
    return getLhs();
  if (isSplatOf(adaptor.getCondition(), 0) && keep(getRhs(), getType()))
    return getRhs();
  std::optional<Elements> c = Elements::raw(adaptor.getCondition()), a = Elements::raw(adaptor.getLhs()),
                          b = Elements::raw(adaptor.getRhs());
  if (!c || !a || !b)
    return {};
  auto type = cast<RankedTensorType>(getType());
  switch (a->width) {
  case 1:
    return select<uint8_t>(type, *c, *a, *b);
  case 2:
    return select<uint16_t>(type, *c, *a, *b);
  case 4:
    return select<uint32_t>(type, *c, *a, *b);
  case 8:
    return select<uint64_t>(type, *c, *a, *b);
  }
  return {};
}

/// One element converted; floats beyond an integer's range as x86 and numpy do.
template <typename To, typename From> static To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Wide = std::conditional_t<(sizeof(To) < 4) || std::is_same_v<To, int32_t>, int32_t, int64_t>;
    double least = (double)std::numeric_limits<Wide>::min();
    bool inside = (double)x >= least && (double)x < -least;
    if constexpr (std::is_same_v<To, uint64_t>)
      if (!inside && (double)x >= -least && (double)x < -2 * least)
        return (uint64_t)x;
    return (To)(inside ? (Wide)x : std::numeric_limits<Wide>::min());
  } else {
    return (To)x;
  }
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto type = cast<RankedTensorType>(getType());
  Attribute result;
  dispatchAny(type.getElementType(), [&](auto tag) -> Attribute {
    using To = decltype(tag);
    result = foldUnary(type, adaptor.getInput(), [](auto x) { return convert<To>(x); });
    return result;
  });
  return result;
}

OpFoldResult RoundToOp::fold(FoldAdaptor adaptor) {
  // What is of the type already stays.
  if (auto inner = getInput().getDefiningOp<RoundToOp>(); inner && inner.getTo() == getTo())
    return getInput();
  if (auto cast = getInput().getDefiningOp<CastOp>();
      cast && getElementTypeOrSelf(cast.getInput().getType()) == getTo())
    return getInput();
  NarrowFormat format(llvm::cast<FloatType>(getTo()));
  return foldUnary(getType(), adaptor.getInput(),
                   [&](auto x) { return inDouble(x, [&](double y) { return rounded(format, *this, y); }); });
}
