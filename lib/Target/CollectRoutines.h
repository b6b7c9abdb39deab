//===- CollectRoutines.h - the runtime's routines that are used -*- C++ -*-===//

#ifndef DSOPT_LIB_TARGET_COLLECTROUTINES_H
#define DSOPT_LIB_TARGET_COLLECTROUTINES_H

#include "dsopt/Runtime/RoutineImages.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// Images of what the segments and programs of a module for a device call, by name.
std::vector<const runtime::RoutineImage *> collectRoutines(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_LIB_TARGET_COLLECTROUTINES_H
