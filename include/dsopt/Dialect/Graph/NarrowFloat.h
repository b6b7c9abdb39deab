//===- NarrowFloat.h - types of 16 bits that are stored ---------*- C++ -*-===//

#ifndef DSOPT_DIALECT_GRAPH_NARROWFLOAT_H
#define DSOPT_DIALECT_GRAPH_NARROWFLOAT_H

#include "mlir/IR/BuiltinTypes.h"

namespace dsopt::graph {

/// Whether values are stored in it that are computed in f32.
inline bool isNarrowFloat(mlir::Type type) { return type.isBF16() || type.isF16(); }

} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_NARROWFLOAT_H
