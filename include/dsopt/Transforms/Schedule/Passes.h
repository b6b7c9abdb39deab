//===- Passes.h - stage 6: when it runs -------------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_SCHEDULE_PASSES_H
#define DSOPT_TRANSFORMS_SCHEDULE_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Schedule/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_SCHEDULE_PASSES_H
