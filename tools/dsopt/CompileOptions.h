//===- CompileOptions.h - what the command line means for a module -*- C++ -*-===//
//
// From parsed options to dsopt.options: the layout, the batch, the optimizer.
// Everything wrong throws runtime::Error of status 1.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_COMPILEOPTIONS_H
#define DSOPT_TOOLS_DSOPT_COMPILEOPTIONS_H

#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Runtime/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// Where this process was started: under a launcher that made several, or alone.
struct LauncherInfo {
  int64_t worldSize = 0; ///< 0: no launcher
  int64_t rank = 0, localRank = 0, localSize = 1;
  std::string job; ///< names the job on this host
};

/// What the environment or -launcher says (Runtime/Launch.h).
LauncherInfo findLauncher(const runtime::ParsedOptions &options);

/// Writes the options into the imported module's dsopt.options. Options that a
/// module already carries (a stage read back) are kept unless given again.
void setCompileOptions(mlir::ModuleOp module, const runtime::ParsedOptions &options,
                       const LauncherInfo &launcher, const std::string &commandLine);

/// Throws for -precision=fp16 where the target cannot convert f16.
void checkPrecision(mlir::ModuleOp module);

/// One line about a model whose parameters are all of a narrow type; empty otherwise.
std::string describeModelType(mlir::ModuleOp module);

/// Writes the options into a module that is past `Stage::Graph` which only later stages read. Throws if
/// another is given that differs, by value, from what the module was built with.
void setLaterOptions(mlir::ModuleOp module, const runtime::ParsedOptions &options, Stage stage);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_COMPILEOPTIONS_H
