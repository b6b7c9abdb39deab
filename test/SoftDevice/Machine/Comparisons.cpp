//===- Comparisons.cpp - predicates from values, values by predicates -----===//

#include "Decoder.h"
#include "Lanes.h"
#include "Numbers.h"

namespace softdevice {

namespace {
enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

struct NamedCompare {
  const char *name;
  Compare compare;
};
/// How a comparison is joined with another predicate: `op.mode`.
enum class Join : uint8_t { None, And, Or, Xor };

// 16-bit floats are compared as what they mean.
struct Half {
  uint16_t bits;
  operator float() const { return fromF16(bits); }
};
struct Brain {
  uint16_t bits;
  operator float() const { return fromBF16(bits); }
};
// With .ftz subnormals are 0.
struct Flushed {
  float value;
  operator float() const { return flush(value); }
};
struct FlushedHalf {
  uint16_t bits;
  operator float() const { return bits & 0x7c00 ? fromF16(bits) : 0; }
};
} // namespace

static constexpr NamedCompare kCompares[] = {
    {"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},   {"le", Compare::Le},
    {"gt", Compare::Gt},   {"ge", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
    {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu}, {"geu", Compare::Geu},
    {"num", Compare::Num}, {"nan", Compare::Nan},
};
/// Of whole numbers without a sign.
static constexpr NamedCompare kUnsignedCompares[] = {
    {"lo", Compare::Lt}, {"ls", Compare::Le}, {"hi", Compare::Gt}, {"hs", Compare::Ge}};

template <Compare compare, class T> static bool holds(T a, T b) {
  bool isUnordered = a != a || b != b;
  switch (compare) {
  case Compare::Eq:
    return a == b;
  case Compare::Ne:
    return a != b && !isUnordered;
  case Compare::Lt:
    return a < b;
  case Compare::Le:
    return a <= b;
  case Compare::Gt:
    return a > b;
  case Compare::Ge:
    return a >= b;
  case Compare::Equ:
    return a == b || isUnordered;
  case Compare::Neu:
    return a != b;
  case Compare::Ltu:
    return !(a >= b);
  case Compare::Leu:
    return !(a > b);
  case Compare::Gtu:
    return !(a <= b);
  case Compare::Geu:
    return !(a < b);
  case Compare::Num:
    return !isUnordered;
  case Compare::Nan:
    return isUnordered;
  }
  return false;
}

template <class T, class V, Compare compare> SOFT_INLINE void setPredicates(Warp &warp, const Op &op) {
  const T *a = warp.row<T>(op.a), *b = warp.row<T>(op.b);
  uint32_t made = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    made |= static_cast<uint32_t>(holds<compare, V>(a[lane], b[lane])) << lane;
  uint32_t lanes = warp.lanes(op), other = warp.predicates[op.c];
  if (op.secondNegated)
    other = ~other;
  auto joined = [&](uint32_t value) {
    switch (static_cast<Join>(op.mode)) {
    case Join::And:
      return value & other;
    case Join::Or:
      return value | other;
    case Join::Xor:
      return value ^ other;
    default:
      return value;
    }
  };
  warp.setPredicate(op.to, lanes, joined(made));
  warp.setPredicate(op.second, lanes, joined(~made));
}

using Run = void (*)(Warp &, const Op &);

template <class T, class V = T> static Run compareHandler(Compare compare) {
  switch (compare) {
#define CASE(name)                                                                                           \
  case Compare::name:                                                                                        \
    return run<setPredicates<T, V, Compare::name>>;
    CASE(Eq)
    CASE(Ne)
    CASE(Lt)
    CASE(Le)
    CASE(Gt)
    CASE(Ge)
    CASE(Equ)
    CASE(Neu)
    CASE(Ltu)
    CASE(Leu)
    CASE(Gtu)
    CASE(Geu)
    CASE(Num)
    CASE(Nan)
#undef CASE
  }
  return nullptr;
}

static Run compareHandler(Compare compare, Type type, bool flushes) {
  if (flushes)
    return type == Type::F32   ? compareHandler<Flushed, float>(compare)
           : type == Type::F16 ? compareHandler<FlushedHalf, float>(compare)
                               : nullptr;
  switch (type) {
  case Type::B16:
  case Type::U16:
    return compareHandler<uint16_t>(compare);
  case Type::S16:
    return compareHandler<int16_t>(compare);
  case Type::B32:
  case Type::U32:
    return compareHandler<uint32_t>(compare);
  case Type::S32:
    return compareHandler<int32_t>(compare);
  case Type::B64:
  case Type::U64:
    return compareHandler<uint64_t>(compare);
  case Type::S64:
    return compareHandler<int64_t>(compare);
  case Type::F32:
    return compareHandler<float>(compare);
  case Type::F64:
    return compareHandler<double>(compare);
  case Type::F16:
    return compareHandler<Half, float>(compare);
  case Type::BF16:
    return compareHandler<Brain, float>(compare);
  default:
    return nullptr;
  }
}

template <class T> SOFT_INLINE void select(Warp &warp, const Op &op) {
  const T *a = warp.row<T>(op.a), *b = warp.row<T>(op.b);
  T *to = warp.row<T>(op.to);
  uint32_t chosen = warp.predicates[op.second];
  eachLane(warp.lanes(op), [=](int lane) SOFT_LAMBDA {
    T yes = a[lane], no = b[lane];
    to[lane] = chosen >> lane & 1 ? yes : no;
  });
}

static bool decodeSet(Decoder &decoder, Op &op) {
  std::optional<Compare> compare;
  for (const NamedCompare &row : kUnsignedCompares)
    if (!compare && decoder.take(row.name))
      compare = row.compare;
  for (const NamedCompare &row : kCompares)
    if (!compare && decoder.take(row.name))
      compare = row.compare;
  if (!compare)
    return false;
  std::string join = decoder.takeOne({"and", "or", "xor"});
  bool flushes = decoder.take("ftz");
  Type type = decoder.takeType();
  if (!decoder.has(join.empty() ? 3 : 4))
    return false;
  op.run = compareHandler(*compare, type, flushes);
  op.mode = static_cast<uint8_t>(join == "and"   ? Join::And
                                 : join == "or"  ? Join::Or
                                 : join == "xor" ? Join::Xor
                                                 : Join::None);
  const Operand &target = decoder.operand(0);
  op.to = decoder.predicate(target);
  op.second = target.second.empty() ? 0 : decoder.predicate(target.second[0]);
  op.a = decoder.read(decoder.operand(1), type);
  op.b = decoder.read(decoder.operand(2), type);
  if (!join.empty()) {
    op.c = decoder.predicate(decoder.operand(3));
    op.secondNegated = decoder.operand(3).negated;
  }
  return true;
}

bool decodeComparisons(Decoder &decoder, Op &op) {
  if (decoder.base() == "setp")
    return decodeSet(decoder, op);
  if (decoder.base() != "selp" || !decoder.has(4))
    return false;
  Type type = decoder.takeType();
  op.run = bytesOf(type) == 2   ? run<select<uint16_t>>
           : bytesOf(type) == 4 ? run<select<uint32_t>>
           : bytesOf(type) == 8 ? run<select<uint64_t>>
                                : nullptr;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  op.b = decoder.read(decoder.operand(2), type);
  op.second = decoder.predicate(decoder.operand(3));
  return true;
}

} // namespace softdevice
