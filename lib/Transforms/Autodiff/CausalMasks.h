//===- CausalMasks.h - masks that are counted, not stored -------*- C++ -*-===//
//
// A mask of long sequences is no constant: it is computed from the numbers of rows and columns. What it says
// is found from the operations that make it. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_CAUSALMASKS_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_CAUSALMASKS_H

#include "mlir/IR/Value.h"

#include <optional>

namespace dsopt {

/// Two numbers that a mask has along its last two dimensions: `read` up to the column row + shift, `masked`
/// behind it.
struct CausalMask {
  int64_t shift;
  double read, masked;
};
/// What a mask of these rows and columns says, if it is made of counts by comparisons, arithmetic with
/// numbers and views alone; nothing where it is anything else.
std::optional<CausalMask> findCausalMask(mlir::Value mask, int64_t rows, int64_t columns);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_CAUSALMASKS_H
