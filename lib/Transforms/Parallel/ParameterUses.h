//===- ParameterUses.h - what blocks and updates see of parameters -*- C++ -*-===//

#ifndef DSOPT_LIB_TRANSFORMS_PARALLEL_PARAMETERUSES_H
#define DSOPT_LIB_TRANSFORMS_PARALLEL_PARAMETERUSES_H

#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Interfaces/Interfaces.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace dsopt {

/// Which blocks read each parameter, ascending. Statistics that nothing reads, which are overwritten
/// before, belong to the block that makes their new value.
llvm::MapVector<mlir::StringAttr, llvm::SmallVector<int64_t>>
findReaders(mlir::ModuleOp module, llvm::ArrayRef<graph::Block> blocks, mlir::SymbolTable &symbols);

/// Parameters whose gradient is complete at the end of phase F (the loss's own weight).
llvm::DenseSet<mlir::StringAttr> findEarly(llvm::ArrayRef<graph::Block> blocks, mlir::SymbolTable &symbols);

/// Blocks with tiles of one parameter that the optimizer sees whole: its norms are summed over the ranks of a
/// stage, so that all of them, and what lies between, are on one.
struct WholeTiles {
  mlir::StringAttr parameter;
  OptimizerOpInterface rule;
  int64_t first, last; ///< blocks
};
llvm::SmallVector<WholeTiles> findWholeTiles(mlir::ModuleOp module, llvm::ArrayRef<graph::Block> blocks,
                                             mlir::SymbolTable &symbols);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PARALLEL_PARAMETERUSES_H
