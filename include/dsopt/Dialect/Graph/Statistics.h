//===- Statistics.h - running statistics and other buffers ------*- C++ -*-===//
//
// Forward has no effects: what a micro-batch contributes to a running statistic is one
// more result of @forward and @micro_batch, behind the loss. It is kept to the end of the
// step and folded then, in the order of all ranks' micro-batches (DESIGN 2.1 rule 9).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_STATISTICS_H
#define DSOPT_DIALECT_GRAPH_STATISTICS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// On a result of a function: the parameter that is the running statistic (a symbol). On that
/// parameter: that training changes it, though not by its gradient (unit).
inline constexpr llvm::StringLiteral kStatisticAttr = "graph.statistic";
/// On such a result: what a micro-batch leaves of the running value (f64).
inline constexpr llvm::StringLiteral kMomentumAttr = "graph.momentum";
/// On such a result: that forward reads the running value, which the micro-batch before it leaves (unit). A
/// step can have one micro-batch then.
inline constexpr llvm::StringLiteral kSequentialAttr = "graph.sequential";

/// running = momentum * running + (1 - momentum) * the function's result
struct Statistic {
  unsigned result = 0;
  mlir::FlatSymbolRefAttr parameter;
  double momentum = 0;
  bool sequential = false;
};
/// The results of a function that are statistics, in order.
inline llvm::SmallVector<Statistic> statisticsOf(mlir::func::FuncOp function) {
  llvm::SmallVector<Statistic> statistics;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto parameter = function.getResultAttrOfType<mlir::FlatSymbolRefAttr>(i, kStatisticAttr);
    auto momentum = function.getResultAttrOfType<mlir::FloatAttr>(i, kMomentumAttr);
    if (parameter)
      statistics.push_back({i, parameter, momentum ? momentum.getValueAsDouble() : 0,
                            function.getResultAttr(i, kSequentialAttr) != nullptr});
  }
  return statistics;
}
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_STATISTICS_H
