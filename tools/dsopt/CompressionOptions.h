//===- CompressionOptions.h - what goes with compressed gradients -*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H
#define DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H

#include "CompileOptions.h"

namespace dsopt {
/// Sets -compress-gradients, as it is given, on a module that has its layout, optimizer and precision. Throws
/// an Error of status 1 where it does not go with these.
void setCompression(mlir::ModuleOp module, const runtime::ParsedOptions &options);
} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_COMPRESSIONOPTIONS_H
