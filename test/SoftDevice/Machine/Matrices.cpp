//===- Matrices.cpp - products of a warp's tiles --------------------------===//
//
// Fragments as PTX's manual lays them out: with g = lane / 4 and t = lane % 4, rows of a
// and of the result are g and g + 8, columns follow t. How a device adds inside of one
// operation is not said anywhere: here in order of k, in double precision.
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Numbers.h"

namespace softdevice {

namespace {
constexpr int kRows = 16, kColumns = 8;
enum class Element : uint8_t { F16, BF16, TF32 };
} // namespace

static void needAllLanes(Warp &warp, const Op &op, bool &isHere) {
  isHere = warp.gather(~0u, op);
  if (!isHere)
    warp.next = warp.pc;
  else if (warp.lanes(op) != ~0u)
    throw Fault("lanes skip an operation of the whole warp: " + describePlace(warp, op, 0));
}

static float elementAt(uint32_t bits, Element element, int half) {
  switch (element) {
  case Element::F16:
    return fromF16(static_cast<uint16_t>(bits >> 16 * half));
  case Element::BF16:
    return fromBF16(static_cast<uint16_t>(bits >> 16 * half));
  default:
    return bitsOf<float>(bits & ~0x1fffu);
  }
}

/// `op.rows`: results, a, b, c. `op.mode` is the elements' kind, `op.bytes` k, `op.second` whether the
/// results are fp16.
static void multiply(Warp &warp, const Op &op) {
  bool isHere;
  needAllLanes(warp, op, isHere);
  if (!isHere)
    return;
  Element element = static_cast<Element>(op.mode);
  int depth = op.bytes, packed = element == Element::TF32 ? 1 : 2, results = op.second ? 2 : 4;
  // Each register of a holds `packed` elements of one row; k goes on in steps of 4 * packed.
  int aCount = kRows * depth / kLanes / packed, bCount = kColumns * depth / kLanes / packed;
  double a[kRows][16], b[16][kColumns];
  for (int lane = 0; lane < kLanes; ++lane) {
    int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < aCount; ++i)
      for (int half = 0; half < packed; ++half)
        a[group + 8 * (i & 1)][(thread * packed + half) + 4 * packed * (i >> 1)] =
            elementAt(warp.row<uint32_t>(op.rows[results + i])[lane], element, half);
    for (int i = 0; i < bCount; ++i)
      for (int half = 0; half < packed; ++half)
        b[(thread * packed + half) + 4 * packed * i][group] =
            elementAt(warp.row<uint32_t>(op.rows[results + aCount + i])[lane], element, half);
  }
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      int row = lane / 4 + 8 * (i >> 1), column = lane % 4 * 2 + (i & 1);
      uint32_t from = op.rows[results + aCount + bCount + (op.second ? i / 2 : i)];
      double sum =
          op.second ? fromF16(warp.row<uint16_t>(from)[lane * 2 + (i & 1)]) : warp.row<float>(from)[lane];
      for (int k = 0; k < depth; ++k)
        sum += a[row][k] * b[k][column];
      uint32_t to = op.rows[op.second ? i / 2 : i];
      if (op.second)
        warp.row<uint16_t>(to)[lane * 2 + (i & 1)] = toF16(static_cast<float>(sum));
      else
        warp.row<float>(to)[lane] = static_cast<float>(sum);
    }
}

/// Lanes 8 j to 8 j + 7 say where the rows of matrix j are.
template <bool isTransposed, bool isStore> static void moveMatrices(Warp &warp, const Op &op) {
  bool isHere;
  needAllLanes(warp, op, isHere);
  if (!isHere)
    return;
  for (size_t matrix = 0; matrix < op.rows.size(); ++matrix) {
    uint16_t elements[8][8];
    char *places[8];
    for (int row = 0; row < 8; ++row) {
      int lane = static_cast<int>(matrix) * 8 + row;
      uint64_t address = addressOf(warp, op, lane);
      if (address - kSharedWindow < kWindowBytes)
        address -= kSharedWindow;
      places[row] = reach(warp, op, Space::Shared, lane, address, 16, 16, !isStore, isStore);
      if (!isStore)
        std::memcpy(elements[row], places[row], 16);
    }
    for (int lane = 0; lane < kLanes; ++lane)
      for (int half = 0; half < 2; ++half) {
        int row = isTransposed ? lane % 4 * 2 + half : lane / 4,
            column = isTransposed ? lane / 4 : lane % 4 * 2 + half;
        uint16_t &value = warp.row<uint16_t>(op.rows[matrix])[lane * 2 + half];
        if (isStore)
          elements[row][column] = value;
        else
          value = elements[row][column];
      }
    for (int row = 0; isStore && row < 8; ++row)
      std::memcpy(places[row], elements[row], 16);
  }
}

static bool decodeProduct(Decoder &decoder, Op &op) {
  std::string shape = decoder.takeOne({"m16n8k4", "m16n8k8", "m16n8k16"});
  if (!decoder.take("sync") || !decoder.take("aligned") || shape.empty() || !decoder.take("row") ||
      !decoder.take("col") || !decoder.has(4))
    return false;
  op.bytes = std::stoi(shape.substr(6));
  Type to = decoder.takeType(), a = decoder.takeType(), b = decoder.takeType(), c = decoder.takeType();
  bool isTF32 = a == Type::TF32;
  if (a != b || to != c || (to != Type::F32 && !(to == Type::F16 && a == Type::F16)) ||
      (isTF32 ? op.bytes == 16 : op.bytes == 4))
    return false;
  op.mode = static_cast<uint8_t>(a == Type::F16    ? Element::F16
                                 : a == Type::BF16 ? Element::BF16
                                                   : Element::TF32);
  if (a != Type::F16 && a != Type::BF16 && !isTF32)
    return false;
  op.second = to == Type::F16;
  size_t results = op.second ? 2 : 4, packed = isTF32 ? 1 : 2;
  size_t counts[4] = {results, kRows * op.bytes / kLanes / packed, kColumns * op.bytes / kLanes / packed,
                      results};
  for (size_t i = 0; i < 4; ++i) {
    const Operand &operand = decoder.operand(i);
    std::vector<Operand> parts =
        operand.kind == Operand::Kind::Vector ? operand.parts : std::vector<Operand>{operand};
    if (parts.size() != counts[i])
      return false;
    for (const Operand &part : parts)
      op.rows.push_back(i == 0 ? decoder.write(part) : decoder.read(part, Type::B32));
  }
  op.run = multiply;
  return true;
}

bool decodeMatrices(Decoder &decoder, Op &op) {
  if (decoder.base() == "mma")
    return decodeProduct(decoder, op);
  bool isStore = decoder.base() == "stmatrix";
  if (!isStore && decoder.base() != "ldmatrix")
    return false;
  std::string count = decoder.takeOne({"x1", "x2", "x4"});
  bool isTransposed = decoder.take("trans");
  if (!decoder.take("sync") || !decoder.take("aligned") || !decoder.take("m8n8") ||
      decoder.takeOne({"shared", "shared::cta"}).empty() || decoder.takeType() != Type::B16 ||
      count.empty() || !decoder.has(2))
    return false;
  const Operand &values = decoder.operand(isStore ? 1 : 0);
  std::vector<Operand> parts =
      values.kind == Operand::Kind::Vector ? values.parts : std::vector<Operand>{values};
  if (parts.size() != static_cast<size_t>(count[1] - '0'))
    return false;
  for (const Operand &part : parts)
    op.rows.push_back(isStore ? decoder.read(part, Type::B32) : decoder.write(part));
  decoder.address(decoder.operand(isStore ? 0 : 1), op);
  op.run = isStore        ? (isTransposed ? moveMatrices<true, true> : moveMatrices<false, true>)
           : isTransposed ? moveMatrices<true, false>
                          : moveMatrices<false, false>;
  return true;
}

} // namespace softdevice
