//===- Passes.h - stage 4: where everything lives ---------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_PARALLEL_PASSES_H
#define DSOPT_TRANSFORMS_PARALLEL_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Parallel/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_PARALLEL_PASSES_H
