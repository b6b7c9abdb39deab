//===- Floats.cpp - arithmetic on floats ----------------------------------===//
//
// What is rounded to the nearest, without further words, has a handler of its own that
// the compiler makes vectors of; everything else goes lane by lane through one.
// Approximations are as exact as the host's library: results that depend on the
// difference are not a program's to rely on.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Lanes.h"
#include "Numbers.h"

namespace softdevice {

namespace {
enum class Math : uint8_t {
  Add,
  Sub,
  Mul,
  Fma,
  Div,
  Rcp,
  Sqrt,
  Rsqrt,
  Neg,
  Abs,
  Min,
  Max,
  MinNaN,
  MaxNaN,
  Ex2,
  Lg2,
  Tanh,
  Sin,
  Cos,
  CopySign
};

struct NamedFunction {
  const char *name;
  Math function;
  int operands;
};

struct Modes {
  static constexpr uint8_t kRound = 3, kFlush = 4, kSaturate = 8, kRelu = 16;
};
} // namespace

static constexpr NamedFunction kFunctions[] = {
    {"add", Math::Add, 2},           {"sub", Math::Sub, 2},   {"mul", Math::Mul, 2},
    {"fma", Math::Fma, 3},           {"mad", Math::Fma, 3},   {"div", Math::Div, 2},
    {"rcp", Math::Rcp, 1},           {"sqrt", Math::Sqrt, 1}, {"rsqrt", Math::Rsqrt, 1},
    {"neg", Math::Neg, 1},           {"abs", Math::Abs, 1},   {"min", Math::Min, 2},
    {"max", Math::Max, 2},           {"ex2", Math::Ex2, 1},   {"lg2", Math::Lg2, 1},
    {"tanh", Math::Tanh, 1},         {"sin", Math::Sin, 1},   {"cos", Math::Cos, 1},
    {"copysign", Math::CopySign, 2},
};

template <class T> static T apply(Math function, T a, T b, T c) {
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  switch (function) {
  case Math::Add:
    return a + b;
  case Math::Sub:
    return a - b;
  case Math::Mul:
    return a * b;
  case Math::Fma:
    return std::fma(a, b, c);
  case Math::Div:
    return a / b;
  case Math::Rcp:
    return T(1) / a;
  case Math::Sqrt:
    return std::sqrt(a);
  case Math::Rsqrt:
    return T(1) / std::sqrt(a);
  case Math::Neg:
    return -a;
  case Math::Abs:
    return std::fabs(a);
  case Math::Min:
    return lesser(a, b);
  case Math::Max:
    return greater(a, b);
  case Math::MinNaN:
    return std::isnan(a) || std::isnan(b) ? kNaN : lesser(a, b);
  case Math::MaxNaN:
    return std::isnan(a) || std::isnan(b) ? kNaN : greater(a, b);
  case Math::Ex2:
    return std::exp2(a);
  case Math::Lg2:
    return std::log2(a);
  case Math::Tanh:
    return std::tanh(a);
  case Math::Sin:
    return std::sin(a);
  case Math::Cos:
    return std::cos(a);
  case Math::CopySign:
    // The sign is the first operand's.
    return std::copysign(b, a);
  }
  return kNaN;
}

template <class T, Math f> static T apply1(T a) { return apply<T>(f, a, a, a); }
template <class T, Math f> static T apply2(T a, T b) { return apply<T>(f, a, b, b); }
template <class T, Math f> static T apply3(T a, T b, T c) { return apply<T>(f, a, b, c); }

/// Under a rounding that is not the usual one; the compiler must not move it.
template <class T> static T applyRounded(Math function, Round round, T a, T b, T c) {
  static constexpr int kRounds[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  std::fesetround(kRounds[static_cast<int>(round)]);
  volatile T x = a, y = b, z = c;
  volatile T made = apply<T>(function, x, y, z);
  std::fesetround(FE_TONEAREST);
  return made;
}

template <class T> static T limited(T made, uint8_t mode) {
  if (mode & Modes::kSaturate)
    made = saturate(made);
  if (mode & Modes::kRelu)
    made = std::isnan(made) ? made : greater(made, T(0));
  return made;
}

/// In fp64 there is nothing to flush.
static double flush(double value) { return value; }

template <class T> static T applyModes(Math function, uint8_t mode, T a, T b, T c) {
  if (mode & Modes::kFlush)
    a = flush(a), b = flush(b), c = flush(c);
  Round round = static_cast<Round>(mode & Modes::kRound);
  T made = round == Round::Nearest ? apply<T>(function, a, b, c) : applyRounded<T>(function, round, a, b, c);
  if (mode & Modes::kFlush)
    made = flush(made);
  return limited(made, mode);
}

template <class T> static void general(Warp &warp, const Op &op) {
  Math function = static_cast<Math>(op.number);
  eachLane(warp.lanes(op), [&](int lane) {
    warp.row<T>(op.to)[lane] = applyModes<T>(function, op.mode, warp.row<T>(op.a)[lane],
                                             warp.row<T>(op.b)[lane], warp.row<T>(op.c)[lane]);
  });
}

/// To odd: rounding once more, to fewer bits, is then as if it were the only time.
static float narrowToOdd(double value) {
  float narrow = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(narrow) || narrow == value)
    return narrow;
  uint32_t bits = bitsOf<uint32_t>(narrow);
  if (std::fabs(static_cast<double>(narrow)) > std::fabs(value))
    --bits;
  return bitsOf<float>(bits | 1);
}

/// Of a product of 16-bit floats, which is exact, and another the sum, in the same way: its rest decides.
static double fmaToOdd(double a, double b, double c) {
  double product = a * b, sum = product + c, other = sum - product;
  double rest = (product - (sum - other)) + (c - other);
  auto bits = bitsOf<uint64_t>(sum);
  if (std::isfinite(sum) && rest != 0 && !(bits & 1))
    bits += (rest > 0) == (sum > 0) ? 1 : -1;
  return bitsOf<double>(bits);
}

/// One or two 16-bit floats, exactly but for the last rounding.
template <bool isBrain, int count> static void general16(Warp &warp, const Op &op) {
  Math function = static_cast<Math>(op.number);
  auto flushed = [&](uint16_t bits) -> uint16_t {
    bool isSubnormal = !(bits & (isBrain ? 0x7f80 : 0x7c00));
    return (op.mode & Modes::kFlush) && isSubnormal ? bits & 0x8000 : bits;
  };
  auto wide = [&](uint16_t bits) {
    return static_cast<double>(isBrain ? fromBF16(flushed(bits)) : fromF16(flushed(bits)));
  };
  eachLane(warp.lanes(op), [&](int lane) {
    for (int half = 0; half < count; ++half) {
      int place = lane * count + half;
      double a = wide(warp.row<uint16_t>(op.a)[place]), b = wide(warp.row<uint16_t>(op.b)[place]),
             c = wide(warp.row<uint16_t>(op.c)[place]);
      double made = function == Math::Fma ? fmaToOdd(a, b, c) : apply<double>(function, a, b, c);
      float narrow = narrowToOdd(limited(made, op.mode));
      warp.row<uint16_t>(op.to)[place] = flushed(isBrain ? toBF16(narrow) : toF16(narrow));
    }
  });
}

/// Signs are bits: a NaN's payload stays.
template <class U, bool isAbs> static U changeSign(U a) {
  constexpr U kSigns = sizeof(U) == 2 ? U(0x8000) : sizeof(U) == 4 ? U(0x80000000) : U(0x8000000000000000);
  return isAbs ? a & ~kSigns : a ^ kSigns;
}
template <bool isAbs> static uint32_t changeSigns(uint32_t a) {
  return isAbs ? a & 0x7fff7fff : a ^ 0x80008000;
}

using Run = void (*)(Warp &, const Op &);

/// Approximations that take and give no subnormals.
template <Math f> static float applyFlushed(float a) { return flush(apply1<float, f>(flush(a))); }

/// Those of fp32 with .ftz that are frequent; null for others.
static Run flushedHandler(Math function) {
  switch (function) {
  case Math::Ex2:
    return map1<float, float, applyFlushed<Math::Ex2>>;
  case Math::Lg2:
    return map1<float, float, applyFlushed<Math::Lg2>>;
  case Math::Rsqrt:
    return map1<float, float, applyFlushed<Math::Rsqrt>>;
  default:
    return nullptr;
  }
}

template <class T> static Run fastHandler(Math function) {
  switch (function) {
  case Math::Add:
    return map2<T, T, T, apply2<T, Math::Add>>;
  case Math::Sub:
    return map2<T, T, T, apply2<T, Math::Sub>>;
  case Math::Mul:
    return map2<T, T, T, apply2<T, Math::Mul>>;
  case Math::Fma:
    return map3<T, T, T, T, apply3<T, Math::Fma>>;
  case Math::Div:
    return map2<T, T, T, apply2<T, Math::Div>>;
  case Math::Rcp:
    return map1<T, T, apply1<T, Math::Rcp>>;
  case Math::Sqrt:
    return map1<T, T, apply1<T, Math::Sqrt>>;
  case Math::Min:
    return map2<T, T, T, apply2<T, Math::Min>>;
  case Math::Max:
    return map2<T, T, T, apply2<T, Math::Max>>;
  case Math::Ex2:
    return map1<T, T, apply1<T, Math::Ex2>>;
  case Math::Lg2:
    return map1<T, T, apply1<T, Math::Lg2>>;
  case Math::Tanh:
    return map1<T, T, apply1<T, Math::Tanh>>;
  default:
    return general<T>;
  }
}

static Run handler(Math function, Type type, uint8_t mode) {
  bool isAbs = function == Math::Abs, isSign = isAbs || function == Math::Neg;
  switch (type) {
  case Type::F32:
    if (isSign && !mode)
      return isAbs ? map1<uint32_t, uint32_t, changeSign<uint32_t, true>>
                   : map1<uint32_t, uint32_t, changeSign<uint32_t, false>>;
    if (Run flushed = mode == Modes::kFlush ? flushedHandler(function) : nullptr)
      return flushed;
    return mode ? general<float> : fastHandler<float>(function);
  case Type::F64:
    if (isSign)
      return isAbs ? map1<uint64_t, uint64_t, changeSign<uint64_t, true>>
                   : map1<uint64_t, uint64_t, changeSign<uint64_t, false>>;
    return mode ? general<double> : fastHandler<double>(function);
  case Type::F16:
  case Type::BF16:
    if (isSign)
      return isAbs ? map1<uint16_t, uint16_t, changeSign<uint16_t, true>>
                   : map1<uint16_t, uint16_t, changeSign<uint16_t, false>>;
    return type == Type::F16 ? general16<false, 1> : general16<true, 1>;
  case Type::F16x2:
  case Type::BF16x2:
    if (isSign)
      return isAbs ? map1<uint32_t, uint32_t, changeSigns<true>>
                   : map1<uint32_t, uint32_t, changeSigns<false>>;
    return type == Type::F16x2 ? general16<false, 2> : general16<true, 2>;
  default:
    return nullptr;
  }
}

bool decodeFloats(Decoder &decoder, Op &op) {
  const NamedFunction *found = nullptr;
  for (const NamedFunction &row : kFunctions)
    if (decoder.base() == row.name)
      found = &row;
  if (!found || !decoder.has(found->operands + 1))
    return false;
  Math function = found->function;
  op.mode = static_cast<uint8_t>(decoder.takeRounding());
  op.mode |= decoder.take("ftz") ? Modes::kFlush : 0;
  op.mode |= decoder.take("sat") ? Modes::kSaturate : 0;
  op.mode |= decoder.take("relu") ? Modes::kRelu : 0;
  decoder.takeOne({"approx", "full"});
  if (decoder.take("NaN"))
    function = function == Math::Min ? Math::MinNaN : Math::MaxNaN;
  Type type = decoder.takeType();
  // 16-bit floats round to the nearest alone.
  bool isShort = type == Type::F16 || type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2;
  if (!isFloat(type) || (isShort && (op.mode & Modes::kRound)))
    return false;
  op.number = static_cast<int64_t>(function);
  op.run = handler(function, type, op.mode);
  op.to = decoder.write(decoder.operand(0));
  op.a = op.b = op.c = decoder.read(decoder.operand(1), type);
  if (found->operands > 1)
    op.b = op.c = decoder.read(decoder.operand(2), type);
  if (found->operands > 2)
    op.c = decoder.read(decoder.operand(3), type);
  return true;
}

} // namespace softdevice
