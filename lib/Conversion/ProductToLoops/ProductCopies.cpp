//===- ProductCopies.cpp - what a product's kernel copies -----------------===//

#include "ProductEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;

/// Lines of a that are asked for before they are copied.
static constexpr int64_t kLinesAhead = 8;

std::pair<Value, Value> ProductEmitter::rowsOfBlock(const Band &band, Value place) {
  int64_t size = blocking.rows.size, larger = blocking.rows.larger;
  Value block = add(band.first, place), row = multiply(block, size), count = index(size);
  if (larger) {
    row = add(row, least(block, index(larger)));
    Value isLarger = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block, index(larger));
    count = arith::SelectOp::create(b, isLarger, index(size + 1), count);
  }
  return {row, count};
}

void ProductEmitter::emitCopyOfA(const Band &band, const Run &run) {
  if (blocking.inTiles)
    return emitCopyOfTiles(band, run);
  if (product.getTransposeA())
    return emitTurnedCopyOfA(band, run);
  int64_t lanes = blocking.lanes, rest = product.getK() % lanes;
  auto type = VectorType::get({lanes}, stored);
  Value whole = rest ? multiply(quotient(run.depth, lanes), lanes) : run.depth;
  loop(index(0), index(band.count), 1, [&](Value place, ValueRange) {
    auto [first, count] = rowsOfBlock(band, place);
    Value block = multiply(place, blocking.blockOfCopyA);
    loop(index(0), count, 1, [&, first = first](Value row, ValueRange) {
      Value from = add(ofA, add(multiply(add(first, row), product.getLda()), run.begin));
      Value to = add(block, multiply(row, blocking.depthOfCopyA));
      auto copySome = [&](Value begin, Value end, int64_t some) {
        loop(begin, end, lanes, [&](Value at, ValueRange) {
          store(inType(load(type, lhs, add(from, at), some), multiplied), copyA, add(to, at), lanes);
          return Values();
        });
      };
      copySome(index(0), whole, lanes);
      // At most once: only the last run is no multiple.
      if (rest)
        copySome(whole, run.depth, rest);
      return Values();
    });
    return Values();
  });
}

void ProductEmitter::emitTurnedCopyOfA(const Band &band, const Run &run) {
  int64_t width = blocking.widthOfCopyA, size = blocking.rows.size, larger = blocking.rows.larger;
  // The first blocks may be as wide as their copies: a cache line has several of them.
  int64_t wide = size == width ? blocking.rows.count : size + 1 == width ? larger : 0;
  int64_t together = std::max<int64_t>(inCacheLine() / width, 1);
  bool areAllWide = wide == blocking.rows.count;
  auto copySome = [&](Value line, Value step, Value place, int64_t blocks, bool isMasked, bool isHalf) {
    auto [row, count] = rowsOfBlock(band, place);
    // The same of later lines, which lie too far apart for the processor to see it coming.
    for (int64_t element = 0; element < group; ++element)
      prefetch(lhs, add(add(line, (kLinesAhead * group + element) * product.getLda()), row));
    auto type = VectorType::get({width * blocks}, stored);
    auto read = [&, count = count](Value at) -> Value {
      if (!isMasked)
        return vector::LoadOp::create(b, type, lhs, at);
      Value lanes =
          arith::ConstantOp::create(b, b.getIndexVectorAttr(llvm::to_vector(llvm::seq<int64_t>(width))));
      Value end = vector::BroadcastOp::create(b, VectorType::get({width}, b.getIndexType()), count);
      Value mask = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lanes, end);
      return vector::MaskedLoadOp::create(b, type, lhs, at, mask, zeros(type));
    };
    Value at = add(line, row), some = inType(read(at), multiplied);
    if (group == 2)
      some = vector::InterleaveOp::create(b, some, isHalf ? zeros(type) : read(add(at, product.getLda())));
    Value to = add(multiply(place, blocking.blockOfCopyA), multiply(step, width * group));
    for (int64_t i = 0; i < blocks; ++i) {
      auto ofBlock = llvm::to_vector(llvm::seq(i * width * group, (i + 1) * width * group));
      Value one = blocks == 1 ? some : vector::ShuffleOp::create(b, some, some, ofBlock).getResult();
      vector::StoreOp::create(b, one, copyA, add(to, i * blocking.blockOfCopyA));
    }
  };
  // Line by line: what blocks of rows have of a line is side by side.
  auto copyLines = [&](Value from, Value to, bool isHalf) {
    loop(from, to, 1, [&](Value step, ValueRange) {
      Value line = add(ofA, multiply(add(run.begin, multiply(step, group)), product.getLda()));
      Value done = index(0);
      if (wide && together > 1) {
        Value ofBand = areAllWide
                           ? index(band.count)
                           : least(most(subtract(index(wide), band.first), index(0)), index(band.count));
        done = multiply(quotient(ofBand, together), together);
        loop(index(0), done, together, [&](Value place, ValueRange) {
          copySome(line, step, place, together, /*isMasked=*/false, isHalf);
          return Values();
        });
      }
      loop(done, index(band.count), 1, [&](Value place, ValueRange) {
        copySome(line, step, place, 1, /*isMasked=*/!areAllWide, isHalf);
        return Values();
      });
      return Values();
    });
  };
  Value whole = quotient(run.depth, group);
  copyLines(index(0), whole, /*isHalf=*/false);
  if (product.getK() % group)
    copyLines(whole, quotient(run.depth, group, /*up=*/true), /*isHalf=*/true);
}

ProductEmitter::Values ProductEmitter::emitSquare(const Panel &panel, int64_t vector, Value at, int64_t count,
                                                  Value ahead) {
  // A lane may be of 16 bits where they are packed but not paired.
  int64_t bits = copied.getIntOrFloatBitWidth() * group;
  auto type = VectorType::get({blocking.lanes * group}, stored);
  auto lanesType = VectorType::get({blocking.lanes}, b.getIntegerType(bits));
  Values columns(blocking.lanes, zeros(lanesType));
  for (int64_t column = 0; column < lanesOf(panel, vector); ++column) {
    Value from = add(at, column * product.getLdb());
    if (ahead)
      prefetch(rhs, add(ahead, column * product.getLdb()));
    columns[column] = vector::BitCastOp::create(b, lanesType, inType(load(type, rhs, from, count), copied));
  }
  columns = transpose(columns);
  for (Value &line : columns)
    line = vector::BitCastOp::create(b, type.clone(copied), line);
  return columns;
}

void ProductEmitter::emitCopy(const Panel &panel, const Run &run) {
  Value firstB = add(ofB, add(multiply(run.begin, product.getLdb()), panel.column));
  int64_t inLine = panel.vectors * blocking.lanes * group;
  auto copyLines = [&](Value from, Value to, bool isHalf) {
    loop(from, to, 1, [&](Value step, ValueRange) {
      emitLine(panel, add(firstB, multiply(step, group * product.getLdb())), multiply(step, inLine),
               Source::GivenAndCopied, isHalf);
      return Values();
    });
  };
  Value whole = quotient(run.depth, group), end = quotient(run.depth, group, /*up=*/true);
  copyLines(index(0), whole, /*isHalf=*/false);
  if (product.getK() % group)
    copyLines(whole, end, /*isHalf=*/true);
  if (blocking.inTiles && product.getK() % Blocking::kTileDepth) {
    Value filled =
        multiply(quotient(run.depth, Blocking::kTileDepth, /*up=*/true), Blocking::kTileDepth / group);
    loop(multiply(end, inLine), multiply(filled, inLine), blocking.lanes * group, [&](Value at, ValueRange) {
      store(zeros(lineType), copy, inCopy(at), blocking.lanes * group);
      return Values();
    });
  }
}

void ProductEmitter::emitTransposedCopy(const Panel &panel, const Run &run) {
  int64_t lanes = blocking.lanes, elements = lanes * group, rest = product.getK() % elements;
  Value firstB = add(ofB, add(multiply(panel.column, product.getLdb()), run.begin));
  // `count` elements of the contraction of each column, from `first` on.
  auto copySome = [&](Value first, int64_t count) {
    Value firstLine = multiply(quotient(first, group), panel.vectors * elements);
    for (int64_t v = 0; v < panel.vectors; ++v) {
      Value at = add(add(firstB, first), v * lanes * product.getLdb());
      Values lines = emitSquare(panel, v, at, count);
      // With what fills a tile up, or what there is.
      for (int64_t line = 0; line < (blocking.inTiles ? lanes : (count + group - 1) / group); ++line)
        store(lines[line], copy, inCopy(add(firstLine, (line * panel.vectors + v) * elements)), elements);
    }
  };
  Value whole = rest ? multiply(quotient(run.depth, elements), elements) : run.depth;
  loop(index(0), whole, elements, [&](Value first, ValueRange) {
    copySome(first, elements);
    return Values();
  });
  // At most once: only the last run is no multiple.
  if (rest)
    loop(whole, run.depth, elements, [&](Value first, ValueRange) {
      copySome(first, rest);
      return Values();
    });
}

ProductEmitter::Ahead ProductEmitter::linesAhead(const Band &band, const Panel &panel, const Run &run,
                                                 const Rows &rows) {
  int64_t inLine = inCacheLine(), columns = panel.vectors * blocking.lanes;
  bool isTransposed = product.getTransposeB();
  Ahead ahead;
  // Of each element of the contraction the lines that hold the panel's columns, one more where these begin
  // within one; or of each column those that hold the run.
  ahead.inner = isTransposed ? columns : columns / inLine + 1;
  int64_t total = ahead.inner * (isTransposed ? linesOfRun() : depth);
  // Each block asks for its part, one a step while there are steps.
  int64_t part = (total + band.count - 1) / band.count, steps = (depth + group - 1) / group;
  ahead.perStep = (part + steps - 1) / steps;
  ahead.steps = (part + ahead.perStep - 1) / ahead.perStep;
  ahead.place = multiply(rows.place, part);
  Value next = add(panel.column, columns);
  ahead.first = add(ofB, add(multiply(run.begin, isTransposed ? 1 : product.getLdb()),
                             multiply(next, isTransposed ? product.getLdb() : 1)));
  return ahead;
}

void ProductEmitter::prefetchAhead(const Ahead &ahead, Value step) {
  int64_t inLine = inCacheLine(), leading = product.getLdb();
  bool isTransposed = product.getTransposeB();
  for (int64_t i = 0; i < ahead.perStep; ++i) {
    Value place = add(add(ahead.place, multiply(step, ahead.perStep)), i);
    Value outer = quotient(place, ahead.inner);
    Value inner = arith::RemUIOp::create(b, place, index(ahead.inner));
    prefetch(rhs, add(ahead.first, add(multiply(outer, isTransposed ? inLine : leading),
                                       multiply(inner, isTransposed ? leading : inLine))));
  }
}

void ProductEmitter::prefetchNextRows(const Rows &rows, Value first, Value step) {
  Value row = add(arith::RemUIOp::create(b, step, index(rows.count)), rows.count);
  Value line = multiply(quotient(step, rows.count), inCacheLine());
  prefetch(lhs, add(add(first, line), multiply(row, product.getLda())));
}

void ProductEmitter::prefetchNextLine(const Rows &rows, Value first, Value step) {
  prefetch(lhs, add(add(first, multiply(step, product.getLda())), 2 * rows.count - 1));
}
