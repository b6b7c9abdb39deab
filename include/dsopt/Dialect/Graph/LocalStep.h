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
/// On a rule by which ranks move apart: the flat kernels of a step that one rank makes by itself; of the same
/// before ranks meet, which leaves the parameter alone; and of their meeting.
inline constexpr llvm::StringLiteral kLocalKernelAttr = "graph.local_kernel",
                                     kLocalDirectionKernelAttr = "graph.local_direction_kernel",
                                     kJoinKernelAttr = "graph.join_kernel";
/// All that name a kernel of an update.
inline constexpr llvm::StringLiteral kUpdateKernelAttrs[] = {
    kKernelAttr,      kDirectionKernelAttr,      kFrozenKernelAttr,
    kLocalKernelAttr, kLocalDirectionKernelAttr, kJoinKernelAttr};
/// On such a kernel: which of its results is how far this rank is from the common point, its master (i64).
inline constexpr llvm::StringLiteral kOffsetAttr = "graph.offset";
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_LOCALSTEP_H
