//===- RegisterAll.h - everything a tool can name ---------------*- C++ -*-===//
//
// One call each for what the driver and dsopt-opt know: dialects with their
// external models, and passes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_PIPELINE_REGISTERALL_H
#define DSOPT_PIPELINE_REGISTERALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace dsopt {
/// Adds our dialects, the upstream ones that our stages produce, and every
/// external model of our interfaces.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers every stage's passes, and the upstream ones worth naming by hand.
void registerAllPasses();
} // namespace dsopt

#endif // DSOPT_PIPELINE_REGISTERALL_H
