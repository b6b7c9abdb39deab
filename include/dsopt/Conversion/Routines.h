//===- Routines.h - the routines of the runtime -----------------*- C++ -*-===//
#ifndef DSOPT_CONVERSION_ROUTINES_H
#define DSOPT_CONVERSION_ROUTINES_H

namespace mlir {
class DialectRegistry;
}

namespace dsopt {
/// Attaches RoutineOpInterface to the operations of the graph dialect that are routines.
void registerRoutines(mlir::DialectRegistry &registry);
/// Attaches RuntimeCallOpInterface to the operations of segments that they become.
void registerRuntimeCalls(mlir::DialectRegistry &registry);
} // namespace dsopt

#endif // DSOPT_CONVERSION_ROUTINES_H
