//===- StorageTypes.h - which values are stored in 16 bits ------*- C++ -*-===//

#ifndef DSOPT_LIB_TRANSFORMS_FUSE_STORAGETYPES_H
#define DSOPT_LIB_TRANSFORMS_FUSE_STORAGETYPES_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"

namespace dsopt {

/// What an operation needs an operand that is a tensor of f32 to be stored as.
Storage neededStorage(mlir::OpOperand &operand);

/// The parameters of f32 that are stored in 16 bits: those that are trained, or that a product reads, in
/// whichever function, unless one is accumulated or returned.
llvm::DenseSet<mlir::StringAttr> narrowParameters(mlir::ModuleOp module);

/// Decides for each f32 value between the kernels and routines of a function whether it
/// is stored in 16 bits (narrow) or stays f32 (wide). Wide are inputs, constants, sums and
/// what is computed from these alone (statistics of rows, the loss), what is accumulated
/// and frozen parameters; but what a product reads is narrow, unless it is accumulated too.
class StorageTypes {
public:
  /// `parameters` are those stored in 16 bits.
  StorageTypes(mlir::Block &block, mlir::SymbolTable &symbols,
               const llvm::DenseSet<mlir::StringAttr> &parameters);

  bool isNarrow(mlir::Value value) const { return narrow.contains(value); }

private:
  void collectNeeds(mlir::Block &block);
  void decide(mlir::Operation &op);
  /// Whether it is a node of a tree, of a parameter's gradient or of another sum.
  bool addsPieces(graph::KernelOp kernel, bool exact);
  llvm::SmallVector<bool> throughKernel(graph::KernelOp kernel);
  bool isOpen(mlir::Value value);

  mlir::SymbolTable &symbols;
  const llvm::DenseSet<mlir::StringAttr> &parameters;
  /// The last four hold values whose bytes others share.
  llvm::DenseSet<mlir::Value> narrow, narrowRoots, openRoots, neededNarrow, neededWide;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_FUSE_STORAGETYPES_H
