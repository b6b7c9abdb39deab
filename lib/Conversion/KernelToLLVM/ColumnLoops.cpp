//===- ColumnLoops.cpp - sums over rows; flat loops -----------------------===//
//
// Column sums: rows in blocks of 64, each added up row by row, the blocks' sums
// in order. The order does not depend on where the columns are cut, and vectors
// lie along the columns. No flags: a column is the same in a vector and alone.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

using namespace mlir;

namespace dsopt {
/// Rows of a block.
static constexpr int64_t kBlock = 64;
/// Columns whose sums are held at once.
static constexpr int64_t kChunk = 1024;
/// Rows that are added in one go while a sum is in a register.
static constexpr int64_t kUnroll = 4;

void emitColumns(KernelEmitter &e, ArrayRef<int64_t> range) {
  SmallVector<linalg::GenericOp> sums;
  for (linalg::GenericOp op : e.generics)
    if (op.getNumReductionLoops())
      sums.push_back(op);
  SmallVector<int64_t> shape = sums.front().getStaticLoopRanges();
  ArrayRef<int64_t> lead = ArrayRef(shape).drop_back(range.size());
  int64_t rows = 1, columns = 1;
  for (int64_t size : lead)
    rows *= size;
  for (int64_t size : range)
    columns *= size;
  int64_t chunk = std::min(kChunk, columns);
  SmallVector<Value> totals, partials;
  for (linalg::GenericOp sum : sums) {
    Type type = getElementTypeOrSelf(sum.getResult(0).getType());
    totals.push_back(e.scratch(chunk, type));
    partials.push_back(e.scratch(chunk, type));
  }
  auto typeOf = [&](size_t i) { return getElementTypeOrSelf(sums[i].getResult(0).getType()); };
  auto none = [] { return SmallVector<Value>(); };

  e.loop(e.low, e.high, chunk, {}, [&](Value first, ValueRange) {
    Value left = arith::SubIOp::create(e.b, e.high, first);
    Value width = e.min(left, e.index(chunk));
    auto overColumns = [&](llvm::function_ref<void(Value)> body) {
      e.loop(e.index(0), width, 1, {}, [&](Value i, ValueRange) {
        e.forget();
        body(i);
        e.forget();
        return none();
      });
    };
    auto clear = [&](ArrayRef<Value> buffers) {
      overColumns([&](Value i) {
        for (auto [sum, buffer] : llvm::zip_equal(sums, buffers))
          e.store(e.neutral(sum), buffer, i);
      });
    };
    // Adds `count` rows from `row` on.
    auto addRows = [&](Value row, int64_t count) {
      overColumns([&](Value i) {
        SmallVector<Value> running;
        for (size_t s = 0; s < sums.size(); ++s)
          running.push_back(e.load(partials[s], i, typeOf(s)));
        Value column = e.add(first, i);
        for (int64_t r = 0; r < count; ++r) {
          Indices indices = e.pushCounter(e.add(row, e.index(r)), lead);
          llvm::append_range(indices, e.pushCounter(column, range));
          for (auto [sum, total] : llvm::zip_equal(sums, running))
            total = e.payload(sum, indices, total).front();
          e.popCounter();
          e.popCounter();
        }
        for (size_t s = 0; s < sums.size(); ++s)
          e.store(running[s], partials[s], i);
      });
      return none();
    };
    auto addBlock = [&](Value block, Value end, Value unrolled) {
      clear(partials);
      if (rows >= kUnroll)
        e.loop(block, unrolled, kUnroll, {}, [&](Value row, ValueRange) { return addRows(row, kUnroll); });
      if (rows % kUnroll)
        e.loop(unrolled, end, 1, {}, [&](Value row, ValueRange) { return addRows(row, 1); });
      overColumns([&](Value i) {
        for (auto [s, sum] : llvm::enumerate(sums)) {
          Value total = e.load(totals[s], i, typeOf(s));
          e.store(e.combine(sum, total, e.load(partials[s], i, typeOf(s))), totals[s], i);
        }
      });
    };

    clear(totals);
    e.loop(e.index(0), e.index(rows), kBlock, {}, [&](Value block, ValueRange) {
      Value end = e.min(e.add(block, e.index(kBlock)), e.index(rows));
      addBlock(block, end, e.min(end, e.index(rows / kUnroll * kUnroll)));
      return none();
    });
    overColumns([&](Value i) {
      for (auto [s, sum] : llvm::enumerate(sums))
        e.store(e.load(totals[s], i, typeOf(s)), e.outputOf(sum.getResult(0)), e.add(first, i));
    });
    return none();
  });
}

void emitFlat(KernelEmitter &e) {
  e.loop(e.low, e.high, 1, {}, [&](Value i, ValueRange) {
    e.forget();
    SmallVector<Value> values;
    for (auto [value, buffer] : e.outputs())
      values.push_back(e.element(value, i));
    for (auto [output, value] : llvm::zip_equal(e.outputs(), values))
      e.store(value, output.second, i);
    e.forget();
    return SmallVector<Value>();
  });
}
} // namespace dsopt
