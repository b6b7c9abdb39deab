//===- Enums.h - choices that several dialects have -------------*- C++ -*-===//
//
// See Enums.td. A phase is one of F, B and W of a training step, or E, an evaluation.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_ENUMS_H
#define DSOPT_INTERFACES_ENUMS_H

#include "mlir/IR/BuiltinAttributes.h"

#include "dsopt/Interfaces/Enums.h.inc"

#endif // DSOPT_INTERFACES_ENUMS_H
