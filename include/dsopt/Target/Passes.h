//===- Passes.h - the target's passes ---------------------------*- C++ -*-===//
//
// Declarations and registration of what Passes.td defines.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TARGET_PASSES_H
#define DSOPT_TARGET_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "dsopt/Target/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TARGET_PASSES_H
