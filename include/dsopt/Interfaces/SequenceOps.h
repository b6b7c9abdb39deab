//===- SequenceOps.h - operations that mix positions ------------*- C++ -*-===//
//
// The interfaces by which sequence shards are written and verified (SequenceOpInterface.td).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_SEQUENCEOPS_H
#define DSOPT_INTERFACES_SEQUENCEOPS_H

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
} // namespace dsopt

#include "dsopt/Interfaces/SequenceOpInterface.h.inc"

#endif // DSOPT_INTERFACES_SEQUENCEOPS_H
