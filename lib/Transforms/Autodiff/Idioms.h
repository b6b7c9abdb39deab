//===- Idioms.h - what the passes that raise idioms share -------*- C++ -*-===//
//
// Matchers for values of @forward, and remarks of category "idiom": `passed` for
// what was raised, `missed` for what nearly was, with the reason. Private to this
// folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_IDIOMS_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_IDIOMS_H

#include "dsopt/Dialect/Graph/Graph.h"

#include <optional>

namespace dsopt::idioms {

mlir::RankedTensorType typeOf(mlir::Value value);

/// The value that reshapes show.
mlir::Value withoutReshapes(mlir::Value value);

/// The number that all elements of a constant are.
std::optional<double> splatOf(mlir::Value value);
/// Whether all elements of a constant are `number`, to seven digits.
bool isSplat(mlir::Value value, double number);
bool isClose(double value, double expected);

/// The operation that alone uses a value; null where there are more or none.
mlir::Operation *onlyUser(mlir::Value value);
/// The other operand of `op` (of two), if it is an `OpTy` that has `value` as one.
template <typename OpTy> mlir::Value otherOperand(mlir::Operation *op, mlir::Value value) {
  if (!llvm::isa_and_nonnull<OpTy>(op))
    return {};
  return op->getOperand(0) == value ? op->getOperand(1) : op->getOperand(0);
}

void raised(mlir::Operation *op, llvm::StringRef idiom);
void missed(mlir::Operation *op, llvm::StringRef idiom, llvm::StringRef why);

/// @forward, if it has one body; else an error that names the pass.
mlir::func::FuncOp forwardOf(mlir::ModuleOp module, llvm::StringRef pass);
/// Erases what nothing uses any more.
void eraseDead(mlir::func::FuncOp forward);

} // namespace dsopt::idioms

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_IDIOMS_H
