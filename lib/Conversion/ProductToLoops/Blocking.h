//===- Blocking.h - how a product's kernel is cut ---------------*- C++ -*-===//
//
// A kernel computes its result in blocks that fit the registers: some rows by some
// vectors. Panels of such blocks are its units of work. How large they are and what is
// copied is chosen (exec::BlockingAttr), by a model of the processor or by a table; the
// rest follows from it. None of it changes a bit: each element is one chain of fused
// multiplications and additions for kDepth elements of the contraction at a time, from 0,
// and these sums are added in order. In bf16 on a processor with AMX a link of the chain is what
// an instruction adds: kTileDepth elements. Operands of 16 bits that the processor does not multiply are
// copied in fp32, where the same holds.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H
#define DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H

#include "dsopt/Conversion/Products.h"
#include <optional>

namespace dsopt {

/// What of a processor decides.
struct Registers {
  int64_t lanes; ///< of a vector
  int64_t count; ///< AVX-512 and Arm have 32, what is before AVX-512 has 16
  bool isHalved; ///< a vector is computed in two halves: half as many bytes of operands are needed in a time
  /// The last cache is a mesh, and half as far as memory: Intel's processors with vectors of 512 bits, and
  /// code for whatever has them (x86-64-v4).
  bool isFar;
  explicit Registers(TargetAttr target);
  /// Rows whose sums fit beside a square of b and a factor.
  int64_t besideSquare() const { return count - lanes - 3; }
};

constexpr int64_t kFirstCache = 32 * 1024, kSecondCache = 1 << 20;

/// Bytes of an element of a and b, and of all of b.
int64_t bytesOf(exec::ProductAttr product);
int64_t bytesOfB(exec::ProductAttr product);
/// Whether sums of runs are kept in fp32 until the last, for a result of less.
bool keepsSums(exec::ProductAttr product);

/// An extent cut as evenly as can be: the first `larger` of `count` panels have `size + 1`, the rest `size`.
struct Panels {
  int64_t count = 1, size = 0, larger = 0;

  int64_t largest() const { return size + (larger != 0); }
  int64_t extent() const { return count * size + larger; }

  Panels() = default;
  /// None has more than `most`.
  Panels(int64_t extent, int64_t most)
      : count((extent + most - 1) / most), size(extent / count), larger(extent % count) {}
};

struct Blocking {
  /// As it is computed, of which all below is: with swaps the transposed one.
  exec::ProductAttr product;
  bool swaps = false;

  /// Elements of the contraction that one chain adds. Part of the bits; parts of products begin at multiples.
  static constexpr int64_t kDepth = 1024;

  /// Of AMX: rows of a tile, unless a product has fewer, and elements of the contraction that one has.
  static constexpr int64_t kTileRows = 16, kTileDepth = 32;

  int64_t lanes = 0;      ///< of a vector
  bool inTiles = false;   ///< a block's sums are tiles, each of a vector's columns
  bool isWidened = false; ///< copies are in fp32 of less: all of a, b but where it is packed
  Panels rows;            ///< of rows
  Panels columns;         ///< of vectors; the last vector may have fewer columns
  /// Of blocks of rows: what all columns are computed for, one after the other.
  Panels bands;
  /// A band of a is copied before, block of rows by block of rows; what lies transposed is turned.
  bool copiesA = false;
  /// Panels of columns whose sums of runs are kept in fp32 until the last, for a result of less; 0: none are.
  int64_t panelsApart = 0;
  exec::ProductPacking packing = exec::ProductPacking::None;
  /// A block asks for the lines of a result that is stored before it has the sums, of the block of rows that
  /// is so many further on; none: it does not.
  std::optional<int64_t> resultAhead;

  /// Of a choice with which there is no problem (problemOf).
  Blocking(exec::ProductAttr given, TargetAttr target, exec::BlockingAttr choice);

  /// What the kernel's range counts: blocks of rows of vectors of panels of columns of bands of matrices. A
  /// block of a panel is done by who has the first of its vectors, so that equal parts of the range are equal
  /// work.
  int64_t range() const { return product.count() * columns.extent() * rows.count; }

  /// A block asks for the rows of a that the next one reads.
  bool asksForRows = false;

  /// The lines of a result are asked for one in each of a block's first steps, for what is on its way from a
  /// far cache is counted; else all at once.
  bool asksInSteps = false;

  /// A step asks for lines that are read soon: of the copy of b, for which the first cache has no room; of an
  /// a that lies transposed.
  bool asksForCopy = false, asksForColumns = false;

  /// A block asks for its part of the lines of b that the next panel has.
  bool asksForLines = false;

  /// Lines of b, of pairs in 16 bits, that are read at a time where sums are kept in a buffer (Lines); 0:
  /// they are not.
  int64_t lines = 0;

  /// A panel of b is read from a copy, or packed.
  bool copiesB() const {
    return packing == exec::ProductPacking::Fused || packing == exec::ProductPacking::Transpose;
  }

  /// From one column's elements in a packed b to the next one's; 0: b is not packed.
  int64_t packedDepth = 0;

  /// Elements of a thread's scratch: a panel of b, a band of a by blocks of rows, sums that are kept.
  int64_t copyElements = 0, copyOfAElements = 0, apartElements = 0;
  /// With tiles or lines: a block's sums. With tiles: what its rows of a have that fill no tile.
  int64_t sumElements = 0, restElements = 0;
  int64_t widthOfCopyA = 0; ///< rows of a block, with what fills them up, of an a that is turned
  int64_t depthOfCopyA = 0; ///< elements from one row to the next, of one that lies as it is copied
  int64_t blockOfCopyA = 0; ///< elements from one block to the next
  /// Tiles that hold so many rows; those of the last one may be the one's before as well.
  static int64_t tilesOf(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }
  int64_t rowsOfTile() const { return std::min(rows.largest(), kTileRows); }
  int64_t bytesOfCopy = 0; ///< of an element of a copy
  /// All of it.
  int64_t scratchBytes() const;
};

/// What the model chooses for a product with a and b in each other's places, or as they are.
exec::BlockingAttr chooseBlocking(exec::ProductAttr product, TargetAttr target, bool swaps);

/// What the function of a kernel says (exec::kBlockingAttr), else the model's choice.
exec::BlockingAttr blockingOf(mlir::Operation *kernel, exec::ProductAttr product, TargetAttr target);

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H
