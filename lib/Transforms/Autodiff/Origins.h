//===- Origins.h - what a value is made from --------------------*- C++ -*-===//
//
// Blocks and backward treat values by what they are made from: values made from
// inputs alone and views of parameters float, that is, are made anew wherever
// they are used. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_ORIGINS_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_ORIGINS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/DenseMap.h"

namespace dsopt {

enum class Origin {
  /// Inputs, constants, and what is made from them alone.
  Input,
  /// A parameter's value, or a reshape, transpose or cast of one.
  Parameter,
  /// Everything else.
  Activation,
};

/// The origin of every value of a function of one block.
class Origins {
public:
  explicit Origins(mlir::func::FuncOp function);
  /// The origin of a value; one that was made after the analysis is an activation.
  Origin of(mlir::Value value) const { return origins.lookup_or(value, Origin::Activation); }
  /// Whether the operation is made anew in every block and phase that uses it.
  bool floats(mlir::Operation *op) const { return floating.contains(op); }

  /// Whether a float is made of sums: made anew in another kernel its last bits may differ.
  bool isSum(mlir::Value value) const { return sums.contains(value); }

private:
  /// Whether the operation makes no floats, but compares or counts what is made of sums: that is decided
  /// once.
  bool decidesBySum(mlir::Operation *op) const;

  llvm::DenseSet<mlir::Value> sums;
  llvm::DenseMap<mlir::Value, Origin> origins;
  llvm::DenseSet<mlir::Operation *> floating;
};

/// Clones chains of floating operations to where they are used, one clone for
/// each place (a number of the caller's choice: a block, or a block and phase).
class Rematerializer {
public:
  explicit Rematerializer(std::function<bool(mlir::Operation *)> floats) : floats(std::move(floats)) {}
  /// Replaces the user's floating operands by clones in front of it. `tag` is
  /// called on each clone. With `readPerUse`, a parameter that the user reads
  /// directly gets a read of its own.
  void localize(mlir::Operation *user, int64_t place, bool readPerUse,
                llvm::function_ref<void(mlir::Operation *)> tag);

private:
  mlir::Value clone(mlir::Value value, mlir::Operation *user, int64_t place, bool shared,
                    llvm::function_ref<void(mlir::Operation *)> tag);

  std::function<bool(mlir::Operation *)> floats;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, mlir::Operation *> clones;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_ORIGINS_H
