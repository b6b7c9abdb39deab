//===- ProductTiles.cpp - products of bf16 in AMX's tiles -----------------===//
//
// A tile of b is a tile's depth of a panel's copy, whose lines are pairs of the
// contraction as a tile has them. One of a lies in memory as it is, unless a is
// transposed. A block's last tile of rows ends with the block: what rows it shares with
// the one before have the same sums. Complete tiles go to memory, for vectors.
//
//===----------------------------------------------------------------------===//

#include "ProductEmitter.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;

static constexpr int64_t kTileDepth = Blocking::kTileDepth;
/// Elements of a copied tile of a.
static constexpr int64_t kTileElements = Blocking::kTileRows * kTileDepth;

void ProductEmitter::emitBlockOfTiles(const Panel &panel, const Run &run, const Rows &rows) {
  emitSumsOfTiles(panel, run, rows);
  // As many rows at a time as fit the vectors' registers.
  int64_t some = std::max<int64_t>(16 / panel.vectors, 1), whole = rows.count / some * some;
  auto storeRows = [&](Value skipped, int64_t count) {
    Values sums;
    for (int64_t i = 0; i < count * panel.vectors; ++i)
      sums.push_back(load(sumType, blockSums,
                          add(multiply(skipped, panel.vectors * blocking.lanes), i * blocking.lanes),
                          blocking.lanes));
    emitStores(panel, run, {add(rows.first, skipped), count, rows.place, {}, skipped}, sums);
  };
  loop(index(0), index(whole), some, [&](Value skipped, ValueRange) {
    storeRows(skipped, some);
    return Values();
  });
  if (whole < rows.count)
    storeRows(index(whole), rows.count - whole);
}

void ProductEmitter::emitSumsOfTiles(const Panel &panel, const Run &run, const Rows &rows) {
  int64_t inTile = blocking.rowsOfTile(), tiles = Blocking::tilesOf(rows.count), lanes = blocking.lanes;
  auto typeA = amx::TileType::get({inTile, kTileDepth}, b.getBF16Type());
  auto typeB = amx::TileType::get({kTileDepth / group, lanes * group}, b.getBF16Type());
  auto typeC = amx::TileType::get({inTile, lanes}, b.getF32Type());
  auto firstRow = [&](int64_t tile) { return std::min(tile * inTile, rows.count - inTile); };
  auto loadTile = [&](amx::TileType type, Value buffer, Value at, int64_t stride) {
    return amx::TileLoadOp::create(b, type, buffer, at, index(stride));
  };
  int64_t rest = copyA ? 0 : product.getK() % kTileDepth;
  Value firstA = copyA ? multiply(rows.place, blocking.blockOfCopyA)
                       : add(ofA, add(multiply(rows.first, product.getLda()), run.begin));
  auto loadA = [&](int64_t tile, Value step, bool isRest) -> Value {
    if (isRest)
      return loadTile(typeA, restOfA, index(firstRow(tile) * kTileDepth), kTileDepth);
    if (copyA)
      return loadTile(
          typeA, copyA,
          add(add(firstA, multiply(step, blocking.widthOfCopyA * kTileDepth)), tile * kTileElements),
          kTileDepth);
    Value at = add(add(firstA, multiply(step, kTileDepth)), firstRow(tile) * product.getLda());
    return loadTile(typeA, lhs, at, product.getLda());
  };
  auto steps = [&](Value from, Value to, ValueRange sums, bool isRest) {
    return loop(
        from, to, 1,
        [&](Value step, ValueRange before) {
          Values sums(before), some;
          if (isRest)
            loop(index(0), index(rows.count), 1, [&](Value row, ValueRange) {
              auto type = VectorType::get({kTileDepth}, stored);
              Value at = add(add(firstA, multiply(step, kTileDepth)), multiply(row, product.getLda()));
              store(load(type, lhs, at, rest), restOfA, multiply(row, kTileDepth), kTileDepth);
              return Values();
            });
          for (int64_t tile = 0; tile < tiles; ++tile)
            some.push_back(loadA(tile, step, isRest));
          int64_t inLine = panel.vectors * lanes * group;
          for (int64_t v = 0; v < panel.vectors; ++v) {
            Value at = add(multiply(step, kTileDepth / group * inLine), v * lanes * group);
            Value other = loadTile(typeB, copy, at, inLine);
            for (int64_t tile = 0; tile < tiles; ++tile) {
              Value &sum = sums[tile * panel.vectors + v];
              sum = amx::TileMulFOp::create(b, typeC, some[tile], other, sum);
            }
          }
          return sums;
        },
        sums);
  };
  Values sums;
  for (int64_t i = 0; i < tiles * panel.vectors; ++i)
    sums.push_back(amx::TileZeroOp::create(b, typeC));
  Value whole = quotient(run.depth, kTileDepth, /*up=*/!rest);
  sums = steps(index(0), whole, sums, /*isRest=*/false);
  // At most once: only the last run is no multiple.
  if (rest)
    sums = steps(whole, quotient(run.depth, kTileDepth, /*up=*/true), sums, /*isRest=*/true);
  int64_t inRow = panel.vectors * lanes;
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t v = 0; v < panel.vectors; ++v)
      amx::TileStoreOp::create(b, blockSums, index(firstRow(tile) * inRow + v * lanes),
                               sums[tile * panel.vectors + v], index(inRow));
}

void ProductEmitter::emitCopyOfTiles(const Band &band, const Run &run) {
  int64_t inTile = blocking.rowsOfTile(), rest = product.getK() % kTileDepth;
  auto type = VectorType::get({Blocking::kTileRows}, stored);
  auto pairsType = VectorType::get({Blocking::kTileRows}, b.getI32Type());
  // `count` elements of the contraction for each block of rows.
  auto copySome = [&](Value from, Value to, int64_t count) {
    loop(from, to, 1, [&](Value step, ValueRange) {
      Value line = add(ofA, multiply(add(run.begin, multiply(step, kTileDepth)), product.getLda()));
      loop(index(0), index(band.count), 1, [&](Value place, ValueRange) {
        auto [row, rows] = rowsOfBlock(band, place);
        Value tile =
            add(multiply(place, blocking.blockOfCopyA), multiply(step, blocking.widthOfCopyA * kTileDepth));
        for (int64_t t = 0; t < blocking.widthOfCopyA / Blocking::kTileRows; ++t) {
          Value skipped = least(index(t * inTile), subtract(rows, index(inTile)));
          Value at = add(add(line, row), skipped);
          auto read = [&](int64_t element) {
            return element < count ? load(type, lhs, add(at, element * product.getLda()), inTile)
                                   : zeros(type);
          };
          Values pairs;
          for (int64_t element = 0; element < kTileDepth; element += group) {
            Value pair = vector::InterleaveOp::create(b, read(element), read(element + 1));
            pairs.push_back(vector::BitCastOp::create(b, pairsType, pair));
          }
          for (auto [i, turned] : llvm::enumerate(transpose(pairs)))
            store(vector::BitCastOp::create(b, lineType, turned), copyA,
                  add(tile, t * kTileElements + i * kTileDepth), kTileDepth);
        }
        return Values();
      });
      return Values();
    });
  };
  Value whole = quotient(run.depth, kTileDepth);
  copySome(index(0), whole, kTileDepth);
  if (rest)
    copySome(whole, quotient(run.depth, kTileDepth, /*up=*/true), rest);
}
