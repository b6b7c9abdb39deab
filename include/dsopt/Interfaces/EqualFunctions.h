//===- EqualFunctions.h - functions that compute the same -------*- C++ -*-===//
#ifndef DSOPT_INTERFACES_EQUALFUNCTIONS_H
#define DSOPT_INTERFACES_EQUALFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"

namespace dsopt {

/// Functions of which no two have equal bodies and types.
class EqualFunctions {
public:
  /// The function there is that equals `function` and came with equal `traits`, which may be null; where
  /// there is none, `function` itself, which is there from now on.
  mlir::func::FuncOp findOrInsert(mlir::func::FuncOp function, mlir::Attribute traits);
  size_t size() const { return count; }

private:
  struct Entry {
    mlir::func::FuncOp function;
    mlir::Attribute traits;
  };
  llvm::DenseMap<size_t, llvm::SmallVector<Entry, 1>> entries; ///< by hash
  size_t count = 0;
};

} // namespace dsopt

#endif // DSOPT_INTERFACES_EQUALFUNCTIONS_H
