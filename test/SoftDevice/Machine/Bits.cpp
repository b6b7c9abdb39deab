//===- Bits.cpp - bits and shifts -----------------------------------------===//

#include "Decoder.h"
#include "Lanes.h"

#include <algorithm>

namespace softdevice {

template <class T> static T both(T a, T b) { return a & b; }
template <class T> static T either(T a, T b) { return a | b; }
template <class T> static T differ(T a, T b) { return a ^ b; }
template <class T> static T invert(T a) { return ~a; }
template <class T> static T isNone(T a) { return a == 0; }
/// Shifts by as much as there are bits, and more, leave 0, or the sign.
template <class T> static T shiftLeft(T a, uint32_t count) {
  return count >= 8 * sizeof(T) ? 0 : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << count);
}
template <class T> static T shiftRight(T a, uint32_t count) {
  uint32_t most = 8 * sizeof(T) - 1;
  return count > most ? static_cast<T>(a < T(0) ? -1 : 0) : static_cast<T>(a >> count);
}
template <class T> static uint32_t countOnes(T a) {
  return __builtin_popcountll(static_cast<std::make_unsigned_t<T>>(a));
}
template <class T> static uint32_t leadingZeros(T a) {
  return a == 0 ? 8 * sizeof(T) : __builtin_clzll(a) - (64 - 8 * sizeof(T));
}
template <class T> static T reverse(T a) {
  T made = 0;
  for (size_t bit = 0; bit < 8 * sizeof(T); ++bit)
    made = static_cast<T>(made << 1 | (a >> bit & 1));
  return made;
}
template <class T> static T field(T a, uint32_t position, uint32_t length) {
  constexpr uint32_t kMost = 8 * sizeof(T) - 1;
  position &= 255, length &= 255;
  using U = std::make_unsigned_t<T>;
  if (length == 0)
    return 0;
  // Behind the field, and behind the value, the sign of the field goes on.
  uint32_t sign = std::min(position + length - 1, kMost);
  U behind = static_cast<T>(-1) < T(0) && (static_cast<U>(a) >> sign & 1) ? ~U(0) : U(0);
  if (position > kMost)
    return static_cast<T>(behind);
  uint32_t count = std::min(length, kMost + 1 - position);
  U inside = ~U(0) >> (kMost + 1 - count);
  return static_cast<T>((static_cast<U>(a) >> position & inside) | (behind & ~inside));
}
/// `b` with its field replaced by `a`: rows a, b, then position and length in `rows`.
template <class T> static void insertField(Warp &warp, const Op &op) {
  eachLane(warp.lanes(op), [&](int lane) {
    uint32_t position = warp.row<uint32_t>(op.c)[lane] & 255,
             length = warp.row<uint32_t>(op.rows[0])[lane] & 255;
    T value = warp.row<T>(op.b)[lane];
    for (uint32_t i = 0; i < length && position + i < 8 * sizeof(T); ++i) {
      T bit = T(1) << (position + i);
      value = warp.row<T>(op.a)[lane] >> i & 1 ? value | bit : value & ~bit;
    }
    warp.row<T>(op.to)[lane] = value;
  });
}
static uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t made = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t which = selector >> 4 * i & 15;
    uint32_t byte = bytes >> 8 * (which & 7) & 255;
    if (which & 8)
      byte = byte & 128 ? 255 : 0;
    made |= byte << 8 * i;
  }
  return made;
}
static uint32_t funnelLeft(uint32_t low, uint32_t high, uint32_t count, bool clamps) {
  count = clamps ? std::min(count, 32u) : count & 31;
  return static_cast<uint32_t>((uint64_t(high) << 32 | low) << count >> 32);
}
static uint32_t funnelRight(uint32_t low, uint32_t high, uint32_t count, bool clamps) {
  count = clamps ? std::min(count, 32u) : count & 31;
  return static_cast<uint32_t>((uint64_t(high) << 32 | low) >> count);
}
template <bool isLeft, bool clamps> static uint32_t funnel(uint32_t low, uint32_t high, uint32_t count) {
  return isLeft ? funnelLeft(low, high, count, clamps) : funnelRight(low, high, count, clamps);
}
static void lookUpBits(Warp &warp, const Op &op) {
  uint32_t table = static_cast<uint32_t>(op.number);
  eachLane(warp.lanes(op), [&](int lane) {
    uint32_t a = warp.row<uint32_t>(op.a)[lane], b = warp.row<uint32_t>(op.b)[lane],
             c = warp.row<uint32_t>(op.c)[lane];
    uint32_t made = 0;
    for (uint32_t which = 0; which < 8; ++which)
      if (table >> which & 1)
        made |= (which & 4 ? a : ~a) & (which & 2 ? b : ~b) & (which & 1 ? c : ~c);
    warp.row<uint32_t>(op.to)[lane] = made;
  });
}
/// The place of the highest bit that is not the sign; all ones where there is none.
template <class T> static uint32_t highestBit(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = a < T(0) ? static_cast<U>(~a) : static_cast<U>(a);
  return bits == 0 ? ~0u : 63 - __builtin_clzll(bits);
}
/// How far that bit is from the top.
template <class T> static uint32_t shiftOfHighestBit(T a) {
  uint32_t place = highestBit(a);
  return place == ~0u ? place : 8 * sizeof(T) - 1 - place;
}
static uint32_t nthBit(uint32_t mask, uint32_t base, int32_t offset) {
  if (offset == 0)
    return base < 32 && (mask >> base & 1) ? base : ~0u;
  int step = offset > 0 ? 1 : -1, left = std::abs(offset);
  for (int64_t at = base; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0)
      return static_cast<uint32_t>(at);
  return ~0u;
}

/// Predicates are masks of their own.
template <char kind> static void logic(Warp &warp, const Op &op) {
  uint32_t a = warp.predicates[op.a], b = warp.predicates[op.b];
  warp.setPredicate(op.to, warp.lanes(op),
                    kind == '&'   ? a & b
                    : kind == '|' ? a | b
                    : kind == '^' ? a ^ b
                                  : ~a);
}

#define BY_WIDTH(op2, bytes, f16, f32, f64)                                                                  \
  op2 = bytes == 2 ? f16 : bytes == 4 ? f32 : bytes == 8 ? f64 : nullptr

static bool decodeLogic(Decoder &decoder, Op &op, Type type) {
  const std::string &base = decoder.base();
  int bytes = bytesOf(type);
  bool isUnary = base == "not" || base == "cnot";
  if (!decoder.has(isUnary ? 2 : 3))
    return false;
  if (type == Type::Pred) {
    op.run = base == "and" ? logic<'&'> : base == "or" ? logic<'|'> : base == "xor" ? logic<'^'> : logic<'~'>;
    op.to = decoder.predicate(decoder.operand(0));
    op.a = decoder.predicate(decoder.operand(1));
    op.b = isUnary ? 0 : decoder.predicate(decoder.operand(2));
    return base != "cnot";
  }
  if (base == "and")
    BY_WIDTH(op.run, bytes, (map2<uint16_t, uint16_t, uint16_t, both<uint16_t>>),
             (map2<uint32_t, uint32_t, uint32_t, both<uint32_t>>),
             (map2<uint64_t, uint64_t, uint64_t, both<uint64_t>>));
  else if (base == "or")
    BY_WIDTH(op.run, bytes, (map2<uint16_t, uint16_t, uint16_t, either<uint16_t>>),
             (map2<uint32_t, uint32_t, uint32_t, either<uint32_t>>),
             (map2<uint64_t, uint64_t, uint64_t, either<uint64_t>>));
  else if (base == "xor")
    BY_WIDTH(op.run, bytes, (map2<uint16_t, uint16_t, uint16_t, differ<uint16_t>>),
             (map2<uint32_t, uint32_t, uint32_t, differ<uint32_t>>),
             (map2<uint64_t, uint64_t, uint64_t, differ<uint64_t>>));
  else if (base == "not")
    BY_WIDTH(op.run, bytes, (map1<uint16_t, uint16_t, invert<uint16_t>>),
             (map1<uint32_t, uint32_t, invert<uint32_t>>), (map1<uint64_t, uint64_t, invert<uint64_t>>));
  else
    BY_WIDTH(op.run, bytes, (map1<uint16_t, uint16_t, isNone<uint16_t>>),
             (map1<uint32_t, uint32_t, isNone<uint32_t>>), (map1<uint64_t, uint64_t, isNone<uint64_t>>));
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  op.b = isUnary ? 0 : decoder.read(decoder.operand(2), type);
  return true;
}

static bool decodeShift(Decoder &decoder, Op &op, Type type) {
  if (!decoder.has(3))
    return false;
  int bytes = bytesOf(type);
  if (decoder.base() == "shl")
    BY_WIDTH(op.run, bytes, (map2<uint16_t, uint16_t, uint32_t, shiftLeft<uint16_t>>),
             (map2<uint32_t, uint32_t, uint32_t, shiftLeft<uint32_t>>),
             (map2<uint64_t, uint64_t, uint32_t, shiftLeft<uint64_t>>));
  else if (isSigned(type))
    BY_WIDTH(op.run, bytes, (map2<int16_t, int16_t, uint32_t, shiftRight<int16_t>>),
             (map2<int32_t, int32_t, uint32_t, shiftRight<int32_t>>),
             (map2<int64_t, int64_t, uint32_t, shiftRight<int64_t>>));
  else
    BY_WIDTH(op.run, bytes, (map2<uint16_t, uint16_t, uint32_t, shiftRight<uint16_t>>),
             (map2<uint32_t, uint32_t, uint32_t, shiftRight<uint32_t>>),
             (map2<uint64_t, uint64_t, uint32_t, shiftRight<uint64_t>>));
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  op.b = decoder.read(decoder.operand(2), Type::U32);
  return true;
}

static bool decodeCount(Decoder &decoder, Op &op, Type type) {
  const std::string &base = decoder.base();
  bool isLong = bytesOf(type) == 8;
  if (!decoder.has(2))
    return false;
  if (base == "popc")
    op.run = isLong ? map1<uint32_t, uint64_t, countOnes<uint64_t>>
                    : map1<uint32_t, uint32_t, countOnes<uint32_t>>;
  else if (base == "clz")
    op.run = isLong ? map1<uint32_t, uint64_t, leadingZeros<uint64_t>>
                    : map1<uint32_t, uint32_t, leadingZeros<uint32_t>>;
  else if (base == "brev")
    op.run =
        isLong ? map1<uint64_t, uint64_t, reverse<uint64_t>> : map1<uint32_t, uint32_t, reverse<uint32_t>>;
  else if (decoder.take("shiftamt"))
    op.run = isSigned(type) ? (isLong ? map1<uint32_t, int64_t, shiftOfHighestBit<int64_t>>
                                      : map1<uint32_t, int32_t, shiftOfHighestBit<int32_t>>)
                            : (isLong ? map1<uint32_t, uint64_t, shiftOfHighestBit<uint64_t>>
                                      : map1<uint32_t, uint32_t, shiftOfHighestBit<uint32_t>>);
  else if (isSigned(type))
    op.run =
        isLong ? map1<uint32_t, int64_t, highestBit<int64_t>> : map1<uint32_t, int32_t, highestBit<int32_t>>;
  else
    op.run = isLong ? map1<uint32_t, uint64_t, highestBit<uint64_t>>
                    : map1<uint32_t, uint32_t, highestBit<uint32_t>>;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  return true;
}

static bool decodeFields(Decoder &decoder, Op &op, Type type) {
  const std::string &base = decoder.base();
  bool isLong = bytesOf(type) == 8;
  if (base == "bfe")
    op.run = isSigned(type) ? (isLong ? map3<int64_t, int64_t, uint32_t, uint32_t, field<int64_t>>
                                      : map3<int32_t, int32_t, uint32_t, uint32_t, field<int32_t>>)
                            : (isLong ? map3<uint64_t, uint64_t, uint32_t, uint32_t, field<uint64_t>>
                                      : map3<uint32_t, uint32_t, uint32_t, uint32_t, field<uint32_t>>);
  else
    op.run = isLong ? insertField<uint64_t> : insertField<uint32_t>;
  bool inserts = base == "bfi";
  if (!decoder.has(inserts ? 5 : 4))
    return false;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  op.b = decoder.read(decoder.operand(2), inserts ? type : Type::U32);
  op.c = decoder.read(decoder.operand(3), Type::U32);
  if (inserts)
    op.rows.push_back(decoder.read(decoder.operand(4), Type::U32));
  return true;
}

bool decodeBits(Decoder &decoder, Op &op) {
  const std::string &base = decoder.base();
  if (base == "lop3" || base == "prmt" || base == "shf" || base == "fns") {
    bool isLeft = decoder.take("l"), clamps = decoder.take("clamp");
    if (!isLeft)
      decoder.take("r");
    if (!clamps)
      decoder.take("wrap");
    if (decoder.takeType() != Type::B32 || !decoder.has(base == "lop3" ? 5 : 4))
      return false;
    op.run = base == "lop3"   ? lookUpBits
             : base == "prmt" ? map3<uint32_t, uint32_t, uint32_t, uint32_t, permute>
             : base == "fns"  ? map3<uint32_t, uint32_t, uint32_t, int32_t, nthBit>
             : isLeft         ? (clamps ? map3<uint32_t, uint32_t, uint32_t, uint32_t, funnel<true, true>>
                                        : map3<uint32_t, uint32_t, uint32_t, uint32_t, funnel<true, false>>)
                              : (clamps ? map3<uint32_t, uint32_t, uint32_t, uint32_t, funnel<false, true>>
                                        : map3<uint32_t, uint32_t, uint32_t, uint32_t, funnel<false, false>>);
    op.to = decoder.write(decoder.operand(0));
    op.a = decoder.read(decoder.operand(1), Type::B32);
    op.b = decoder.read(decoder.operand(2), Type::B32);
    op.c = decoder.read(decoder.operand(3), Type::B32);
    if (base == "lop3") {
      auto table = decoder.constant(decoder.operand(4));
      op.number = table.value_or(0);
      return table.has_value();
    }
    return true;
  }
  bool isLogic = base == "and" || base == "or" || base == "xor" || base == "not" || base == "cnot";
  bool isCount = base == "popc" || base == "clz" || base == "brev" || base == "bfind";
  if (!isLogic && !isCount && base != "shl" && base != "shr" && base != "bfe" && base != "bfi")
    return false;
  Type type = decoder.takeType();
  return isLogic                          ? decodeLogic(decoder, op, type)
         : isCount                        ? decodeCount(decoder, op, type)
         : base == "shl" || base == "shr" ? decodeShift(decoder, op, type)
                                          : decodeFields(decoder, op, type);
}

} // namespace softdevice
