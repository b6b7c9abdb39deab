//===- LaterSteps.h - how steps behind a freeze differ ----------*- C++ -*-===//
//
// By the module's options alone: 1-bit Adam and LAMB freeze their variance at a step, and 0/1 Adam
// (Lu et al., 2022) lets ranks step by themselves behind it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_LATERSTEPS_H
#define DSOPT_ANALYSIS_EXEC_LATERSTEPS_H

#include "dsopt/Dialect/Exec/Actions.h"

namespace dsopt {

/// Whether ranks move apart, by the module's options.
bool movesApart(mlir::ModuleOp module);
/// Whether behind the freeze ranks gather the parameters that each has updated its slice of, not only
/// momenta.
bool gathersParameters(mlir::ModuleOp module);
/// The kinds of programs that there are beside a step's where a variance freezes.
llvm::ArrayRef<exec::ProgramKind> laterKinds(mlir::ModuleOp module);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_LATERSTEPS_H
