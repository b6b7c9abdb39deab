//===- Passes.h - stage 3: kernels and blocks -------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_FUSE_PASSES_H
#define DSOPT_TRANSFORMS_FUSE_PASSES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Fuse/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Fuse/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_FUSE_PASSES_H
