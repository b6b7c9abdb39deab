//===- Passes.h - values and parameters over tensor shards ------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_PLACE_PASSES_H
#define DSOPT_TRANSFORMS_PLACE_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
}

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Place/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Place/Passes.h.inc"

/// Attaches what passes ask of collectives on values: gradients and costs.
void registerValueCollectives(mlir::DialectRegistry &registry);
/// Attaches dist.attention's gradient, and what it is made of.
void registerSequenceAttention(mlir::DialectRegistry &registry);
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_PLACE_PASSES_H
