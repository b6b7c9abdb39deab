//===- Passes.h - from training's graph to one that generates ---*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_GENERATE_PASSES_H
#define DSOPT_TRANSFORMS_GENERATE_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Generate/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Generate/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_GENERATE_PASSES_H
