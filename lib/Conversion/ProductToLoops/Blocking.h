//===- Blocking.h - how a product's kernel is cut ---------------*- C++ -*-===//
//
// A kernel computes its result in blocks that fit the registers: some rows by some
// vectors. Panels of such blocks are its units of work. All of it follows from the
// product and the processor's vectors. None of it changes a bit: each element is one
// chain of fused multiplications and additions for kDepth elements of the contraction at
// a time, from 0, and these sums are added in order.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H
#define DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H

#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/CompiledProducts.h"
#include <optional>

namespace dsopt {

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

/// Where a kernel reads b from.
enum class Packing {
  None,      ///< where it lies
  Fused,     ///< the first block of rows copies a panel as it reads it, the others read the copy
  Transpose, ///< from a copy of the panel, made before: b lies as its transpose
  Registers, ///< the same where few rows read it: from registers, a square of it at a time
};

struct Blocking {
  /// Elements of the contraction that one chain adds. Part of the bits; parts of products begin at multiples.
  static constexpr int64_t kDepth = 1024;

  int64_t lanes = 0; ///< of a vector
  Panels rows;       ///< of rows
  Panels columns;    ///< of vectors; the last vector may have fewer columns
  /// Of blocks of rows: what all columns are computed for, one after the other.
  Panels bands;
  bool copiesA = false; ///< a band of a is copied before, block of rows by block of rows
  /// Panels of columns whose sums of runs are kept in fp32 until the last, for a result of less; 0: none are.
  int64_t panelsApart = 0;
  Packing packing = Packing::None;
  /// A block asks for the lines of a result that is stored before it has the sums, of the block of rows that
  /// is so many further on; none: it does not.
  std::optional<int64_t> resultAhead;

  /// What the kernel's range counts: blocks of rows of vectors of panels of columns of bands of matrices. A
  /// block of a panel is done by who has the first of its vectors, so that equal parts of the range are equal
  /// work.
  int64_t range(exec::ProductAttr product) const { return product.count() * columns.extent() * rows.count; }
};

/// Whether a product has a kernel of its own.
inline bool isCompiled(exec::ProductAttr product, TargetAttr target) {
  return compilesProducts(target, product.getOperands(), product.getResult());
}
/// For one that it can be compiled for.
Blocking chooseBlocking(exec::ProductAttr product, TargetAttr target);

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_BLOCKING_H
