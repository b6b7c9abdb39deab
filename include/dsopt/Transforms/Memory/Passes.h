//===- Passes.h - stage 5: what fits ----------------------------*- C++ -*-===//
#ifndef DSOPT_TRANSFORMS_MEMORY_PASSES_H
#define DSOPT_TRANSFORMS_MEMORY_PASSES_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "mlir/Pass/Pass.h"

namespace dsopt {
#define GEN_PASS_DECL
#include "dsopt/Transforms/Memory/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

#endif // DSOPT_TRANSFORMS_MEMORY_PASSES_H
