//===- Warps.cpp - what lanes of a warp tell each other -------------------===//

#include "Decoder.h"
#include "Lanes.h"

#include <algorithm>

namespace softdevice {

/// The lanes of an operation with a mask of members: all of them, together. None yet while others are on
/// their way.
static uint32_t members(Warp &warp, const Op &op, uint32_t maskRow) {
  uint32_t lanes = warp.lanes(op);
  if (!lanes)
    return 0;
  int first = __builtin_ctz(lanes);
  uint32_t mask = warp.row<uint32_t>(maskRow)[first] & warp.all;
  for (uint32_t left = lanes; left; left &= left - 1)
    if (int lane = __builtin_ctz(left); !(mask >> lane & 1))
      throw Fault("a lane is not among the members that it names: " + describePlace(warp, op, lane));
  if (!warp.gather(mask, op)) {
    warp.next = warp.pc;
    return 0;
  }
  lanes = warp.lanes(op);
  if ((lanes & mask) != mask)
    throw Fault("members of a warp's operation skip it: " + describePlace(warp, op, first));
  return lanes;
}

enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };

/// Of a whole warp, in one segment and by one distance, between lanes that are all there.
SOFT_INLINE void exchangeAll(Warp &warp, const Op &op) {
  uint32_t from[kLanes], shift = warp.row<uint32_t>(op.b)[0] & 31;
  std::memcpy(from, warp.row<uint32_t>(op.a), sizeof(from));
  uint32_t *to = warp.row<uint32_t>(op.to);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    to[lane] = from[lane ^ shift];
}

static bool isSame(const uint32_t *row, uint32_t value) {
  uint32_t different = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    different |= row[lane] ^ value;
  return different == 0;
}

static void shuffle(Warp &warp, const Op &op) {
  uint32_t lanes = members(warp, op, op.rows[0]);
  if (!lanes)
    return;
  if (lanes == ~0u && static_cast<Shuffle>(op.mode) == Shuffle::Butterfly &&
      isSame(warp.row<uint32_t>(op.c), 31) && isSame(warp.row<uint32_t>(op.b), warp.row<uint32_t>(op.b)[0])) {
    run<exchangeAll>(warp, op);
    warp.setPredicate(op.second, lanes, ~0u);
    return;
  }
  uint32_t from[kLanes], valid = 0;
  std::memcpy(from, warp.row<uint32_t>(op.a), sizeof(from));
  const uint32_t *by = warp.row<uint32_t>(op.b), *control = warp.row<uint32_t>(op.c);
  uint32_t *to = warp.row<uint32_t>(op.to);
  eachLane(lanes, [&](int lane) {
    int clamp = control[lane] & 31, segment = control[lane] >> 8 & 31;
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment, shift = by[lane] & 31,
        source = lane;
    bool isValid = false;
    switch (static_cast<Shuffle>(op.mode)) {
    case Shuffle::Up:
      source = lane - shift;
      isValid = source >= most;
      break;
    case Shuffle::Down:
      source = lane + shift;
      isValid = source <= most;
      break;
    case Shuffle::Butterfly:
      source = lane ^ shift;
      isValid = source <= most;
      break;
    case Shuffle::Index:
      source = least | (shift & ~segment);
      isValid = source <= most;
      break;
    }
    if (!isValid)
      source = lane;
    if (!(lanes >> source & 1))
      throw Fault("a shuffle reads lane " + std::to_string(source) +
                  ", which takes no part in it: " + describePlace(warp, op, lane));
    to[lane] = from[source];
    valid |= static_cast<uint32_t>(isValid) << lane;
  });
  warp.setPredicate(op.second, lanes, valid);
}

enum class Vote : uint8_t { All, Any, Uniform, Ballot };

static void vote(Warp &warp, const Op &op) {
  uint32_t lanes = members(warp, op, op.b);
  if (!lanes)
    return;
  uint32_t yes = (op.secondNegated ? ~warp.predicates[op.a] : warp.predicates[op.a]) & lanes;
  Vote kind = static_cast<Vote>(op.mode);
  if (kind == Vote::Ballot) {
    eachLane(lanes, [&](int lane) { warp.row<uint32_t>(op.to)[lane] = yes; });
    return;
  }
  bool holds = kind == Vote::All ? yes == lanes : kind == Vote::Any ? yes != 0 : yes == 0 || yes == lanes;
  warp.setPredicate(op.to, lanes, holds ? ~0u : 0);
}

static void activeMask(Warp &warp, const Op &op) {
  uint32_t lanes = warp.lanes(op);
  eachLane(lanes, [&](int lane) { warp.row<uint32_t>(op.to)[lane] = lanes; });
}

template <class T> static void matchAny(Warp &warp, const Op &op) {
  uint32_t lanes = members(warp, op, op.b);
  const T *values = warp.row<T>(op.a);
  uint32_t made[kLanes] = {};
  eachLane(lanes, [&](int lane) {
    eachLane(lanes,
             [&](int other) { made[lane] |= static_cast<uint32_t>(values[lane] == values[other]) << other; });
  });
  eachLane(lanes, [&](int lane) { warp.row<uint32_t>(op.to)[lane] = made[lane]; });
}

enum class Reduction : uint8_t { Add, Min, Max, And, Or, Xor };

template <class T> static void reduce(Warp &warp, const Op &op) {
  uint32_t lanes = members(warp, op, op.b);
  if (!lanes)
    return;
  const T *values = warp.row<T>(op.a);
  T made = values[__builtin_ctz(lanes)];
  eachLane(lanes & (lanes - 1), [&](int lane) {
    T value = values[lane];
    switch (static_cast<Reduction>(op.mode)) {
    case Reduction::Add:
      made = static_cast<T>(static_cast<uint32_t>(made) + static_cast<uint32_t>(value));
      break;
    case Reduction::Min:
      made = std::min(made, value);
      break;
    case Reduction::Max:
      made = std::max(made, value);
      break;
    case Reduction::And:
      made &= value;
      break;
    case Reduction::Or:
      made |= value;
      break;
    case Reduction::Xor:
      made ^= value;
      break;
    }
  });
  eachLane(lanes, [&](int lane) { warp.row<T>(op.to)[lane] = made; });
}

static bool decodeShuffle(Decoder &decoder, Op &op) {
  std::string kind = decoder.takeOne({"up", "down", "bfly", "idx"});
  if (!decoder.take("sync") || kind.empty() || decoder.takeType() != Type::B32 || !decoder.has(5))
    return false;
  op.mode = static_cast<uint8_t>(kind == "up"     ? Shuffle::Up
                                 : kind == "down" ? Shuffle::Down
                                 : kind == "bfly" ? Shuffle::Butterfly
                                                  : Shuffle::Index);
  const Operand &target = decoder.operand(0);
  op.to = decoder.write(target);
  op.second = target.second.empty() ? 0 : decoder.predicate(target.second[0]);
  op.a = decoder.read(decoder.operand(1), Type::B32);
  op.b = decoder.read(decoder.operand(2), Type::B32);
  op.c = decoder.read(decoder.operand(3), Type::B32);
  op.rows.push_back(decoder.read(decoder.operand(4), Type::B32));
  op.run = shuffle;
  return true;
}

static bool decodeVote(Decoder &decoder, Op &op) {
  std::string kind = decoder.takeOne({"all", "any", "uni", "ballot"});
  Type type = decoder.takeType();
  if (!decoder.take("sync") || !decoder.has(3))
    return false;
  bool isBallot = kind == "ballot";
  op.mode = static_cast<uint8_t>(isBallot        ? Vote::Ballot
                                 : kind == "all" ? Vote::All
                                 : kind == "any" ? Vote::Any
                                                 : Vote::Uniform);
  op.to = isBallot ? decoder.write(decoder.operand(0)) : decoder.predicate(decoder.operand(0));
  op.a = decoder.predicate(decoder.operand(1));
  op.secondNegated = decoder.operand(1).negated;
  op.b = decoder.read(decoder.operand(2), Type::B32);
  op.run = vote;
  return !kind.empty() && type == (isBallot ? Type::B32 : Type::Pred);
}

static bool decodeReduction(Decoder &decoder, Op &op) {
  static constexpr const char *kKinds[] = {"add", "min", "max", "and", "or", "xor"};
  bool found = false;
  for (uint8_t kind = 0; kind < 6 && !found; ++kind)
    if ((found = decoder.take(kKinds[kind])))
      op.mode = kind;
  Type type = decoder.takeType();
  op.run = type == Type::S32                      ? reduce<int32_t>
           : bytesOf(type) == 4 && !isFloat(type) ? reduce<uint32_t>
                                                  : nullptr;
  if (!found || !decoder.take("sync") || !decoder.has(3))
    return false;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), type);
  op.b = decoder.read(decoder.operand(2), Type::B32);
  return true;
}

bool decodeWarps(Decoder &decoder, Op &op) {
  const std::string &base = decoder.base();
  if (base == "shfl")
    return decodeShuffle(decoder, op);
  if (base == "vote")
    return decodeVote(decoder, op);
  if (base == "redux")
    return decodeReduction(decoder, op);
  if (base == "activemask" && decoder.has(1) && decoder.takeType() == Type::B32) {
    op.to = decoder.write(decoder.operand(0));
    op.run = activeMask;
    return true;
  }
  if (base == "match" && decoder.take("any") && decoder.take("sync") && decoder.has(3)) {
    Type type = decoder.takeType();
    op.to = decoder.write(decoder.operand(0));
    op.a = decoder.read(decoder.operand(1), type);
    op.b = decoder.read(decoder.operand(2), Type::B32);
    op.run = bytesOf(type) == 8 ? matchAny<uint64_t> : matchAny<uint32_t>;
    return true;
  }
  return false;
}

} // namespace softdevice
