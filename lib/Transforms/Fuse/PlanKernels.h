//===- PlanKernels.h - which operations become one kernel -------*- C++ -*-===//
#ifndef DSOPT_LIB_TRANSFORMS_FUSE_PLANKERNELS_H
#define DSOPT_LIB_TRANSFORMS_FUSE_PLANKERNELS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt {
/// One or more operations that stay together: a kernel, or an operation outside.
struct PlannedNode {
  /// In program order.
  llvm::SmallVector<mlir::Operation *> ops;
  bool isKernel = false;
  graph::Iteration iterate = graph::Iteration::Rows; ///< or columns
  llvm::SmallVector<int64_t> range;
  /// A reduction in the middle, or a node of a tree: nothing joins it.
  bool alone = false;
  /// Edges lead from lower to higher levels, so that there is no cycle.
  int64_t level = 0;
};

struct KernelLimits {
  int64_t ops, pointers;
};

/// Whether a value is a constant that kernels hold a copy of.
bool isSplat(mlir::Value value);
/// The values that a kernel of `ops` reads (no splats) and those that others read, in order.
void collectBoundary(llvm::ArrayRef<mlir::Operation *> ops, llvm::SmallVectorImpl<mlir::Value> &inputs,
                     llvm::SmallVectorImpl<mlir::Value> &outputs);

/// Partitions the operations of a block (but its terminator and splats) into nodes.
llvm::FailureOr<std::vector<PlannedNode>> planKernels(mlir::Block &block, KernelLimits limits);
} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_FUSE_PLANKERNELS_H
