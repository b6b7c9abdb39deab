//===- RegionCosts.h - what a cut saves, and what its sums take -*- C++ -*-===//
//
// By the assumed rates of a CPU (AssumedRates.h), for as many ranks as there are tensor shards: shapes and
// their number decide alone, so that all degrees, machines and links choose alike. Nothing has a fixed time:
// what is small pays like what is large, where its sums are as much smaller. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_REGIONCOSTS_H
#define DSOPT_LIB_TRANSFORMS_PLACE_REGIONCOSTS_H

#include "CutRegion.h"
#include "RegionChoice.h"

namespace dsopt {

class RegionCosts {
public:
  RegionCosts(mlir::func::FuncOp forward, const mlir::SymbolTable &symbols, int64_t shards);

  /// Forward and backward of a micro-batch with nothing cut, in picoseconds.
  int64_t whole() const { return all; }
  /// What a region of `forward` saves, less what is its own of sums; sums of gradients of what it shares with
  /// other regions are in `shared` below, by their number in it.
  CutGain gainOf(const CutRegion &region);
  /// Sums that regions share: of the gradient of each whole value that they read in a block.
  llvm::ArrayRef<int64_t> shared() const { return sharedCosts; }

private:
  /// Of an operation's forward and backward on one rank: whole, or as a region cuts it.
  int64_t timeOf(mlir::Operation *op, const CutRegion *region = nullptr) const;
  int64_t sumTime(mlir::Type type) const;
  bool hasGradient(mlir::Value value) const { return differentiated.contains(value); }

  int64_t shards, all = 0;
  llvm::DenseSet<mlir::Operation *> trained;  ///< reads of parameters that have gradients
  llvm::DenseSet<mlir::Value> differentiated; ///< values whose gradients backward computes
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, unsigned> sharedNumbers;
  llvm::SmallVector<int64_t> sharedCosts;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_REGIONCOSTS_H
