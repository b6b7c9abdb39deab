//===- Communicators.h - who talks to whom on a grid of ranks ---*- C++ -*-===//
//
// And the streams that it is done on.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_ORDER_COMMUNICATORS_H
#define DSOPT_TRANSFORMS_ORDER_COMMUNICATORS_H

#include "dsopt/Dialect/Exec/Exec.h"

namespace dsopt {

/// Declares the communicator of ranks along some axes, where the module has it not yet, and returns its name.
std::string declareCommunicator(mlir::ModuleOp module, dist::AxesAttr axes);
/// Declares the communicators of the grid, where the module has them not yet: @dp, @pp, @world, and those of
/// the axes that buckets are cut over and that values are added over.
void declareCommunicators(mlir::ModuleOp module);
/// The ranks of a node, and those that have the same place in the nodes of a position.
inline constexpr llvm::StringLiteral kNode = "node", kAcross = "across";
/// Declares the communicators within nodes of `nodeSize` neighbours along edp and between them, where the
/// module has them not yet: @node and @across.
void declareNodes(mlir::ModuleOp module, int64_t nodeSize);
/// Declares the streams of programs of so many positions, where the module has them not yet: @compute, @comm
/// and, where one sends to another, @send and @recv.
void declareStreams(mlir::ModuleOp module, int64_t positions);
/// And that of sums of values over ranks: @tensor.
void declareTensorStream(mlir::ModuleOp module);
/// And those of what is done on the host and copied from there and back: @host, @download and @upload.
void declareHostStreams(mlir::ModuleOp module);
/// And that of what is read from disk and written there: @disk.
void declareDiskStream(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_ORDER_COMMUNICATORS_H
