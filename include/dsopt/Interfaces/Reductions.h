//===- Reductions.h - how gradients are added over ranks --------*- C++ -*-===//
#ifndef DSOPT_INTERFACES_REDUCTIONS_H
#define DSOPT_INTERFACES_REDUCTIONS_H

#include "mlir/IR/BuiltinAttributes.h"

#include "dsopt/Interfaces/Reductions.h.inc"

#endif // DSOPT_INTERFACES_REDUCTIONS_H
