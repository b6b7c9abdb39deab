//===- Inspect.h - what dsopt inspect prints ---------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_INSPECT_H
#define DSOPT_TOOLS_DSOPT_INSPECT_H

#include "dsopt/Import/InspectONNX.h"
#include "dsopt/Runtime/Options.h"

namespace dsopt {

/// Prints what is in a model and what one can do with it: as text, or as JSON.
void printInspection(const Inspection &found, const runtime::ParsedOptions &options, llvm::raw_ostream &os);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_INSPECT_H
