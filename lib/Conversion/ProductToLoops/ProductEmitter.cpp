//===- ProductEmitter.cpp - the loops of a product's kernel ---------------===//

#include "ProductEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;
using exec::ProductPacking;

/// Lines of b that are asked for before they are copied.
static constexpr int64_t kAhead = 12;
/// Steps before lines are read, where these ask for what is read soon.
static constexpr int64_t kStepsAhead = 6;
/// Bytes of a column of b that lies as a line, asked for before it is read.
static constexpr int64_t kAheadOfColumn = 512;

ProductEmitter::ProductEmitter(func::FuncOp function, exec::ProductAttr given, const Blocking &blocking,
                               bool packs)
    : KernelBuilder(function.getLoc(), function.addEntryBlock()), product(blocking.product),
      blocking(blocking), ldc(given.getLdc()), group(4 / blocking.bytesOfCopy), bytes(bytesOf(product)),
      stored(bytes == 4 ? Type(b.getF32Type()) : Type(b.getI16Type())),
      multiplied(blocking.isWidened ? Type(b.getF32Type()) : stored),
      copied(blocking.packedDepth ? stored : multiplied),
      sumType(VectorType::get({blocking.lanes}, b.getF32Type())),
      lineType(VectorType::get({blocking.lanes * group}, multiplied)),
      tail((product.getN() - 1) % blocking.lanes + 1), depth(std::min(product.getK(), Blocking::kDepth)) {
  Block *entry = &function.front();
  b.setInsertionPointToStart(entry);
  func::ReturnOp::create(b);
  b.setInsertionPointToStart(entry);
  auto next = entry->args_begin();
  low = *next++;
  high = *next++;
  if (packs) {
    rhs = *next++;
    copy = *next++;
    return;
  }
  lhs = *next++;
  rhs = *next++;
  if (blocking.swaps)
    std::swap(lhs, rhs);
  if (blocking.packedDepth)
    copy = rhs;
  if (product.getAddend())
    addend = *next++;
  if (product.getBias())
    bias = *next++;
  result = *next++;
  if (product.getAccumulates()) {
    Value flag = memref::LoadOp::create(b, *next++, index(0));
    accumulates = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, zeros(flag.getType()));
  }
  if (blocking.copyElements)
    copy = scratch(blocking.copyElements, copied);
  if (blocking.copyOfAElements)
    copyA = scratch(blocking.copyOfAElements, multiplied);
  if (blocking.apartElements)
    apart = scratch(blocking.apartElements, b.getF32Type());
  if (blocking.sumElements)
    blockSums = scratch(blocking.sumElements, b.getF32Type());
  if (blocking.restElements)
    restOfA = scratch(blocking.restElements, stored);
}

//===----------------------------------------------------------------------===//
// From matrices to blocks
//===----------------------------------------------------------------------===//

void ProductEmitter::overPanels(
    const Panels &panels, Value first, Value last,
    llvm::function_ref<void(Value place, Value start, int64_t size, bool isLast)> body, bool cutsLast) {
  struct Part {
    int64_t from, to, start, size;
    bool isLast;
  };
  SmallVector<Part> parts = {
      {0, panels.larger, 0, panels.size + 1, false},
      {panels.larger, panels.count, panels.larger * (panels.size + 1), panels.size, false}};
  if (cutsLast) {
    Part &whole = parts[panels.larger == panels.count ? 0 : 1];
    --whole.to;
    parts.push_back(
        {whole.to, whole.to + 1, whole.start + (whole.to - whole.from) * whole.size, whole.size, true});
  }
  for (const Part &part : parts) {
    if (part.from == part.to)
      continue;
    loop(most(first, index(part.from)), least(last, index(part.to)), 1, [&](Value place, ValueRange) {
      Value start = add(multiply(subtract(place, index(part.from)), part.size), part.start);
      body(place, start, part.size, part.isLast);
      return Values();
    });
  }
}

void ProductEmitter::emit() {
  if (product.count() == 1) {
    ofA = ofB = ofC = index(0);
    emitMatrix(low, high);
    return;
  }
  int64_t units = blocking.columns.extent() * blocking.rows.count;
  loop(quotient(low, units), quotient(high, units, /*up=*/true), 1, [&](Value matrix, ValueRange) {
    ofA = ofB = ofC = index(0);
    Value rest = matrix;
    for (int64_t d = product.getBatch().size() - 1; d >= 0; --d) {
      int64_t extent = product.getBatch()[d];
      Value at = d ? Value(arith::RemUIOp::create(b, rest, index(extent))) : rest;
      rest = quotient(rest, extent);
      ofA = add(ofA, multiply(at, product.getStridesA()[d]));
      ofB = add(ofB, multiply(at, product.getStridesB()[d]));
      ofC = add(ofC, multiply(at, product.getStridesC()[d]));
    }
    Value before = multiply(matrix, units);
    emitMatrix(most(subtract(low, before), index(0)), least(subtract(high, before), index(units)));
    return Values();
  });
}

void ProductEmitter::emitPacking() {
  ofB = index(0);
  // A panel is packed by who has its first vector.
  overColumns({index(0), 1}, low, high, [&](const Panel &panel, Value first, Value last) {
    Value isAsked = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, first, last);
    branch(isAsked, [&] {
      overRuns([&](const Run &run) {
        firstCopy = packedAt(panel, run);
        blocking.packing == ProductPacking::Transpose ? emitTransposedCopy(panel, run) : emitCopy(panel, run);
      });
    });
  });
}

Value ProductEmitter::packedAt(const Panel &panel, const Run &run) {
  return add(multiply(panel.column, blocking.packedDepth),
             multiply(run.begin, panel.vectors * blocking.lanes));
}

Value ProductEmitter::inCopy(Value at) { return firstCopy ? add(firstCopy, at) : at; }

void ProductEmitter::emitMatrix(Value first, Value last) {
  if (blocking.bands.count == 1)
    return emitBand({index(0), blocking.rows.count}, first, last);
  overPanels(blocking.bands, index(0), index(blocking.bands.count),
             [&](Value, Value start, int64_t count, bool) {
               Value before = multiply(start, blocking.columns.extent());
               Value from = most(subtract(first, before), index(0)),
                     to = least(subtract(last, before), index(count * blocking.columns.extent()));
               Value isAsked = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, from, to);
               branch(isAsked, [&] { emitBand({start, count}, from, to); });
             });
}

Value ProductEmitter::panelAt(const Band &band, Value unit) {
  const Panels &columns = blocking.columns;
  Value vector = quotient(unit, band.count), place = quotient(vector, columns.largest());
  if (!columns.larger)
    return place;
  Value isLarger = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, place, index(columns.larger));
  Value other = quotient(most(subtract(vector, index(columns.larger)), index(0)), columns.size);
  return arith::SelectOp::create(b, isLarger, place, other);
}

Value ProductEmitter::endOfPanels(const Band &band, Value end) {
  // Of no unit there is the first panel, without rows: a number below 0 would be none.
  return add(panelAt(band, most(subtract(end, index(1)), index(0))), 1);
}

Value ProductEmitter::firstUnit(const Band &band, Value panel) {
  Value vectors = multiply(panel, blocking.columns.size);
  if (blocking.columns.larger)
    vectors = add(vectors, least(panel, index(blocking.columns.larger)));
  return multiply(vectors, band.count);
}

void ProductEmitter::overColumns(const Band &band, Value first, Value last,
                                 llvm::function_ref<void(const Panel &, Value, Value)> body) {
  overPanels(
      blocking.columns, panelAt(band, first), endOfPanels(band, last),
      [&](Value place, Value start, int64_t size, bool isLast) {
        Value before = multiply(start, band.count);
        auto row = [&](Value unit) {
          Value of = least(most(subtract(unit, before), index(0)), index(size * band.count));
          return quotient(of, size, /*up=*/true);
        };
        body({multiply(start, blocking.lanes), size, isLast, place}, row(first), row(last));
      },
      /*cutsLast=*/tail != blocking.lanes);
}

void ProductEmitter::overRuns(llvm::function_ref<void(const Run &)> body) {
  int64_t k = product.getK();
  if (k <= Blocking::kDepth)
    return body({index(0), index(k), nullptr, nullptr});
  loop(index(0), index(k), Blocking::kDepth, [&](Value begin, ValueRange) {
    int64_t last = (k - 1) / Blocking::kDepth * Blocking::kDepth;
    body({begin, least(subtract(index(k), begin), index(depth)), isEqual(begin, index(0)),
          isEqual(begin, index(last))});
    return Values();
  });
}

void ProductEmitter::emitBand(const Band &band, Value first, Value last) {
  if (!blocking.panelsApart)
    return emitRuns(band, first, last);
  Value end = endOfPanels(band, last);
  loop(quotient(panelAt(band, first), blocking.panelsApart), quotient(end, blocking.panelsApart, /*up=*/true),
       1, [&](Value place, ValueRange) {
         firstApart = multiply(place, blocking.panelsApart);
         Value next = least(add(firstApart, blocking.panelsApart), index(blocking.columns.count));
         emitRuns(band, most(first, firstUnit(band, firstApart)), least(last, firstUnit(band, next)));
         return Values();
       });
}

void ProductEmitter::emitRuns(const Band &band, Value first, Value last) {
  // What is read once is read to its end.
  if (blocking.packing == ProductPacking::Registers && !blocking.copiesA)
    return overColumns(band, first, last, [&](const Panel &panel, Value firstRow, Value lastRow) {
      overRuns([&](const Run &run) { emitPanel(band, panel, run, firstRow, lastRow); });
    });
  overRuns([&](const Run &run) {
    if (blocking.copiesA)
      emitCopyOfA(band, run);
    overColumns(band, first, last, [&](const Panel &panel, Value firstRow, Value lastRow) {
      emitPanel(band, panel, run, firstRow, lastRow);
    });
  });
}

void ProductEmitter::emitPanel(const Band &band, const Panel &panel, const Run &run, Value first,
                               Value last) {
  bool isTurned = blocking.packing == ProductPacking::Transpose;
  if (blocking.packedDepth) {
    firstCopy = packedAt(panel, run);
  } else if (isTurned || blocking.inTiles) {
    Value isAsked = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, first, last);
    branch(isAsked, [&] { isTurned ? emitTransposedCopy(panel, run) : emitCopy(panel, run); });
  }
  Value from = add(band.first, first);
  overPanels(blocking.rows, from, add(band.first, last), [&](Value place, Value row, int64_t count, bool) {
    Rows rows = {row, count, subtract(place, band.first)};
    if (blocking.asksForLines)
      rows.ahead = linesAhead(band, panel, run, rows);
    if (blocking.packing == ProductPacking::None || blocking.packing == ProductPacking::Registers)
      return emitBlock(panel, run, rows, Source::Given);
    if (blocking.packing == ProductPacking::Lines)
      return emitBlockOfLines(panel, run, rows);
    if (blocking.inTiles || blocking.packedDepth)
      return emitBlock(panel, run, rows, Source::Copy);
    if (isTurned)
      return emitBlock(panel, run, rows, Source::Copy);
    branch(
        isEqual(place, from), [&] { emitBlock(panel, run, rows, Source::GivenAndCopied); },
        [&] { emitBlock(panel, run, rows, Source::Copy); });
  });
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

void ProductEmitter::emitBlock(const Panel &panel, const Run &run, Rows rows, Source source) {
  // What sums are added to is here when they are complete, and where they are stored a line that can be
  // written.
  bool isAddedTo = accumulates || (run.isFirst && !blocking.panelsApart);
  if (isAddedTo || blocking.resultAhead) {
    Rows written = rows;
    if (!isAddedTo)
      written.first = add(rows.first, *blocking.resultAhead * rows.count);
    if (blocking.asksInSteps)
      rows.asked = written.first;
    else
      for (const Line &line : linesOf(panel, written))
        prefetch(result, line.at, /*isNear=*/true);
  }
  if (blocking.inTiles)
    return emitBlockOfTiles(panel, run, rows);
  emitStores(panel, run, rows, emitSums(panel, run, rows, source));
}

ProductEmitter::RowsOfA ProductEmitter::rowsOfA(const Run &run, const Rows &rows) {
  bool isTransposed = product.getTransposeA();
  if (copyA)
    return {multiply(rows.place, blocking.blockOfCopyA), isTransposed ? group : blocking.depthOfCopyA,
            isTransposed ? blocking.widthOfCopyA : 1};
  int64_t lda = product.getLda(), stride = isTransposed ? 1 : lda, step = lda / stride;
  return {add(ofA, add(multiply(rows.first, stride), multiply(run.begin, step))), stride, step};
}

ProductEmitter::Values ProductEmitter::emitSums(const Panel &panel, const Run &run, const Rows &rows,
                                                Source source) {
  if (blocking.packing == ProductPacking::Registers)
    return emitSumsOfSquares(panel, run, rows);
  RowsOfA a = rowsOfA(run, rows);
  bool isTransposed = product.getTransposeA();
  // The panel's first column at the run's first element.
  Value firstB;
  if (source != Source::Copy)
    firstB = add(ofB, add(multiply(run.begin, product.getLdb()), panel.column));
  auto steps = [&](Value from, Value to, ValueRange sums, bool isHalf,
                   llvm::function_ref<void(Value)> asks = nullptr) {
    return loop(
        from, to, 1,
        [&](Value step, ValueRange sums) {
          Value atGiven = firstB ? add(firstB, multiply(step, group * product.getLdb())) : Value();
          Values line = emitLine(panel, atGiven, multiply(step, panel.vectors * blocking.lanes * group),
                                 source, isHalf);
          if (asks)
            asks(subtract(step, from));
          if (blocking.asksForColumns)
            prefetch(lhs, add(a.first, multiply(add(step, kStepsAhead), a.step)), /*isNear=*/true);
          if (blocking.asksForRows && isTransposed)
            prefetchNextLine(rows, a.first, step);
          // Row by row: one broadcast is alive at a time.
          Value atA = add(a.first, multiply(step, group * a.step));
          Values next;
          for (int64_t r = 0; r < rows.count; ++r) {
            Value factor = emitFactor(add(atA, r * a.stride), isHalf);
            for (int64_t v = 0; v < panel.vectors; ++v)
              next.push_back(multiplyAdd(factor, line[v], sums[r * panel.vectors + v]));
          }
          return next;
        },
        sums);
  };
  Value whole = quotient(run.depth, group);
  Values sums(rows.count * panel.vectors, zeros(sumType));
  // What is asked for, and where, takes time of a step: only those do that ask.
  Value from = index(0);
  auto ask = [&](int64_t count, llvm::function_ref<void(Value)> asks) {
    Value to = least(add(from, count), whole);
    sums = steps(from, to, sums, /*isHalf=*/false, asks);
    from = to;
  };
  if (rows.asked)
    ask(linesOfResult(panel, rows), [&](Value step) { prefetchResult(panel, rows, step); });
  if (rows.ahead.first)
    ask(rows.ahead.steps, [&](Value step) { prefetchAhead(rows.ahead, step); });
  if (blocking.asksForRows && !isTransposed)
    ask(linesOfRun() * rows.count, [&](Value step) { prefetchNextRows(rows, a.first, step); });
  sums = steps(from, whole, sums, /*isHalf=*/false);
  // An element without a partner, at most once: only the last run may have one.
  if (product.getK() % group)
    sums = steps(whole, quotient(run.depth, group, /*up=*/true), sums, /*isHalf=*/true);
  return sums;
}

ProductEmitter::Values ProductEmitter::emitSumsOfSquares(const Panel &panel, const Run &run,
                                                         const Rows &rows) {
  RowsOfA a = rowsOfA(run, rows);
  int64_t elements = blocking.lanes * group, rest = product.getK() % elements;
  Value firstB = add(ofB, add(multiply(panel.column, product.getLdb()), run.begin));
  auto steps = [&](Value from, Value to, ValueRange sums, int64_t count) {
    return loop(
        from, to, elements,
        [&](Value step, ValueRange before) {
          Values sums(before);
          Value atA = add(a.first, multiply(step, a.step));
          // Of each column what is read soon or, behind its end, where the next panel's begins.
          int64_t near = kAheadOfColumn / bytes,
                  far = near - product.getK() + blocking.lanes * product.getLdb();
          Value isBehind = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                                 add(add(run.begin, step), near), index(product.getK()));
          Value ahead = arith::SelectOp::create(b, isBehind, index(far), index(near));
          for (int64_t v = 0; v < panel.vectors; ++v) {
            Value at = add(add(firstB, step), v * blocking.lanes * product.getLdb());
            Values lines = emitSquare(panel, v, at, count, add(at, ahead));
            for (int64_t l = 0; l < count; l += group)
              for (int64_t r = 0; r < rows.count; ++r) {
                Value &sum = sums[r * panel.vectors + v];
                Value factor = emitFactor(add(atA, l * a.step + r * a.stride), /*isHalf=*/l + group > count);
                sum = multiplyAdd(factor, lines[l / group], sum);
              }
          }
          return sums;
        },
        sums);
  };
  Value whole = rest ? multiply(quotient(run.depth, elements), elements) : run.depth;
  Values sums = steps(index(0), whole, Values(rows.count * panel.vectors, zeros(sumType)), elements);
  // At most once: only the last run is no multiple.
  return rest ? steps(whole, run.depth, sums, rest) : sums;
}

ProductEmitter::Values ProductEmitter::emitLine(const Panel &panel, Value atGiven, Value atCopy,
                                                Source source, bool isHalf) {
  Values line;
  int64_t inVector = blocking.lanes * group;
  for (int64_t v = 0; v < panel.vectors; ++v) {
    if (source == Source::Copy) {
      Value at = add(inCopy(atCopy), v * inVector);
      if (blocking.asksForCopy)
        prefetch(copy, add(at, kStepsAhead * panel.vectors * inVector), /*isNear=*/true);
      line.push_back(inType(load(VectorType::get({inVector}, copied), copy, at, inVector), multiplied));
      continue;
    }
    line.push_back(loadLine(add(atGiven, v * blocking.lanes), lanesOf(panel, v), isHalf));
  }
  if (source == Source::GivenAndCopied)
    for (int64_t v = 0; v < panel.vectors; ++v) {
      for (int64_t element = 0; element < group && v * blocking.lanes % inCacheLine() == 0; ++element)
        prefetch(rhs, add(atGiven, (kAhead + element) * product.getLdb() + v * blocking.lanes),
                 /*isNear=*/true);
      store(line[v], copy, add(inCopy(atCopy), v * inVector), inVector);
    }
  return line;
}

Value ProductEmitter::loadLine(Value at, int64_t lanes, bool isHalf) {
  auto type = VectorType::get({blocking.lanes}, stored);
  Value some = load(type, rhs, at, lanes);
  if (group == 1)
    return inType(some, copied);
  Value other = isHalf ? zeros(type) : load(type, rhs, add(at, product.getLdb()), lanes);
  return vector::InterleaveOp::create(b, some, other);
}

Value ProductEmitter::emitFactor(Value at, bool isHalf) {
  Value from = copyA ? copyA : lhs, element;
  if (group == 1 || (isHalf && !copyA))
    element = memref::LoadOp::create(b, from, at);
  if (group == 1)
    return vector::BroadcastOp::create(b, lineType, element);
  // Two as one integer; what would follow the last element belongs to another line.
  Value pair;
  if (element) {
    pair = arith::ExtUIOp::create(b, b.getI32Type(), element);
  } else {
    Value two = load(VectorType::get({2}, stored), from, at, 2);
    Value one = vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), two);
    pair = vector::ExtractOp::create(b, one, ArrayRef<int64_t>{0});
  }
  Value all = vector::BroadcastOp::create(b, VectorType::get({blocking.lanes}, b.getI32Type()), pair);
  return vector::BitCastOp::create(b, lineType, all);
}

Value ProductEmitter::inType(Value read, Type type) {
  return getElementTypeOrSelf(read) == type ? read : extend(read, product.getOperands());
}

Value ProductEmitter::extend(Value bits, Type type) {
  auto narrow = cast<VectorType>(bits.getType()).clone(type);
  Value read = vector::BitCastOp::create(b, narrow, bits);
  return arith::ExtFOp::create(b, narrow.clone(b.getF32Type()), read);
}

Value ProductEmitter::multiplyAdd(Value factor, Value line, Value sum) {
  if (group == 1)
    return vector::FMAOp::create(b, factor, line, sum);
  auto type = VectorType::get({blocking.lanes * group}, b.getBF16Type());
  Value operands[] = {sum, vector::BitCastOp::create(b, type, factor),
                      vector::BitCastOp::create(b, type, line)};
  return LLVM::CallIntrinsicOp::create(b, sumType, b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       operands)
      .getResult(0);
}
