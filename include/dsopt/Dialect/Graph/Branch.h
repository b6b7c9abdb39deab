//===- Branch.h - parameters that a step may not reach ----------*- C++ -*-===//
//
// A model's `if` by a draw computes both sides and takes one. What is read inside of a side that no
// micro-batch of a step took has no gradient, which is another thing than one of zeros: the optimizer leaves
// it alone. Sums of gradients say so themselves: -0 is what no other sum gives, as -0 + -0 is -0, and -0 + x
// is x (+0 of +0).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_BRANCH_H
#define DSOPT_DIALECT_GRAPH_BRANCH_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Optimizers.h"

#define GET_OP_CLASSES
#include "dsopt/Dialect/Graph/GraphBranchOps.h.inc"

namespace dsopt::graph {
/// What an update keeps of such a parameter beside its own states; nothing where its rule has no such form.
std::optional<llvm::SmallVector<OptimizerState>> branchStates(mlir::Operation *update);
/// The same update, with these states, of such a parameter.
BranchUpdateOp buildBranchUpdate(mlir::OpBuilder &builder, mlir::Operation *update, mlir::ValueRange states);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_BRANCH_H
