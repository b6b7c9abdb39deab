//===- Remedies.h - what would fit where a model does not -------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REMEDIES_H
#define DSOPT_TOOLS_DSOPT_REMEDIES_H

#include "dsopt/Runtime/Options.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace dsopt {

struct LauncherInfo;

/// Where what the options ask for does not fit -device-memory: the fewest further options with which it does,
/// from cheap to dear, else the least that there is; found by planning with each. Empty if something else is
/// wrong.
std::string findRemedy(mlir::MLIRContext &context, const runtime::ParsedOptions &given,
                       const LauncherInfo &launcher);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_REMEDIES_H
