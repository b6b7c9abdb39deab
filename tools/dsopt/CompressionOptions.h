//===- CompressionOptions.h - what goes with compressed gradients -*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H
#define DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H

#include "CompileOptions.h"

namespace dsopt {
/// Throws an Error of status 1 where -compress-gradients does not go with the module's layout, optimizer and
/// precision.
void checkCompression(mlir::ModuleOp module, const runtime::ParsedOptions &options);
} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H
