//===- ProductEmitter.h - the loops of a product's kernel -------*- C++ -*-===//
//
// Fills the body of a kernel, from the outermost loop to the innermost: matrices of the
// batch, bands of rows, panels of columns, runs of Blocking::kDepth elements of the
// contraction, blocks of rows, and elements of the run, whose loop carries the block's
// sums in registers.
//
// A lane of a vector of b is 32 bits: one float, or two neighbours along the contraction
// in bf16, which one instruction multiplies and adds. `group` is how many. What is widened
// has other types in memory than in copies and registers.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTEMITTER_H
#define DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTEMITTER_H

#include "Blocking.h"
#include "KernelBuilder.h"

namespace dsopt {

class ProductEmitter : KernelBuilder {
public:
  /// `function` has no body yet; if it `packs`, its body is to be emitPacking's.
  ProductEmitter(mlir::func::FuncOp function, exec::ProductAttr given, const Blocking &blocking, bool packs);
  void emit();
  /// Packs b for the product: panel by panel, each run's lines behind those of the run before.
  void emitPacking();

private:
  /// Some blocks of rows: `count` of them from `first` on.
  struct Band {
    mlir::Value first;
    int64_t count;
  };
  /// A panel of columns: `vectors` from `column` on, of which the last may have but some lanes.
  struct Panel {
    mlir::Value column;
    int64_t vectors;
    bool isCut;
    mlir::Value place;             ///< among all
    mlir::Value skipped = nullptr; ///< vectors of the panel before these; null: none
  };
  /// A run of the contraction: `depth` elements from `begin` on.
  struct Run {
    mlir::Value begin, depth, isFirst, isLast; ///< the last two null: it is the only one
  };
  /// Cache lines of the next panel of b that a block asks for: `perStep` in each of the first `steps` of its
  /// loop, from `place` on of all of them. `inner` of these belong to an element of the contraction or, of a
  /// b that lies transposed, to a line of each column.
  struct Ahead {
    mlir::Value first; ///< element of the panel; null: none are asked for
    mlir::Value place;
    int64_t steps = 0, perStep = 0, inner = 0;
  };
  /// A block's rows: `count` from `first` on, the block's place in its band.
  struct Rows {
    mlir::Value first;
    int64_t count;
    mlir::Value place;
    Ahead ahead = {};
    mlir::Value skipped = nullptr; ///< rows of the block before these; null: none
    mlir::Value asked = nullptr;   ///< first of those whose result is asked for in steps; null: it is not
  };
  /// Of a, or of its copy, a block's rows at a run's first element: a row's distance to the next, an
  /// element's.
  struct RowsOfA {
    mlir::Value first;
    int64_t stride, step;
  };
  /// Where a block's line of b comes from.
  enum class Source { Given, GivenAndCopied, Copy };

  void emitMatrix(mlir::Value low, mlir::Value high);
  void emitBand(const Band &band, mlir::Value low, mlir::Value high);
  /// Runs of panels whose sums are kept meanwhile, where that is asked for: from the group's first on.
  void emitRuns(const Band &band, mlir::Value low, mlir::Value high);
  void emitPanel(const Band &band, const Panel &panel, const Run &run, mlir::Value firstRow,
                 mlir::Value lastRow);
  /// The panel that a unit of the band's range belongs to, the one behind those of the units up to `end`, and
  /// a panel's first unit.
  mlir::Value panelAt(const Band &band, mlir::Value unit);
  mlir::Value endOfPanels(const Band &band, mlir::Value end);
  mlir::Value firstUnit(const Band &band, mlir::Value panel);
  void overColumns(const Band &band, mlir::Value low, mlir::Value high,
                   llvm::function_ref<void(const Panel &, mlir::Value firstRow, mlir::Value lastRow)> body);
  void overRuns(llvm::function_ref<void(const Run &)> body);
  /// A loop over whichever of panels [first, last) there are, by size; with `cutsLast` the last is one of its
  /// own.
  void
  overPanels(const Panels &panels, mlir::Value first, mlir::Value last,
             llvm::function_ref<void(mlir::Value place, mlir::Value start, int64_t size, bool isLast)> body,
             bool cutsLast = false);

  void emitBlock(const Panel &panel, const Run &run, Rows rows, Source source);
  Values emitSums(const Panel &panel, const Run &run, const Rows &rows, Source source);
  /// The same with b from registers.
  Values emitSumsOfSquares(const Panel &panel, const Run &run, const Rows &rows);
  RowsOfA rowsOfA(const Run &run, const Rows &rows);
  /// The same, and stores, of sums that are kept in a buffer.
  void emitBlockOfLines(const Panel &panel, const Run &run, const Rows &rows); // ProductLines.cpp
  // ProductTiles.cpp: the same in AMX's tiles.
  void emitBlockOfTiles(const Panel &panel, const Run &run, const Rows &rows);
  void emitSumsOfTiles(const Panel &panel, const Run &run, const Rows &rows);
  void emitCopyOfTiles(const Band &band, const Run &run);
  /// The line of a panel at a group of the contraction; with `isHalf` of the group's first element alone.
  Values emitLine(const Panel &panel, mlir::Value atGiven, mlir::Value atCopy, Source source, bool isHalf);
  /// What b has of a vector's columns there, where it lies.
  mlir::Value loadLine(mlir::Value at, int64_t lanes, bool isHalf);
  /// A group of a's elements in all lanes.
  mlir::Value emitFactor(mlir::Value at, bool isHalf);
  mlir::Value multiplyAdd(mlir::Value factor, mlir::Value line, mlir::Value sum);
  /// Elements of a or b that were read, as a type of them.
  mlir::Value inType(mlir::Value read, mlir::Type type);
  /// The bits of floats of a type, in fp32.
  mlir::Value extend(mlir::Value bits, mlir::Type type);

  // ProductResults.cpp
  /// What one vector has of a line of the result.
  struct Line {
    mlir::Value at;
    int64_t lanes;
  };
  void emitStores(const Panel &panel, const Run &run, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);
  /// Asks for one of the lines of a block's result; how many there are.
  void prefetchResult(const Panel &panel, const Rows &rows, mlir::Value line);
  int64_t linesOfResult(const Panel &panel, const Rows &rows) const {
    return panel.vectors * (blocking.swaps ? blocking.lanes : rows.count);
  }
  /// Where a block's sums belong.
  llvm::SmallVector<Line> linesOf(const Panel &panel, const Rows &rows);
  /// A block's sums, row by row, as the result's lines, and such lines as sums: with swaps they are turned.
  Values toLines(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);
  Values fromLines(const Panel &panel, const Rows &rows, Values lines);
  /// What is turned at a time: `count` rows from `row` on of one of the vectors.
  void overSquares(const Panel &panel, const Rows &rows,
                   llvm::function_ref<void(int64_t row, int64_t count, int64_t vector)> body);
  /// Sums added to what lies in `from`, the result or what lies as it does.
  Values addResult(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums, mlir::Value from);
  /// Complete sums with the bias, if there is one.
  Values addBias(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);
  void storeSums(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);
  /// Elements of the result's type, some or one in all lanes, in fp32.
  mlir::Value readC(mlir::Value buffer, mlir::Value at, int64_t lanes);
  mlir::Value broadcastC(mlir::Value buffer, mlir::Value at);
  /// Sums of runs in fp32, where the result is narrower: added to those before, and kept.
  mlir::Value placeApart(const Panel &panel, const Rows &rows, int64_t row, int64_t vector);
  Values loadApart(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);
  void storeApart(const Panel &panel, const Rows &rows, mlir::ArrayRef<mlir::Value> sums);

  /// Where a packed b has a panel's lines of a run, and an element of the copy that kernels have now.
  mlir::Value packedAt(const Panel &panel, const Run &run);
  mlir::Value inCopy(mlir::Value at);

  // ProductCopies.cpp
  void emitCopy(const Panel &panel, const Run &run);
  void emitTransposedCopy(const Panel &panel, const Run &run);
  /// What a vector's columns have of `count` elements of the contraction from `at` on, as lines; `at` is the
  /// first column's. With `ahead`, as `at`, it asks for an element of each.
  Values emitSquare(const Panel &panel, int64_t vector, mlir::Value at, int64_t count,
                    mlir::Value ahead = nullptr);
  void emitCopyOfA(const Band &band, const Run &run);
  void emitTurnedCopyOfA(const Band &band, const Run &run);
  /// The first row of the band's block at a place, and how many there are.
  std::pair<mlir::Value, mlir::Value> rowsOfBlock(const Band &band, mlir::Value place);
  /// What a block asks for of the lines of b that are read next.
  Ahead linesAhead(const Band &band, const Panel &panel, const Run &run, const Rows &rows);
  void prefetchAhead(const Ahead &ahead, mlir::Value step);
  /// Elements of a cache line, and the lines of the longest run of a row.
  int64_t inCacheLine() const { return 64 / bytes; }
  int64_t linesOfRun() const { return (depth + inCacheLine() - 1) / inCacheLine(); }
  /// Asks for one of the lines of a's rows that the next block reads; `first` is this one's first element. Of
  /// an a that lies transposed rows share lines: of each of its lines for the last of the block's.
  void prefetchNextRows(const Rows &rows, mlir::Value first, mlir::Value step);
  void prefetchNextLine(const Rows &rows, mlir::Value first, mlir::Value step);

  int64_t lanesOf(const Panel &panel, int64_t vector) const {
    return panel.isCut && vector + 1 == panel.vectors ? tail : blocking.lanes;
  }

  exec::ProductAttr product; ///< as it is computed; its result's lines may be another's (`ldc`)
  Blocking blocking;
  int64_t ldc;               ///< between the result's lines
  int64_t group;             ///< elements of the contraction in a lane
  int64_t bytes;             ///< of an element of a and b
  mlir::Type stored;         ///< f32, or i16 for the bits of less
  mlir::Type multiplied;     ///< what they are in registers, and in a's copy
  mlir::Type copied;         ///< what they are in b's copy: a packed one is not widened
  mlir::VectorType sumType;  ///< of a vector of sums
  mlir::VectorType lineType; ///< of a vector of a line of b: as many lanes
  int64_t tail;              ///< columns of the last vector
  int64_t depth;             ///< of the longest run
  mlir::Value firstCopy;     ///< of the panel and run, where b is packed; else null
  mlir::Value firstApart;    ///< the first panel whose sums are kept now
  mlir::Value low, high, lhs, rhs, addend, bias, result, accumulates, copy, copyA, apart, blockSums, restOfA;
  mlir::Value ofA, ofB, ofC; ///< where the matrix begins
};

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_PRODUCTEMITTER_H
