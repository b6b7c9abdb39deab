//===- OptimizerRegistry.h - the update rules that there are ----*- C++ -*-===//
#ifndef DSOPT_INTERFACES_OPTIMIZERREGISTRY_H
#define DSOPT_INTERFACES_OPTIMIZERREGISTRY_H

#include "mlir/IR/MLIRContext.h"

#include <set>
#include <string>

namespace dsopt {
/// The values of -optimizer that operations with OptimizerOpInterface are for, of the dialects that are
/// loaded.
std::set<std::string> registeredOptimizers(mlir::MLIRContext &context);
} // namespace dsopt

#endif // DSOPT_INTERFACES_OPTIMIZERREGISTRY_H
