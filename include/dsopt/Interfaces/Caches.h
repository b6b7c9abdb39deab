//===- Caches.h - what outlives the run of a few positions ------*- C++ -*-===//
//
// The interface of operations that keep rows between runs (CachingOpInterface.td).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_CACHES_H
#define DSOPT_INTERFACES_CACHES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallVector.h"

namespace dsopt {
/// A cache, by its symbol, and what it keeps.
struct KeptRows {
  mlir::FlatSymbolRefAttr cache;
  mlir::Value rows;
};
} // namespace dsopt

#include "dsopt/Interfaces/CachingOpInterface.h.inc"

#endif // DSOPT_INTERFACES_CACHES_H
