//===- CompiledProducts.h - which products a host has kernels for -*- C++ -*-===//
//
// What passes on graphs may rely on is what compile-products goes by.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_COMPILEDPRODUCTS_H
#define DSOPT_INTERFACES_COMPILEDPRODUCTS_H

#include "dsopt/Interfaces/Target.h"

namespace dsopt {
/// Whether products of such operands to such a result have kernels of their own on a processor, whatever
/// their shape (compile-products), and are not the library's.
bool compilesProducts(TargetAttr target, mlir::Type operands, mlir::Type result);
/// Whether those that are compiled of such operands are computed in AMX's tiles, whatever their shape.
bool multipliesTiles(TargetAttr target, mlir::Type operands);
/// Whether vectors multiply such operands in fp32: of 16 bits, for which the processor has no instruction on
/// vectors, or a slow one.
bool widensVectors(TargetAttr target, mlir::Type operands);
/// Whether those that are compiled are copied in fp32 and multiplied there.
bool widensOperands(TargetAttr target, mlir::Type operands);
/// Columns of a vector, which products are computed for at once.
int64_t productLanes(TargetAttr target);
/// Rows of products that may read a packed b: more of them are enough for a copy of their own.
inline constexpr int64_t kMostRowsOfPacked = 16;
/// Elements of a b of k by n that is packed: whole vectors of columns, and whole lanes of the contraction.
int64_t packedElements(TargetAttr target, mlir::Type operands, int64_t n, int64_t k);
} // namespace dsopt

#endif // DSOPT_INTERFACES_COMPILEDPRODUCTS_H
