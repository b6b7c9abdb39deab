//===- BlockRecomputer.h - what one block computes again --------*- C++ -*-===//
//
// Chooses and rewrites for the runs of one block in one function of runs. A choice is
// a minimum cut: a value that forward makes and backward reads is kept, at its bytes, or
// what makes it runs again, at its cost, on values that are kept in turn.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_MEMORY_BLOCKRECOMPUTER_H
#define DSOPT_LIB_TRANSFORMS_MEMORY_BLOCKRECOMPUTER_H

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/DeviceLimits.h"

#include "mlir/IR/IRMapping.h"

namespace dsopt {

/// The runs of one block on a micro-batch. Null where there is none.
struct BlockRuns {
  int64_t number = 0, stage = 0;
  graph::RunOp forward, backward, weights;
};

/// The blocks of a function of runs that have a forward and a backward apart, in their order.
llvm::SmallVector<BlockRuns> collectRuns(mlir::func::FuncOp function, mlir::SymbolTable &symbols);

/// Keeps the module's symbols and costs, which all its blocks share.
class BlockRecomputer {
public:
  explicit BlockRecomputer(mlir::ModuleOp module)
      : symbols(module), counter(module), device(deviceOf(module->getAttrOfType<TargetAttr>(kTargetAttr))) {}

  /// What a choice is: operations of forward, by their place in it, that run again.
  struct Choice {
    llvm::SmallVector<int64_t> again;
    int64_t kept = 0, cost = 0; ///< bytes between forward and backward; what runs again (costOf)
    bool operator==(const Choice &other) const { return again == other.again && kept == other.kept; }
  };
  /// The choice with the smallest sum of bytes kept and `rate` times the cost of what runs again. Of equal
  /// ones that with the fewest bytes that run again.
  mlir::FailureOr<Choice> choose(const BlockRuns &block, double rate);
  /// Lets backward make what the choice says, and keeps what it needs for that.
  mlir::LogicalResult apply(BlockRuns &block, const Choice &choice);

  /// Flops, and bytes moved as the flops that are done in their time; on a device each by its limit.
  mlir::FailureOr<int64_t> costOf(mlir::Operation *op);

private:
  mlir::SymbolTable symbols;
  graph::FlopCounter counter;
  std::optional<DeviceLimits> device; ///< none for a CPU
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_MEMORY_BLOCKRECOMPUTER_H
