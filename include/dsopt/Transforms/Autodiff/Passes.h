//===- Passes.h - stage 2: blocks, backward, update -------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_AUTODIFF_PASSES_H
#define DSOPT_TRANSFORMS_AUTODIFF_PASSES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
/// The functions of a module after this stage, and the one before it.
inline constexpr llvm::StringLiteral kForwardFunction = "forward";
inline constexpr llvm::StringLiteral kMicroBatchFunction = "micro_batch";
inline constexpr llvm::StringLiteral kUpdateFunction = "update";
inline constexpr llvm::StringLiteral kEvaluateFunction = "evaluate";

#define GEN_PASS_DECL
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Autodiff/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_AUTODIFF_PASSES_H
