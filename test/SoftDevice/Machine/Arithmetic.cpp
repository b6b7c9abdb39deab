//===- Arithmetic.cpp - whole numbers -------------------------------------===//

#include "Decoder.h"
#include "Lanes.h"

namespace softdevice {

// All is modulo a power of 2, which signed numbers of C++ are not.
template <class T> static T add(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + b); }
template <class T> static T sub(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) - b); }
template <class T> static T mulLow(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * b); }
template <class T> static T mulHigh(T a, T b) {
  return static_cast<T>(static_cast<__int128>(a) * b >> 8 * sizeof(T));
}
template <> uint64_t mulHigh(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
template <class R, class T> static R mulWide(T a, T b) { return static_cast<R>(a) * static_cast<R>(b); }
template <class T> static T madLow(T a, T b, T c) { return add(mulLow(a, b), c); }
template <class T> static T madHigh(T a, T b, T c) { return add(mulHigh(a, b), c); }
template <class R, class T> static R madWide(T a, T b, R c) { return add(mulWide<R>(a, b), c); }
/// Division by 0 has all bits set on devices, and never traps.
template <class T> static T div(T a, T b) {
  if (b == 0)
    return static_cast<T>(-1);
  if (b == static_cast<T>(-1) && static_cast<T>(-1) < T(0))
    return static_cast<T>(0 - static_cast<uint64_t>(a));
  return a / b;
}
template <class T> static T rem(T a, T b) {
  if (b == 0)
    return a;
  if (b == static_cast<T>(-1) && static_cast<T>(-1) < T(0))
    return 0;
  return a % b;
}
template <class T> static T smaller(T a, T b) { return a < b ? a : b; }
template <class T> static T larger(T a, T b) { return a > b ? a : b; }
template <class T> static T negative(T a) { return static_cast<T>(0 - static_cast<uint64_t>(a)); }
template <class T> static T magnitude(T a) { return a < T(0) ? negative(a) : a; }
template <class T> static T sad(T a, T b, T c) { return add(c, a > b ? sub(a, b) : sub(b, a)); }

namespace {
using Run = void (*)(Warp &, const Op &);
/// A handler for the six types of whole numbers, in the order of `place`.
struct Handlers {
  Run u16, s16, u32, s32, u64, s64;
  Run of(Type type) const {
    switch (type) {
    case Type::U16:
    case Type::B16:
      return u16;
    case Type::S16:
      return s16;
    case Type::U32:
    case Type::B32:
      return u32;
    case Type::S32:
      return s32;
    case Type::U64:
    case Type::B64:
      return u64;
    case Type::S64:
      return s64;
    default:
      return nullptr;
    }
  }
};
} // namespace

#define UNARY(f)                                                                                             \
  {map1<uint16_t, uint16_t, f<uint16_t>>, map1<int16_t, int16_t, f<int16_t>>,                                \
   map1<uint32_t, uint32_t, f<uint32_t>>, map1<int32_t, int32_t, f<int32_t>>,                                \
   map1<uint64_t, uint64_t, f<uint64_t>>, map1<int64_t, int64_t, f<int64_t>>}
#define BINARY(f)                                                                                            \
  {map2<uint16_t, uint16_t, uint16_t, f<uint16_t>>, map2<int16_t, int16_t, int16_t, f<int16_t>>,             \
   map2<uint32_t, uint32_t, uint32_t, f<uint32_t>>, map2<int32_t, int32_t, int32_t, f<int32_t>>,             \
   map2<uint64_t, uint64_t, uint64_t, f<uint64_t>>, map2<int64_t, int64_t, int64_t, f<int64_t>>}
#define TERNARY(f)                                                                                           \
  {map3<uint16_t, uint16_t, uint16_t, uint16_t, f<uint16_t>>,                                                \
   map3<int16_t, int16_t, int16_t, int16_t, f<int16_t>>,                                                     \
   map3<uint32_t, uint32_t, uint32_t, uint32_t, f<uint32_t>>,                                                \
   map3<int32_t, int32_t, int32_t, int32_t, f<int32_t>>,                                                     \
   map3<uint64_t, uint64_t, uint64_t, uint64_t, f<uint64_t>>,                                                \
   map3<int64_t, int64_t, int64_t, int64_t, f<int64_t>>}

static constexpr Handlers kAdd = BINARY(add), kSub = BINARY(sub), kMulLow = BINARY(mulLow),
                          kMulHigh = BINARY(mulHigh), kDiv = BINARY(div), kRem = BINARY(rem),
                          kMin = BINARY(smaller), kMax = BINARY(larger), kNeg = UNARY(negative),
                          kAbs = UNARY(magnitude), kMadLow = TERNARY(madLow), kMadHigh = TERNARY(madHigh),
                          kSad = TERNARY(sad);
static constexpr Handlers kMulWide = {map2<uint32_t, uint16_t, uint16_t, mulWide<uint32_t, uint16_t>>,
                                      map2<int32_t, int16_t, int16_t, mulWide<int32_t, int16_t>>,
                                      map2<uint64_t, uint32_t, uint32_t, mulWide<uint64_t, uint32_t>>,
                                      map2<int64_t, int32_t, int32_t, mulWide<int64_t, int32_t>>,
                                      nullptr,
                                      nullptr};
static constexpr Handlers kMadWide = {
    map3<uint32_t, uint16_t, uint16_t, uint32_t, madWide<uint32_t, uint16_t>>,
    map3<int32_t, int16_t, int16_t, int32_t, madWide<int32_t, int16_t>>,
    map3<uint64_t, uint32_t, uint32_t, uint64_t, madWide<uint64_t, uint32_t>>,
    map3<int64_t, int32_t, int32_t, int64_t, madWide<int64_t, int32_t>>,
    nullptr,
    nullptr};

static Type widened(Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  default:
    return Type::S64;
  }
}

bool decodeArithmetic(Decoder &decoder, Op &op) {
  const std::string &base = decoder.base();
  bool isProduct = base == "mul" || base == "mad";
  std::string part = isProduct ? decoder.takeOne({"lo", "hi", "wide"}) : "";
  if (isProduct && part.empty())
    return false;
  Type type = decoder.takeType();
  const Handlers *handlers = base == "add"   ? &kAdd
                             : base == "sub" ? &kSub
                             : base == "mul" ? (part == "lo"   ? &kMulLow
                                                : part == "hi" ? &kMulHigh
                                                               : &kMulWide)
                             : base == "mad" ? (part == "lo"   ? &kMadLow
                                                : part == "hi" ? &kMadHigh
                                                               : &kMadWide)
                             : base == "div" ? &kDiv
                             : base == "rem" ? &kRem
                             : base == "min" ? &kMin
                             : base == "max" ? &kMax
                             : base == "neg" ? &kNeg
                             : base == "abs" ? &kAbs
                             : base == "sad" ? &kSad
                                             : nullptr;
  if (!handlers || isFloat(type))
    return false;
  bool isUnary = base == "neg" || base == "abs", isTernary = base == "mad" || base == "sad";
  if (!decoder.has(isUnary ? 2 : isTernary ? 4 : 3))
    return false;
  op.run = handlers->of(type);
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  if (!isUnary)
    op.b = decoder.read(decoder.operand(2), type);
  if (isTernary)
    op.c = decoder.read(decoder.operand(3), part == "wide" ? widened(type) : type);
  return true;
}

} // namespace softdevice
