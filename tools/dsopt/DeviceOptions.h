//===- DeviceOptions.h - what only programs for devices can do -*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_DEVICEOPTIONS_H
#define DSOPT_TOOLS_DSOPT_DEVICEOPTIONS_H

#include "dsopt/Runtime/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {
/// Throws an Error of status 1 that names an option which programs of the module's target do not have.
void checkDeviceOptions(mlir::ModuleOp module, const runtime::ParsedOptions &options);
} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_DEVICEOPTIONS_H
