//===- LocalStep.h - updates by which ranks move apart ----------*- C++ -*-===//
//
// The operations, and the kernels that rules have for several kinds of steps.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_LOCALSTEP_H
#define DSOPT_DIALECT_GRAPH_LOCALSTEP_H

#include "dsopt/Dialect/Graph/Graph.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphLocalStepOps.h.inc"

namespace dsopt::graph {
/// On a kernel of a step by which ranks move apart: which of its results is how far this rank is from the
/// common point, its master (i64).
inline constexpr llvm::StringLiteral kOffsetAttr = "graph.offset";
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_LOCALSTEP_H
