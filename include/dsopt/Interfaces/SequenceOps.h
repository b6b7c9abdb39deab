//===- SequenceOps.h - operations that mix positions ------------*- C++ -*-===//
//
// The interfaces by which sequence shards are written and verified (SequenceOpInterface.td).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_SEQUENCEOPS_H
#define DSOPT_INTERFACES_SEQUENCEOPS_H

#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

#include "dsopt/Interfaces/SequenceOpInterface.h.inc"

#endif // DSOPT_INTERFACES_SEQUENCEOPS_H
