//===- Parts.h - which block and phase a run computes -----------*- C++ -*-===//
//
// Equal blocks share a segment: a run says what it is of where that is not its
// segment's own.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_PARTS_H
#define DSOPT_ANALYSIS_EXEC_PARTS_H

#include "dsopt/Dialect/Exec/Exec.h"

namespace dsopt {
/// The block and phase, or part of it, that a segment is made from; null where it does not say.
exec::PartAttr getPart(mlir::Operation *segment);
/// The block and phase that a run of `segment` (may be null) computes; null where nothing says.
exec::PartAttr getPart(exec::RunOp run, mlir::Operation *segment);
} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_PARTS_H
