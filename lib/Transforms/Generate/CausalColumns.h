//===- CausalColumns.h - proof that no row reads a later one ----*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_GENERATE_CAUSALCOLUMNS_H
#define DSOPT_LIB_TRANSFORMS_GENERATE_CAUSALCOLUMNS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace dsopt {
/// Proves of a softmax over scaled products, whose operands behind the first are `columns` and what is added,
/// that what is added hides each column behind a row's own. Emits an error and fails where it does not, or
/// where nobody knows. Private to this folder.
llvm::LogicalResult proveCausal(mlir::Operation *op, llvm::ArrayRef<unsigned> columns);
} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_GENERATE_CAUSALCOLUMNS_H
