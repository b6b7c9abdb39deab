//===- ImportReport.h - what -report=import prints --------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_IMPORTREPORT_H
#define DSOPT_TOOLS_DSOPT_IMPORTREPORT_H

#include "DeepSpeedConfig.h"
#include "dsopt/Import/ImportONNX.h"

namespace dsopt {

/// Prints what became of a model's nodes and initializers, and which idioms are
/// raised to one operation or nearly are: the passes that do it run on a copy. `carried` are the options
/// that the model itself asks for.
llvm::LogicalResult printImportReport(const ImportReport &report, mlir::ModuleOp module,
                                      llvm::ArrayRef<ConfiguredOption> carried, llvm::raw_ostream &os);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_IMPORTREPORT_H
