//===- HiddenMatrices.h - parameters that only products read ----*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_HIDDENMATRICES_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_HIDDENMATRICES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace dsopt {
struct HiddenMatrix {
  bool rowsAreInputs; ///< a product sums over the rows
};

/// The parameters of rank 2 that nothing but matrix products of a function read, through transposes, casts
/// and reshapes that keep their shape; without that of the last product that reads a parameter, which makes
/// the model's output. Tensor shards are what they are part of.
llvm::DenseMap<mlir::StringAttr, HiddenMatrix> findHiddenMatrices(mlir::func::FuncOp function);
} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_HIDDENMATRICES_H
