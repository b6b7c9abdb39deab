//===- Passes.h - stage 2: blocks, backward, update -------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_AUTODIFF_PASSES_H
#define DSOPT_TRANSFORMS_AUTODIFF_PASSES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_AUTODIFF_PASSES_H
