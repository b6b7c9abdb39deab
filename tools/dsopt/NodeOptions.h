//===- NodeOptions.h - what goes between nodes, and how ---------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_NODEOPTIONS_H
#define DSOPT_TOOLS_DSOPT_NODEOPTIONS_H

#include "CompileOptions.h"

namespace dsopt {
/// Sets -node-size, -secondary-params and -gather-type, as they are given, on a module that has its layout.
/// Throws an Error of status 1 where they do not fit it.
void setNodeOptions(mlir::ModuleOp module, const runtime::ParsedOptions &options,
                    const LauncherInfo &launcher);
} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_NODEOPTIONS_H
