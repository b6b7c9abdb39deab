//===- Interfaces.h - what passes may ask of an operation -------*- C++ -*-===//
//
// Passes know these interfaces, not operations: adding an operation touches no
// pass. Implementations are external models in lib/Dialect/Graph and, of routines,
// in lib/Conversion.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_INTERFACES_H
#define DSOPT_INTERFACES_INTERFACES_H

#include "dsopt/Interfaces/OperandShards.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Products.h"
#include "dsopt/Interfaces/Routines.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace dsopt {
/// How an operation reads its operands and over what it iterates.
enum class FusionKind {
  /// result[i] needs the operands' elements that broadcasting pairs with i.
  Pointwise,
  /// The same, as a kernel of its own: its result is rounded whatever reads it.
  Alone,
  /// result[i] needs elements of some operands at other places (a transpose, a
  /// gather); those operands must come from outside the kernel.
  Indexed,
  /// A reduction over trailing dimensions; leading ones are rows.
  RowReduction,
  /// A reduction over leading dimensions; trailing ones are columns.
  ColumnReduction,
  /// A reduction over other dimensions: a kernel of its own.
  Reduction,
  /// The same bytes under another type; no code.
  View,
};
} // namespace dsopt

#include "dsopt/Interfaces/CostedOpInterface.h.inc"
#include "dsopt/Interfaces/DecomposableOpInterface.h.inc"
#include "dsopt/Interfaces/DifferentiableOpInterface.h.inc"
#include "dsopt/Interfaces/FloatSumOpInterface.h.inc"
#include "dsopt/Interfaces/LowerableOpInterface.h.inc"
#include "dsopt/Interfaces/OptimizerOpInterface.h.inc"
#include "dsopt/Interfaces/ProductOpInterface.h.inc"
#include "dsopt/Interfaces/RoutineOpInterface.h.inc"
#include "dsopt/Interfaces/RuntimeCallOpInterface.h.inc"
#include "dsopt/Interfaces/ShardedReductionOpInterface.h.inc"
#include "dsopt/Interfaces/TileableOpInterface.h.inc"

#endif // DSOPT_INTERFACES_INTERFACES_H
