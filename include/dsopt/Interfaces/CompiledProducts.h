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
} // namespace dsopt

#endif // DSOPT_INTERFACES_COMPILEDPRODUCTS_H
