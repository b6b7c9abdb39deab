//===- ModelOptions.h - defaults that a model carries ------------*- C++ -*-===//
//
// metadata_props["dsopt.options"] is a JSON object of option names and values, written
// by whoever knows the model (dsopt.export: rows of padding, parameter groups).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_MODELOPTIONS_H
#define DSOPT_TOOLS_DSOPT_MODELOPTIONS_H

#include "DeepSpeedConfig.h"

namespace dsopt {

/// Sets the options that the model asks for and that are not given; lists are put before those that are, so
/// that a later entry wins. Only what says something about the model and its training may stand there.
/// Returns what it set, for messages. Everything wrong throws runtime::Error of status 1.
std::vector<ConfiguredOption> applyModelOptions(runtime::ParsedOptions &options, mlir::MLIRContext &context);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_MODELOPTIONS_H
