//===- ProductLines.cpp - products of few rows by lines of b --------------===//
//
// One block of few rows reads b once, from memory. A processor foresees what is read of a
// few long lines, not of a short part of each of many: some lines are read at a time, as
// far as the panel goes, and what registers have no room for, the block's sums, is kept in
// a buffer meanwhile.
//
//===----------------------------------------------------------------------===//

#include "ProductEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;

void ProductEmitter::emitBlockOfLines(const Panel &panel, const Run &run, const Rows &rows) {
  int64_t lanes = blocking.lanes, ldb = product.getLdb();
  RowsOfA a = rowsOfA(run, rows);
  Value firstB = add(ofB, add(multiply(run.begin, ldb), panel.column));
  auto overVectors = [&](llvm::function_ref<void(Value vector, int64_t lanes)> body) {
    loop(index(0), index(panel.vectors - panel.isCut), 1, [&](Value vector, ValueRange) {
      body(vector, lanes);
      return Values();
    });
    if (panel.isCut)
      body(index(panel.vectors - 1), tail);
  };
  auto sumAt = [&](int64_t row, Value vector) {
    return add(multiply(vector, lanes), row * panel.vectors * lanes);
  };
  auto loadSums = [&](Value vector) {
    Values sums;
    for (int64_t r = 0; r < rows.count; ++r)
      sums.push_back(load(sumType, blockSums, sumAt(r, vector), lanes));
    return sums;
  };
  // `count` lines at a time, from one step on to another.
  auto addLines = [&](Value from, Value to, int64_t count, bool isHalf) {
    loop(from, to, count, [&](Value step, ValueRange) {
      Values factors;
      for (int64_t line = 0; line < count; ++line)
        for (int64_t r = 0; r < rows.count; ++r)
          factors.push_back(
              emitFactor(add(add(a.first, multiply(add(step, line), group * a.step)), r * a.stride), isHalf));
      Value firstLine = add(firstB, multiply(step, group * ldb));
      overVectors([&](Value vector, int64_t some) {
        Values sums = loadSums(vector);
        Value first = add(firstLine, multiply(vector, lanes));
        for (int64_t line = 0; line < count; ++line) {
          Value at = add(first, line * group * ldb), elements = loadLine(at, some, isHalf);
          // The lines that are next.
          for (int64_t element = 0; element < group && count > 1; ++element)
            prefetch(rhs, add(at, (count * group + element) * ldb));
          for (int64_t r = 0; r < rows.count; ++r)
            sums[r] = multiplyAdd(factors[line * rows.count + r], elements, sums[r]);
        }
        for (int64_t r = 0; r < rows.count; ++r)
          store(sums[r], blockSums, sumAt(r, vector), lanes);
      });
      return Values();
    });
  };
  loop(index(0), index(rows.count * panel.vectors * lanes), lanes, [&](Value at, ValueRange) {
    store(zeros(sumType), blockSums, at, lanes);
    return Values();
  });
  Value whole = quotient(run.depth, group);
  Value together = multiply(quotient(whole, blocking.lines), blocking.lines);
  addLines(index(0), together, blocking.lines, /*isHalf=*/false);
  addLines(together, whole, 1, /*isHalf=*/false);
  // An element without a partner, at most once: only the last run may have one.
  if (product.getK() % group)
    addLines(whole, quotient(run.depth, group, /*up=*/true), 1, /*isHalf=*/true);
  overVectors([&](Value vector, int64_t some) {
    Panel one = {add(panel.column, multiply(vector, lanes)), 1, some != lanes, panel.place, vector};
    emitStores(one, run, rows, loadSums(vector));
  });
}
