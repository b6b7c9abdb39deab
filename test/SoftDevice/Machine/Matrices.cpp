//===- Matrices.cpp - products of a warp's tiles --------------------------===//
//
// Fragments as PTX's manual lays them out: with g = lane / 4 and t = lane % 4, rows of a
// and of the result are g and g + 8, columns follow t. How a device adds inside of one
// operation is not said anywhere: here in order of k, in double precision.
//
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Numbers.h"
#include "Wide.h"

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

template <Element element> SOFT_INLINE float elementAt(uint32_t bits, int half) {
  return element == Element::F16    ? fromF16(static_cast<uint16_t>(bits >> 16 * half))
         : element == Element::BF16 ? fromBF16(static_cast<uint16_t>(bits >> 16 * half))
                                    : bitsOf<float>(bits & ~0x1fffu);
}

/// The elements of a fragment, as rows of them: of all lanes and registers.
template <Element element>
SOFT_INLINE void elementsOf(Warp &warp, const uint32_t *rows, int count, float (*elements)[kLanes]) {
  constexpr int kPacked = element == Element::TF32 ? 1 : 2;
  for (int i = 0; i < count; ++i) {
    const uint32_t *row = warp.row<uint32_t>(rows[i]);
    for (int half = 0; half < kPacked; ++half)
      for (int lane = 0; lane < kLanes; ++lane)
        elements[i * kPacked + half][lane] = elementAt<element>(row[lane], half);
  }
}

/// Columns are summed at once, each in order of k. Products of two elements are exact.
SOFT_INLINE void addProducts(const double (*a)[16], const double (*b)[kColumns], int depth,
                             double (*sums)[kColumns]) {
  for (int row = 0; row < kRows; ++row) {
    double sum[kColumns];
    std::memcpy(sum, sums[row], sizeof(sum));
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < kColumns; ++column)
        sum[column] += a[row][k] * b[k][column];
    std::memcpy(sums[row], sum, sizeof(sum));
  }
}

/// `op.rows`: results, a, b, c. `op.bytes` is k, `op.second` whether the results are fp16.
template <Element element> SOFT_INLINE void multiplyTiles(Warp &warp, const Op &op) {
  constexpr int kPacked = element == Element::TF32 ? 1 : 2;
  int depth = op.bytes, results = op.second ? 2 : 4;
  // Each register of a holds `kPacked` elements of one row; k goes on in steps of 4 * kPacked.
  int aCount = kRows * depth / kLanes / kPacked, bCount = kColumns * depth / kLanes / kPacked;
  float elements[8][kLanes];
  double a[kRows][16], b[16][kColumns], sums[kRows][kColumns];
  elementsOf<element>(warp, &op.rows[results], aCount, elements);
  for (int i = 0; i < aCount; ++i)
    for (int half = 0; half < kPacked; ++half)
      for (int lane = 0; lane < kLanes; ++lane)
        a[lane / 4 + 8 * (i & 1)][lane % 4 * kPacked + half + 4 * kPacked * (i >> 1)] =
            elements[i * kPacked + half][lane];
  elementsOf<element>(warp, &op.rows[results + aCount], bCount, elements);
  for (int i = 0; i < bCount; ++i)
    for (int half = 0; half < kPacked; ++half)
      for (int lane = 0; lane < kLanes; ++lane)
        b[lane % 4 * kPacked + half + 4 * kPacked * i][lane / 4] = elements[i * kPacked + half][lane];
  auto forResults = [&](auto apply) SOFT_LAMBDA {
    for (int i = 0; i < 4; ++i)
      for (int lane = 0; lane < kLanes; ++lane)
        apply(i, lane, sums[lane / 4 + 8 * (i >> 1)][lane % 4 * 2 + (i & 1)]);
  };
  const uint32_t *from = &op.rows[results + aCount + bCount], *to = op.rows.data();
  if (op.second)
    forResults([&](int i, int lane, double &sum)
                   SOFT_LAMBDA { sum = fromF16(warp.row<uint16_t>(from[i / 2])[lane * 2 + (i & 1)]); });
  else
    forResults([&](int i, int lane, double &sum) SOFT_LAMBDA { sum = warp.row<float>(from[i])[lane]; });
  addProducts(a, b, depth, sums);
  if (op.second)
    forResults([&](int i, int lane, double &sum) SOFT_LAMBDA {
      warp.row<uint16_t>(to[i / 2])[lane * 2 + (i & 1)] = toF16(static_cast<float>(sum));
    });
  else
    forResults([&](int i, int lane, double &sum)
                   SOFT_LAMBDA { warp.row<float>(to[i])[lane] = static_cast<float>(sum); });
}

template <Element element> static void multiply(Warp &warp, const Op &op) {
  bool isHere;
  needAllLanes(warp, op, isHere);
  if (isHere)
    run<multiplyTiles<element>>(warp, op);
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
  op.run = a == Type::F16    ? multiply<Element::F16>
           : a == Type::BF16 ? multiply<Element::BF16>
                             : multiply<Element::TF32>;
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
