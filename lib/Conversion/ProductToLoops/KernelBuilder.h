//===- KernelBuilder.h - indices, loops and vectors of a kernel -*- C++ -*-===//

#ifndef DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_KERNELBUILDER_H
#define DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_KERNELBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace dsopt {

class KernelBuilder {
protected:
  using Values = llvm::SmallVector<mlir::Value>;

  /// `entry` is the function's first block.
  KernelBuilder(mlir::Location loc, mlir::Block *entry);

  // Arithmetic on indices that are not negative.
  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value add(mlir::Value lhs, int64_t rhs);
  mlir::Value subtract(mlir::Value lhs, mlir::Value rhs);
  mlir::Value multiply(mlir::Value lhs, int64_t rhs);
  mlir::Value most(mlir::Value lhs, mlir::Value rhs);
  mlir::Value least(mlir::Value lhs, mlir::Value rhs);
  mlir::Value quotient(mlir::Value lhs, int64_t rhs, bool up = false);
  mlir::Value isEqual(mlir::Value lhs, mlir::Value rhs);

  /// A loop that stays as it is; the body returns what is carried on.
  Values loop(mlir::Value from, mlir::Value to, int64_t step,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body, mlir::ValueRange carried = {});
  void branch(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise = nullptr);
  /// A buffer on the stack.
  mlir::Value scratch(int64_t elements, mlir::Type type);

  /// Vectors in memory; of fewer `lanes` than the type has the rest is zero, and is not in memory.
  mlir::Value load(mlir::VectorType type, mlir::Value buffer, mlir::Value at, int64_t lanes);
  void store(mlir::Value vector, mlir::Value buffer, mlir::Value at, int64_t lanes);
  mlir::Value zeros(mlir::Type type);
  /// Asks for the cache line, into the second cache or, with `isNear`, the first.
  void prefetch(mlir::Value buffer, mlir::Value at, bool isNear = false);
  /// Of as many vectors as each has lanes, lane i of vector j becomes lane j of vector i.
  Values transpose(Values rows);

  mlir::ImplicitLocOpBuilder b;

private:
  mlir::Block *entry;
  mlir::Attribute asItIs; ///< annotation of loops
  /// Where it begins, since most are needed in many places.
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

} // namespace dsopt

#endif // DSOPT_LIB_CONVERSION_PRODUCTTOLOOPS_KERNELBUILDER_H
