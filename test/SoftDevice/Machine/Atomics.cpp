//===- Atomics.cpp - read, change and write in one ------------------------===//

#include "Access.h"
#include "Numbers.h"

#include <algorithm>
#include <numeric>

namespace softdevice {

namespace {
enum class Change : uint8_t { Add, Min, Max, And, Or, Xor, Exchange, CompareExchange, Increment, Decrement };
} // namespace

template <class T> static T changed(Change change, T old, T operand, T other) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (change) {
    case Change::Add:
      return old + operand;
    case Change::Exchange:
      return operand;
    default:
      return old;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    switch (change) {
    case Change::Add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(operand));
    case Change::Min:
      return std::min(old, operand);
    case Change::Max:
      return std::max(old, operand);
    case Change::And:
      return old & operand;
    case Change::Or:
      return old | operand;
    case Change::Xor:
      return old ^ operand;
    case Change::Exchange:
      return operand;
    case Change::CompareExchange:
      return old == operand ? other : old;
    case Change::Increment:
      return old >= operand ? T(0) : old + 1;
    case Change::Decrement:
      return old == 0 || old > operand ? operand : old - 1;
    }
  }
  return old;
}

/// Lanes in a random order: nothing says which comes first.
template <class T> static void atomic(Warp &warp, const Op &op) {
  std::vector<int> order;
  eachLane(warp.lanes(op), [&](int lane) { order.push_back(lane); });
  std::shuffle(order.begin(), order.end(), warp.block.grid.random);
  Change change = static_cast<Change>(op.second & 255);
  auto isShared = [&](int lane) {
    Space space = static_cast<Space>(op.mode);
    return space == Space::Shared ||
           (space == Space::Generic && addressOf(warp, op, lane) - kSharedWindow < kWindowBytes);
  };
  for (int lane : order) {
    char *place = reach(warp, op, static_cast<Space>(op.mode), lane, addressOf(warp, op, lane), sizeof(T),
                        sizeof(T), true, true);
    T old;
    std::memcpy(&old, place, sizeof(T));
    T operand = warp.row<T>(op.b)[lane], made;
    // In global memory subnormals are 0 to what adds fp32.
    if constexpr (std::is_same_v<T, float>)
      made = change == Change::Add && !isShared(lane) ? flush(flush(old) + flush(operand))
                                                      : changed<T>(change, old, operand, operand);
    else
      made = changed<T>(change, old, operand, warp.row<T>(op.c)[lane]);
    std::memcpy(place, &made, sizeof(T));
    if (op.to)
      warp.row<T>(op.to)[lane] = old;
  }
}

bool decodeAtomics(Decoder &decoder, Op &op) {
  bool returns = decoder.base() == "atom";
  if (!returns && decoder.base() != "red")
    return false;
  const Operand &address = decoder.operand(returns ? 1 : 0);
  op.mode = static_cast<uint8_t>(takeSpace(decoder, address));
  while (
      !decoder.takeOne({"relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "cluster", "noftz"})
           .empty())
    ;
  static constexpr std::pair<const char *, Change> kChanges[] = {
      {"add", Change::Add},       {"min", Change::Min},
      {"max", Change::Max},       {"and", Change::And},
      {"or", Change::Or},         {"xor", Change::Xor},
      {"exch", Change::Exchange}, {"cas", Change::CompareExchange},
      {"inc", Change::Increment}, {"dec", Change::Decrement}};
  const std::pair<const char *, Change> *change = nullptr;
  for (const auto &one : kChanges)
    if (!change && decoder.take(one.first))
      change = &one;
  Type type = decoder.takeType();
  bool isFloating = type == Type::F32 || type == Type::F64;
  if (!change || (isFloating && change->second != Change::Add && change->second != Change::Exchange))
    return false;
  op.run = type == Type::F32                        ? atomic<float>
           : type == Type::F64                      ? atomic<double>
           : type == Type::S32                      ? atomic<int32_t>
           : type == Type::S64                      ? atomic<int64_t>
           : type == Type::B32 || type == Type::U32 ? atomic<uint32_t>
           : type == Type::B64 || type == Type::U64 ? atomic<uint64_t>
                                                    : nullptr;
  size_t first = returns ? 2 : 1;
  if (!decoder.has(first + 1 + (change->second == Change::CompareExchange)))
    return false;
  op.second = static_cast<uint32_t>(change->second);
  decoder.address(address, op);
  op.to = returns ? decoder.write(decoder.operand(0)) : 0;
  op.b = op.c = decoder.read(decoder.operand(first), type);
  if (change->second == Change::CompareExchange)
    op.c = decoder.read(decoder.operand(first + 1), type);
  return true;
}

} // namespace softdevice
