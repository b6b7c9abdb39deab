//===- Probabilities.h - scores behind probabilities ------------*- C++ -*-===//
//
// Cross-entropies take scores (logits), and models end in what makes probabilities of them. What is made of
// a softmax once more trains, without an error, something else.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_PROBABILITIES_H
#define DSOPT_DIALECT_GRAPH_PROBABILITIES_H

#include "dsopt/Dialect/Graph/Graph.h"

#include <optional>

namespace dsopt::graph {

/// Probabilities or their logarithms, and the scores that they are of.
struct Probabilities {
  enum Kind { Softmax, LogSoftmax, Sigmoid } kind;
  mlir::Value scores;
  /// What makes the last of them, for messages.
  mlir::Operation *op;
  /// What shows them as the value that was asked for, from `op` on: movements and casts.
  llvm::SmallVector<mlir::Operation *> views;
  /// The first operation, from the value on, that is none of these: then probabilities are mixed, scaled,
  /// clamped or cut, and there are no scores of the value's shape. Null where there are.
  mlir::Operation *between = nullptr;
  /// The value's axis along which a softmax's probabilities add up to 1; none where it is no axis of it.
  std::optional<int64_t> axis;

  /// "a softmax" and so on.
  llvm::StringRef what() const;
};

/// What a value is as probabilities: a softmax, a log-softmax or a sigmoid, written out too, seen through
/// movements and casts, or computed of these and of constants alone (`between`). Nothing where it is neither.
std::optional<Probabilities> probabilitiesOf(mlir::Value value);

/// x, where a value is sigmoid(x), or 1 / (1 + exp(-x)) written out; else null.
mlir::Value logitOf(mlir::Value value);

/// The scores, shown as the probabilities are.
mlir::Value scoresOf(const Probabilities &probabilities, mlir::OpBuilder &builder);

} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_PROBABILITIES_H
