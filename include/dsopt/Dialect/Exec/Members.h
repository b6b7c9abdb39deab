//===- Members.h - which ranks an action talks to ---------------*- C++ -*-===//
//
// Communicators are axes of the grid, programs belong to positions: all ranks of a position run one program,
// each in its own group. What holds for the groups of one rank holds for all of them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_MEMBERS_H
#define DSOPT_DIALECT_EXEC_MEMBERS_H

#include "dsopt/Dialect/Exec/Actions.h"

namespace dsopt::exec {

class Members {
public:
  /// Of no module: there are no communicators.
  explicit Members(mlir::ModuleOp module);

  const Grid &grid() const { return ranks; }
  /// The axes of the action's communicator. Fails with a message where there is no such communicator.
  mlir::FailureOr<dist::AxesAttr> axes(mlir::Operation *action);
  /// How many ranks are in each of its groups; likewise.
  mlir::FailureOr<int64_t> count(mlir::Operation *action);
  /// The ranks in the group of the first rank of the action's position, in their order; likewise.
  mlir::FailureOr<std::vector<int>> group(mlir::Operation *action);
  /// The positions of the members, ascending; empty where there is no such communicator, without a message.
  llvm::ArrayRef<int64_t> positions(mlir::Operation *action);
  /// The position of the peer of a send or receive, -1 if there is no such member, or it is at several.
  int64_t peer(mlir::Operation *transfer);
  /// The place of the position's own ranks in their groups, -1 if they have several.
  int64_t place(mlir::Operation *action);

private:
  struct Entry {
    dist::AxesAttr axes; ///< null: there is no such communicator
    std::vector<int> group;
    llvm::SmallVector<int64_t> positions;
  };
  const Entry &lookup(mlir::Operation *action);

  Grid ranks;
  llvm::DenseMap<mlir::StringAttr, dist::AxesAttr> communicators;
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, std::unique_ptr<Entry>>
      entries; ///< by communicator and position
};

} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_MEMBERS_H
