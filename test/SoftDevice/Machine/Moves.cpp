//===- Moves.cpp - values from place to place -----------------------------===//

#include "Decoder.h"
#include "Lanes.h"

namespace softdevice {

template <class T> static T same(T a) { return a; }

static void movePredicate(Warp &warp, const Op &op) {
  warp.setPredicate(op.to, warp.lanes(op),
                    op.second ? warp.predicates[op.a] : static_cast<uint32_t>(op.number));
}

/// Parts of `op.width` bytes in `op.rows` become one value of `op.bytes`: the first is the lowest.
static void packParts(Warp &warp, const Op &op) {
  char *to = warp.row<char>(op.to);
  eachLane(warp.lanes(op), [&](int lane) {
    char value[16];
    for (size_t part = 0; part < op.rows.size(); ++part)
      std::memcpy(value + part * op.width, warp.row<char>(op.rows[part]) + lane * op.width, op.width);
    std::memcpy(to + lane * op.bytes, value, op.bytes);
  });
}
static void unpackParts(Warp &warp, const Op &op) {
  const char *from = warp.row<char>(op.a);
  eachLane(warp.lanes(op), [&](int lane) {
    char value[16];
    std::memcpy(value, from + lane * op.bytes, op.bytes);
    for (size_t part = 0; part < op.rows.size(); ++part)
      std::memcpy(warp.row<char>(op.rows[part]) + lane * op.width, value + part * op.width, op.width);
  });
}

struct Wide {
  uint64_t low, high;
};

static void (*moveHandler(int bytes))(Warp &, const Op &) {
  switch (bytes) {
  case 2:
    return map1<uint16_t, uint16_t, same<uint16_t>>;
  case 4:
    return map1<uint32_t, uint32_t, same<uint32_t>>;
  case 8:
    return map1<uint64_t, uint64_t, same<uint64_t>>;
  case 16:
    return map1<Wide, Wide, same<Wide>>;
  default:
    return nullptr;
  }
}

/// The clocks only go on.
template <class T> static void readClock(Warp &warp, const Op &op) {
  T now = static_cast<T>(++warp.block.grid.clock);
  eachLane(warp.lanes(op), [&](int lane) { warp.row<T>(op.to)[lane] = now; });
}

static bool decodeParts(Decoder &decoder, Op &op, Type type) {
  bool packs = decoder.operand(1).kind == Operand::Kind::Vector;
  const Operand &parts = decoder.operand(packs ? 1 : 0);
  op.bytes = bytesOf(type);
  op.width = static_cast<uint8_t>(op.bytes / std::max<size_t>(parts.parts.size(), 1));
  Type part = op.width == 8 ? Type::B64 : op.width == 4 ? Type::B32 : op.width == 2 ? Type::B16 : Type::None;
  if (part == Type::None || op.width * parts.parts.size() != op.bytes)
    return false;
  for (const Operand &one : parts.parts)
    op.rows.push_back(packs ? decoder.read(one, part) : decoder.write(one));
  if (packs)
    op.to = decoder.write(decoder.operand(0));
  else
    op.a = decoder.read(decoder.operand(1), type);
  op.run = packs ? packParts : unpackParts;
  return true;
}

template <bool adds> static uint64_t shiftWindow(uint64_t address, uint64_t by) {
  return adds ? address + by : address - by;
}

/// Generic addresses of global memory are its own; shared and local memory have windows.
static bool decodeConvertAddress(Decoder &decoder, Op &op) {
  bool toSpace = decoder.take("to");
  std::string space = decoder.takeOne({"global", "shared", "local", "const", "param", "shared::cta"});
  Type type = decoder.takeType();
  if (space.empty() || bytesOf(type) != 8 || !decoder.has(2))
    return false;
  uint64_t by = space == "local" ? kLocalWindow : space[0] == 's' ? kSharedWindow : 0;
  op.to = decoder.write(decoder.operand(0));
  op.a = decoder.read(decoder.operand(1), Type::U64);
  op.b = decoder.constantRow(by, 8);
  op.run = toSpace ? map2<uint64_t, uint64_t, uint64_t, shiftWindow<false>>
                   : map2<uint64_t, uint64_t, uint64_t, shiftWindow<true>>;
  return true;
}

bool decodeMoves(Decoder &decoder, Op &op) {
  if (decoder.base() == "cvta")
    return decodeConvertAddress(decoder, op);
  if (decoder.base() != "mov" || !decoder.has(2))
    return false;
  Type type = decoder.takeType();
  const Operand &target = decoder.operand(0), &source = decoder.operand(1);
  if (type == Type::Pred) {
    op.run = movePredicate;
    op.to = decoder.predicate(target);
    if (auto value = decoder.constant(source)) {
      op.number = *value ? ~0u : 0;
    } else {
      op.a = decoder.predicate(source);
      op.second = 1;
    }
    return true;
  }
  if (target.kind == Operand::Kind::Vector || source.kind == Operand::Kind::Vector)
    return decodeParts(decoder, op, type);
  op.to = decoder.write(target);
  if (source.kind == Operand::Kind::Special &&
      (source.symbol == "%clock" || source.symbol == "%clock64" || source.symbol == "%globaltimer")) {
    op.run = bytesOf(type) == 8 ? readClock<uint64_t> : readClock<uint32_t>;
    return true;
  }
  op.a = decoder.read(source, type);
  op.run = moveHandler(bytesOf(type));
  return true;
}

} // namespace softdevice
