//===- Passes.h - programs, from first principles ---------------*- C++ -*-===//
#ifndef DSOPT_VERIFY_PASSES_H
#define DSOPT_VERIFY_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Verify/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Verify/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_VERIFY_PASSES_H
