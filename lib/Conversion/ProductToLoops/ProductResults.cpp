//===- ProductResults.cpp - where a product's sums go ---------------------===//
//
// A block's sums are added to what they belong to, and stored as the result's lines: a row
// of the block for each of its vectors or, with swaps, a lane of a vector, of up to as many
// rows as a vector has lanes.
//
//===----------------------------------------------------------------------===//

#include "ProductEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;

void ProductEmitter::emitStores(const Panel &panel, const Run &run, const Rows &rows, ArrayRef<Value> sums) {
  auto storeTo = [&](ArrayRef<Value> sums, Value from) {
    storeSums(panel, rows, from ? addResult(panel, rows, sums, from) : Values(sums));
  };
  auto finishTo = [&](ArrayRef<Value> sums, Value from) {
    storeSums(panel, rows, addBias(panel, rows, from ? addResult(panel, rows, sums, from) : Values(sums)));
  };
  auto addOrStore = [&](Value adds, ArrayRef<Value> sums) {
    branch(adds, [&] { storeTo(sums, result); }, [&] { storeTo(sums, nullptr); });
  };
  auto storeTotal = [&](ArrayRef<Value> sums, Value from) {
    accumulates ? addOrStore(accumulates, sums) : finishTo(sums, from);
  };
  if (!run.isFirst)
    return storeTotal(sums, addend);
  if (!blocking.panelsApart) {
    if (addend)
      return branch(run.isFirst, [&] { storeTo(sums, addend); }, [&] { storeTo(sums, result); });
    if (bias)
      return branch(
          run.isFirst, [&] { storeTo(sums, nullptr); },
          [&] { branch(run.isLast, [&] { finishTo(sums, result); }, [&] { storeTo(sums, result); }); });
    Value isLater = arith::XOrIOp::create(b, run.isFirst, arith::ConstantIntOp::create(b, 1, 1));
    return addOrStore(accumulates ? arith::OrIOp::create(b, accumulates, isLater).getResult() : isLater,
                      sums);
  }
  // Rounded once: until the last run sums are kept apart.
  branch(
      run.isFirst,
      [&] { storeApart(panel, rows, addend ? addResult(panel, rows, sums, addend) : Values(sums)); },
      [&] {
        Values total = loadApart(panel, rows, sums);
        branch(run.isLast, [&] { storeTotal(total, nullptr); }, [&] { storeApart(panel, rows, total); });
      });
}

Value ProductEmitter::readC(Value buffer, Value at, int64_t lanes) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  Value read = load(VectorType::get({blocking.lanes}, element), buffer, at, lanes);
  if (element.isF32())
    return read;
  return extend(read, product.getResult());
}

Value ProductEmitter::broadcastC(Value buffer, Value at) {
  Value element = memref::LoadOp::create(b, buffer, at);
  if (!element.getType().isF32()) {
    Value narrow = arith::BitcastOp::create(b, product.getResult(), element);
    element = arith::ExtFOp::create(b, b.getF32Type(), narrow);
  }
  return vector::BroadcastOp::create(b, sumType, element);
}

SmallVector<ProductEmitter::Line> ProductEmitter::linesOf(const Panel &panel, const Rows &rows) {
  SmallVector<Line> lines;
  if (!blocking.swaps) {
    Value first = add(ofC, add(multiply(rows.first, ldc), panel.column));
    for (int64_t r = 0; r < rows.count; ++r)
      for (int64_t v = 0; v < panel.vectors; ++v)
        lines.push_back({add(first, r * ldc + v * blocking.lanes), lanesOf(panel, v)});
    return lines;
  }
  Value first = add(ofC, add(multiply(panel.column, ldc), rows.first));
  overSquares(panel, rows, [&](int64_t row, int64_t count, int64_t vector) {
    for (int64_t lane = 0; lane < lanesOf(panel, vector); ++lane)
      lines.push_back({add(first, (vector * blocking.lanes + lane) * ldc + row), count});
  });
  return lines;
}

void ProductEmitter::prefetchResult(const Panel &panel, const Rows &rows, Value line) {
  if (blocking.swaps) {
    Value first = add(add(ofC, multiply(add(panel.column, line), ldc)), rows.asked);
    for (int64_t row = 0; row < rows.count; row += blocking.lanes)
      prefetch(result, add(first, row), /*isNear=*/true);
    return;
  }
  Value row = add(rows.asked, quotient(line, panel.vectors));
  Value vector = arith::RemUIOp::create(b, line, index(panel.vectors));
  prefetch(result, add(add(ofC, multiply(row, ldc)), add(panel.column, multiply(vector, blocking.lanes))),
           /*isNear=*/true);
}

void ProductEmitter::overSquares(const Panel &panel, const Rows &rows,
                                 llvm::function_ref<void(int64_t row, int64_t count, int64_t vector)> body) {
  for (int64_t row = 0; row < rows.count; row += blocking.lanes)
    for (int64_t v = 0; v < panel.vectors; ++v)
      body(row, std::min(rows.count - row, blocking.lanes), v);
}

ProductEmitter::Values ProductEmitter::toLines(const Panel &panel, const Rows &rows, ArrayRef<Value> sums) {
  if (!blocking.swaps)
    return Values(sums);
  Values lines;
  overSquares(panel, rows, [&](int64_t row, int64_t count, int64_t vector) {
    Values square(blocking.lanes, zeros(sumType));
    for (int64_t r = 0; r < count; ++r)
      square[r] = sums[(row + r) * panel.vectors + vector];
    llvm::append_range(lines, ArrayRef(transpose(square)).take_front(lanesOf(panel, vector)));
  });
  return lines;
}

ProductEmitter::Values ProductEmitter::fromLines(const Panel &panel, const Rows &rows, Values lines) {
  if (!blocking.swaps)
    return lines;
  Values sums(rows.count * panel.vectors);
  ArrayRef<Value> rest = lines;
  overSquares(panel, rows, [&](int64_t row, int64_t count, int64_t vector) {
    Values square(rest.take_front(lanesOf(panel, vector)));
    rest = rest.drop_front(square.size());
    square.resize(blocking.lanes, zeros(sumType));
    square = transpose(square);
    for (int64_t r = 0; r < count; ++r)
      sums[(row + r) * panel.vectors + vector] = square[r];
  });
  return sums;
}

ProductEmitter::Values ProductEmitter::addResult(const Panel &panel, const Rows &rows, ArrayRef<Value> sums,
                                                 Value from) {
  Values before, total;
  for (const Line &line : linesOf(panel, rows))
    before.push_back(readC(from, line.at, line.lanes));
  for (auto [one, sum] : llvm::zip_equal(fromLines(panel, rows, before), sums))
    total.push_back(arith::AddFOp::create(b, one, sum));
  return total;
}

ProductEmitter::Values ProductEmitter::addBias(const Panel &panel, const Rows &rows, ArrayRef<Value> sums) {
  if (!bias)
    return Values(sums);
  Values values, total;
  if (blocking.swaps)
    for (int64_t r = 0; r < rows.count; ++r)
      values.push_back(broadcastC(bias, add(rows.first, r)));
  else
    for (int64_t v = 0; v < panel.vectors; ++v)
      values.push_back(readC(bias, add(panel.column, v * blocking.lanes), lanesOf(panel, v)));
  for (auto [place, sum] : llvm::enumerate(sums)) {
    Value value = values[blocking.swaps ? place / panel.vectors : place % panel.vectors];
    total.push_back(arith::AddFOp::create(b, sum, value));
  }
  return total;
}

void ProductEmitter::storeSums(const Panel &panel, const Rows &rows, ArrayRef<Value> sums) {
  for (auto [line, value] : llvm::zip_equal(linesOf(panel, rows), toLines(panel, rows, sums))) {
    if (!product.getResult().isF32()) {
      auto narrow = VectorType::get({blocking.lanes}, product.getResult());
      value = vector::BitCastOp::create(b, VectorType::get({blocking.lanes}, b.getI16Type()),
                                        arith::TruncFOp::create(b, narrow, value).getResult());
    }
    store(value, result, line.at, line.lanes);
  }
}

Value ProductEmitter::placeApart(const Panel &panel, const Rows &rows, int64_t row, int64_t vector) {
  // Blocks are as large as the largest.
  int64_t inRow = blocking.columns.largest() * blocking.lanes, inBlock = blocking.rows.largest() * inRow;
  Value first = add(multiply(subtract(panel.place, firstApart), blocking.bands.largest() * inBlock),
                    multiply(rows.place, inBlock));
  if (rows.skipped)
    first = add(first, multiply(rows.skipped, inRow));
  if (panel.skipped)
    first = add(first, multiply(panel.skipped, blocking.lanes));
  return add(first, row * inRow + vector * blocking.lanes);
}

ProductEmitter::Values ProductEmitter::loadApart(const Panel &panel, const Rows &rows, ArrayRef<Value> sums) {
  Values total;
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t v = 0; v < panel.vectors; ++v) {
      Value before = load(sumType, apart, placeApart(panel, rows, r, v), blocking.lanes);
      total.push_back(arith::AddFOp::create(b, before, sums[r * panel.vectors + v]));
    }
  return total;
}

void ProductEmitter::storeApart(const Panel &panel, const Rows &rows, ArrayRef<Value> sums) {
  for (int64_t r = 0; r < rows.count; ++r)
    for (int64_t v = 0; v < panel.vectors; ++v)
      store(sums[r * panel.vectors + v], apart, placeApart(panel, rows, r, v), blocking.lanes);
}
