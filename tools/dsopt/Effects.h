//===- Effects.h - options that change nothing here -------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_EFFECTS_H
#define DSOPT_TOOLS_DSOPT_EFFECTS_H

#include "DeepSpeedConfig.h"

#include "dsopt/Runtime/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dsopt {

/// Lines for the user: which of the given options change nothing in the layout that `module` is compiled for,
/// and what they go with. Those that a configuration set are left out: it is written for many layouts.
std::vector<std::string> optionsWithoutEffect(mlir::ModuleOp module, const runtime::ParsedOptions &options,
                                              const std::vector<ConfiguredOption> &configured);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_EFFECTS_H
