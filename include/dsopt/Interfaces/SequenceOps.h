//===- SequenceOps.h - operations that mix positions ------------*- C++ -*-===//
//
// The interfaces by which sequence shards are written and verified (SequenceOpInterface.td).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_SEQUENCEOPS_H
#define DSOPT_INTERFACES_SEQUENCEOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace dsopt {
/// Products are scaled; if `causal`, row t reads columns 0 to t + `begin`.
struct SequenceSoftmax {
  mlir::FloatAttr scale;
  bool causal = false;
  int64_t begin = 0;
};
/// What rows of several sequences bring, each of them at a position of a slot: the operation's operands for
/// them, of columns the heads that there are, and where columns are kept.
struct PlacedRows {
  llvm::SmallVector<mlir::Value> operands;
  mlir::Value slots, positions;
  llvm::SmallVector<mlir::FlatSymbolRefAttr> caches; ///< of each operand that columns are of
};
} // namespace dsopt

#include "dsopt/Interfaces/SequenceOpInterface.h.inc"

#endif // DSOPT_INTERFACES_SEQUENCEOPS_H
