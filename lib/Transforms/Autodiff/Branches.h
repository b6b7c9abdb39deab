//===- Branches.h - which values a step reaches -----------------*- C++ -*-===//
//
// A where that is a `branch` is what a model's `if` became: both sides are computed, and the loss
// depends on one of them. Of each value, under which conditions the loss depends on it. Private to this
// folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_BRANCHES_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_BRANCHES_H

#include "dsopt/Dialect/Graph/Branch.h"
#include "llvm/ADT/DenseMap.h"

namespace dsopt {

/// Conditions as decision diagrams (Bryant 1986): equal ones have equal numbers.
class Branches {
public:
  using Condition = unsigned;
  static constexpr Condition kNever = 0, kAlways = 1;

  /// `passes` says of an operand whether a gradient goes through it.
  Branches(mlir::func::FuncOp function, llvm::function_ref<bool(mlir::OpOperand &)> passes);

  /// Whether there is a branch.
  bool any() const { return !variables.empty(); }
  /// When the loss's gradient comes to one of the operation's results.
  Condition reaches(mlir::Operation *op) const { return reached.lookup(op); }
  Condition either(Condition a, Condition b) { return choose(a, kAlways, b); }
  /// A bool of one element that holds when the condition does.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc, Condition condition) const;

private:
  struct Node {
    unsigned variable;
    Condition high, low;
  };

  /// The condition under which a marked where takes its first value.
  Condition conditionOf(graph::WhereOp where);
  /// a ? b : c
  Condition choose(Condition a, Condition b, Condition c);
  Condition node(unsigned variable, Condition high, Condition low);

  llvm::SmallVector<mlir::Value> variables;
  std::vector<Node> nodes;
  std::map<std::tuple<unsigned, Condition, Condition>, Condition> known;
  std::map<std::tuple<Condition, Condition, Condition>, Condition> chosen;
  llvm::DenseMap<mlir::Operation *, Condition> reached;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_BRANCHES_H
