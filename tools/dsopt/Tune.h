//===- Tune.h - measures how products are best cut --------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_TUNE_H
#define DSOPT_TOOLS_DSOPT_TUNE_H

#include "dsopt/Runtime/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// Measures the products of a module whose passes ran up to compile-products: the kernels that the model of
/// the processor chooses, others and the library, with the threads of the module's target. Writes -tune's
/// table, with what the module's own table has beside; says what it does on standard error unless `quiet`.
/// Throws runtime::Error.
void tuneProducts(mlir::ModuleOp module, const std::string &path, bool quiet);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_TUNE_H
