//===- Members.h - which ranks an action talks to ---------------*- C++ -*-===//
//
// Communicators name ranks, programs belong to positions: all data-parallel ranks
// of a position run one program, each in its own group.
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

  /// Data-parallel ranks of a position.
  int64_t ranks() const { return dp; }
  /// The group of each rank of the action's position, in the order of the ranks. Fails with a message where
  /// there is no such communicator, a rank is in none of its groups, or they are of several sizes.
  mlir::FailureOr<llvm::ArrayRef<llvm::SmallVector<int64_t>>> groups(mlir::Operation *action);
  /// The positions of their members, ascending; empty where `groups` fails, without a message.
  llvm::ArrayRef<int64_t> positions(mlir::Operation *action);
  /// The position of the peer of a send or receive, -1 if there is no such member.
  int64_t peer(mlir::Operation *transfer);
  /// The place of the position's own ranks in their groups, -1 if they have several.
  int64_t place(mlir::Operation *action);

private:
  struct Entry {
    CommunicatorOp communicator;
    llvm::SmallVector<llvm::SmallVector<int64_t>> groups; ///< by rank of the position, empty: in none
    llvm::SmallVector<int64_t> positions;
    bool regular = false; ///< all ranks are in groups of one size
  };
  const Entry &lookup(mlir::Operation *action);

  int64_t dp = 1;
  llvm::DenseMap<mlir::StringAttr, CommunicatorOp> communicators;
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, std::unique_ptr<Entry>>
      entries; ///< by communicator and position
};

} // namespace dsopt::exec

#endif // DSOPT_DIALECT_EXEC_MEMBERS_H
