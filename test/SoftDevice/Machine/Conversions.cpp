//===- Conversions.cpp - from one type to another -------------------------===//

#include "Decoder.h"
#include "Lanes.h"
#include "Numbers.h"

namespace softdevice {

namespace {
/// `op.mode` of a conversion; its types are in `op.number`.
struct Modes {
  static constexpr uint8_t kRound = 3, kFlush = 4, kSaturate = 8, kWhole = 16, kRelu = 32;
};
} // namespace

static uint64_t readBits(const char *row, int width, int lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, row + lane * width, width);
  return bits;
}
static void writeBits(char *row, int width, int lane, uint64_t bits) {
  std::memcpy(row + lane * width, &bits, width);
}

static int64_t signExtended(uint64_t bits, int bytes) {
  int shift = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << shift) >> shift;
}
static uint64_t truncated(uint64_t bits, int bytes) {
  return bytes == 8 ? bits : bits & ((1ull << 8 * bytes) - 1);
}

static double floatOf(uint64_t bits, Type type) {
  switch (type) {
  case Type::F16:
    return fromF16(static_cast<uint16_t>(bits));
  case Type::BF16:
    return fromBF16(static_cast<uint16_t>(bits));
  case Type::F32:
    return bitsOf<float>(static_cast<uint32_t>(bits));
  default:
    return bitsOf<double>(bits);
  }
}

static double roundWhole(double value, Round round) {
  switch (round) {
  case Round::Zero:
    return std::trunc(value);
  case Round::Down:
    return std::floor(value);
  case Round::Up:
    return std::ceil(value);
  default:
    return std::nearbyint(value);
  }
}

/// To a type of fewer bits, under a rounding: the nearest first, then a step where it went the wrong way.
static uint64_t narrowed(double value, Type type, Round round) {
  auto nearest = [&](double from) -> uint64_t {
    float narrow = static_cast<float>(from);
    // The nearest of 16 bits from what is nearest in 32 is right but in the middle between two.
    if (type == Type::F32)
      return bitsOf<uint32_t>(narrow);
    if (!std::isnan(from) && !std::isinf(narrow) && narrow != from) {
      uint32_t bits = bitsOf<uint32_t>(narrow);
      if (std::fabs(static_cast<double>(narrow)) > std::fabs(from))
        --bits;
      narrow = bitsOf<float>(bits | 1);
    }
    return type == Type::BF16 ? toBF16(narrow) : toF16(narrow);
  };
  uint64_t bits = nearest(value);
  double back = floatOf(bits, type);
  bool isLarger = std::fabs(back) > std::fabs(value), isSmaller = std::fabs(back) < std::fabs(value);
  bool toZero =
      round == Round::Zero || (round == Round::Down && value > 0) || (round == Round::Up && value < 0);
  if (round == Round::Nearest || std::isnan(value))
    return bits;
  // Bits count up with the magnitude.
  return toZero ? bits - isLarger : bits + isSmaller;
}

/// A NaN becomes 0 where both types have 32 bits or less, else the highest bit.
static uint64_t floatToWhole(double value, Type from, Type to, Round round) {
  int bytes = bytesOf(to);
  if (std::isnan(value))
    return from == Type::F64 || bytes == 8 ? 1ull << (8 * bytes - 1) : 0;
  value = roundWhole(value, round);
  if (isSigned(to)) {
    double limit = std::ldexp(1.0, 8 * bytes - 1);
    int64_t least = signExtended(1ull << (8 * bytes - 1), bytes);
    return value >= limit   ? static_cast<uint64_t>(-(least + 1))
           : value < -limit ? least
                            : static_cast<int64_t>(value);
  }
  double limit = std::ldexp(1.0, 8 * bytes);
  return value >= limit ? truncated(~0ull, bytes) : value <= 0 ? 0 : static_cast<uint64_t>(value);
}

static uint64_t wholeToWhole(uint64_t bits, Type from, Type to, bool saturates) {
  int bytes = bytesOf(to);
  bool isNegative = isSigned(from) && static_cast<int64_t>(bits) < 0;
  if (!saturates)
    return bits;
  if (isSigned(to)) {
    int64_t most = static_cast<int64_t>(truncated(~0ull, bytes) >> 1), least = -most - 1;
    if (!isNegative)
      return bits > static_cast<uint64_t>(most) ? most : bits;
    return static_cast<int64_t>(bits) < least ? least : bits;
  }
  return isNegative ? 0 : std::min(bits, truncated(~0ull, bytes));
}

/// A whole number of 64 bits with as many bits of fraction as the type has.
static double roundedWhole(uint64_t bits, bool isNegative, Type to, Round round) {
  int precision = to == Type::F16 ? 11 : to == Type::BF16 ? 8 : to == Type::F32 ? 24 : 53;
  uint64_t magnitude = isNegative ? 0 - bits : bits;
  int left = magnitude ? 64 - __builtin_clzll(magnitude) - precision : 0;
  if (left > 0) {
    uint64_t kept = magnitude >> left, rest = magnitude - (kept << left), middle = 1ull << (left - 1);
    bool goesUp = round == Round::Nearest ? rest > middle || (rest == middle && (kept & 1))
                                          : rest && round == (isNegative ? Round::Down : Round::Up);
    double value = std::ldexp(static_cast<double>(kept + goesUp), left);
    return isNegative ? -value : value;
  }
  double value = static_cast<double>(magnitude);
  return isNegative ? -value : value;
}

static uint64_t convert(uint64_t bits, Type from, Type to, uint8_t mode) {
  Round round = static_cast<Round>(mode & Modes::kRound);
  int bytes = bytesOf(from);
  if (!isFloat(from)) {
    bits = isSigned(from) ? signExtended(bits, bytes) : truncated(bits, bytes);
    if (!isFloat(to))
      return wholeToWhole(bits, from, to, mode & Modes::kSaturate);
    double value = roundedWhole(bits, isSigned(from) && static_cast<int64_t>(bits) < 0, to, round);
    if (mode & Modes::kSaturate)
      value = saturate(value);
    return to == Type::F64 ? bitsOf<uint64_t>(value) : narrowed(value, to, round);
  }
  double value = floatOf(bits, from);
  if ((mode & Modes::kFlush) && from == Type::F32)
    value = flush(static_cast<float>(value));
  if (!isFloat(to))
    return floatToWhole(value, from, to, round);
  if (mode & Modes::kWhole)
    value = roundWhole(value, round), round = Round::Nearest;
  if (mode & Modes::kSaturate)
    value = saturate(value);
  if ((mode & Modes::kRelu) && !std::isnan(value))
    value = greater(value, 0.0);
  if (to == Type::F64)
    return bitsOf<uint64_t>(value);
  if (to == Type::F32 && std::isnan(value))
    return 0x7fffffff;
  uint64_t made = narrowed(value, to, round);
  if ((mode & Modes::kFlush) && to == Type::F32)
    made = bitsOf<uint32_t>(flush(bitsOf<float>(static_cast<uint32_t>(made))));
  return made;
}

static void convertLanes(Warp &warp, const Op &op) {
  Type to = static_cast<Type>(op.number & 255), from = static_cast<Type>(op.number >> 8);
  const char *source = warp.row<char>(op.a);
  char *target = warp.row<char>(op.to);
  eachLane(warp.lanes(op), [&](int lane) {
    uint64_t made = convert(readBits(source, op.width, lane), from, to, op.mode);
    // A register wider than the type has the sign, or zeros, above.
    made = isSigned(to) ? signExtended(made, bytesOf(to)) : truncated(made, bytesOf(to));
    writeBits(target, op.bytes, lane, made);
  });
}

/// Two floats become one register: the first is its high half.
template <bool isBrain> SOFT_INLINE void pack(Warp &warp, const Op &op) {
  const float *high = warp.row<float>(op.a), *low = warp.row<float>(op.b);
  uint32_t *to = warp.row<uint32_t>(op.to);
  bool isRelu = op.mode & Modes::kRelu;
  auto narrow = [=](float value) SOFT_LAMBDA -> uint32_t {
    if (isRelu && !std::isnan(value))
      value = greater(value, 0.0f);
    return isBrain ? toBF16(value) : toF16(value);
  };
  eachLane(warp.lanes(op),
           [=](int lane) SOFT_LAMBDA { to[lane] = narrow(high[lane]) << 16 | narrow(low[lane]); });
}

/// As C++ converts.
template <class R, class A> static R as(A a) { return static_cast<R>(a); }
/// A NaN becomes that of devices.
static float fromDouble(double a) {
  return std::isnan(a) ? bitsOf<float>(0x7fffffffu) : static_cast<float>(a);
}
static uint32_t toTF32Bits(float a) { return bitsOf<uint32_t>(toTF32(a)); }

using Run = void (*)(Warp &, const Op &);

/// Whole numbers of 16, 32 and 64 bits, which the sign or zeros are put before, or that are cut off.
template <class A16, class A32, class A64> static Run wholeHandler(Type to, Type from) {
  switch (bytesOf(to) << 4 | bytesOf(from)) {
  case 0x24:
    return map1<uint16_t, A32, as<uint16_t, A32>>;
  case 0x28:
    return map1<uint16_t, A64, as<uint16_t, A64>>;
  case 0x42:
    return map1<uint32_t, A16, as<uint32_t, A16>>;
  case 0x48:
    return map1<uint32_t, A64, as<uint32_t, A64>>;
  case 0x82:
    return map1<uint64_t, A16, as<uint64_t, A16>>;
  case 0x84:
    return map1<uint64_t, A32, as<uint64_t, A32>>;
  default:
    return nullptr;
  }
}

/// Handlers of conversions that are frequent, for registers as wide as the types.
static Run fastHandler(Type to, Type from) {
  if (!isFloat(to) && !isFloat(from))
    return isSigned(from) ? wholeHandler<int16_t, int32_t, int64_t>(to, from)
                          : wholeHandler<uint16_t, uint32_t, uint64_t>(to, from);
  if (to == Type::F32 && from == Type::S32)
    return map1<float, int32_t, as<float, int32_t>>;
  if (to == Type::F32 && from == Type::U32)
    return map1<float, uint32_t, as<float, uint32_t>>;
  if (to == Type::F64 && from == Type::S32)
    return map1<double, int32_t, as<double, int32_t>>;
  if (to == Type::F64 && from == Type::U32)
    return map1<double, uint32_t, as<double, uint32_t>>;
  if (to == Type::F64 && from == Type::S64)
    return map1<double, int64_t, as<double, int64_t>>;
  if (to == Type::F64 && from == Type::F32)
    return map1<double, float, as<double, float>>;
  if (to == Type::F32 && from == Type::F64)
    return map1<float, double, fromDouble>;
  if (to == Type::F32 && from == Type::BF16)
    return map1<float, uint16_t, fromBF16>;
  if (to == Type::BF16 && from == Type::F32)
    return map1<uint16_t, float, toBF16>;
  if (to == Type::F32 && from == Type::F16)
    return map1<float, uint16_t, fromF16>;
  if (to == Type::F16 && from == Type::F32)
    return map1<uint16_t, float, toF16>;
  return nullptr;
}

bool decodeConversions(Decoder &decoder, Op &op) {
  if (decoder.base() != "cvt")
    return false;
  bool isWhole = false;
  for (const std::string &word : decoder.statement->opcode)
    isWhole |= word == "rni" || word == "rzi" || word == "rmi" || word == "rpi";
  bool isRna = decoder.take("rna");
  op.mode = static_cast<uint8_t>(decoder.takeRounding());
  op.mode |= isWhole ? Modes::kWhole : 0;
  op.mode |= decoder.take("ftz") ? Modes::kFlush : 0;
  op.mode |= decoder.take("sat") ? Modes::kSaturate : 0;
  op.mode |= decoder.take("relu") ? Modes::kRelu : 0;
  Type to = decoder.takeType(), from = decoder.takeType();
  if (to == Type::None || from == Type::None)
    return false;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), from);
  if (to == Type::BF16x2 || to == Type::F16x2) {
    if (!decoder.has(3) || from != Type::F32 || (op.mode & ~Modes::kRelu))
      return false;
    op.b = decoder.read(decoder.operand(2), from);
    op.run = to == Type::BF16x2 ? run<pack<true>> : run<pack<false>>;
    return true;
  }
  if (!decoder.has(2))
    return false;
  if (to == Type::TF32) {
    op.run = map1<uint32_t, float, toTF32Bits>;
    return from == Type::F32 && op.mode == 0;
  }
  if (isRna)
    return false;
  op.width = decoder.width(decoder.operand(1), from);
  op.bytes = decoder.width(decoder.operand(0), to);
  op.number = static_cast<int64_t>(from) << 8 | static_cast<int64_t>(to);
  bool isPlain = op.mode == 0 && op.width == bytesOf(from) && op.bytes == static_cast<uint32_t>(bytesOf(to));
  op.run = isPlain ? fastHandler(to, from) : nullptr;
  if (!op.run)
    op.run = convertLanes;
  return true;
}

} // namespace softdevice
