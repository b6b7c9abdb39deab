//===- Compile.h - from a model or a stage to a later stage -----*- C++ -*-===//
//
// The steps of a compilation, for what was asked and for what else would fit
// (Remedies.h). What is wrong throws runtime::Error.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_COMPILE_H
#define DSOPT_TOOLS_DSOPT_COMPILE_H

#include "Messages.h"
#include "dsopt/Import/InspectONNX.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Runtime/Options.h"
#include "mlir/IR/OwningOpRef.h"

namespace dsopt {

struct LauncherInfo;

/// Whether a path names a stage of the IR, as text; else it is a model.
bool isStage(llvm::StringRef path);
/// Reads the model or stage that the options name.
mlir::OwningOpRef<mlir::ModuleOp> readSource(mlir::MLIRContext &context,
                                             const runtime::ParsedOptions &options, ImportReport &report,
                                             bool warns = true);
/// Looks into the model that the options name.
Inspection inspectSource(mlir::MLIRContext &context, const runtime::ParsedOptions &options);
/// Writes the options into the module; its stage.
Stage takeOptions(mlir::ModuleOp module, const runtime::ParsedOptions &options, const LauncherInfo &launcher,
                  const std::string &command);
/// The passes from the module's stage to `goal`, with those that are inserted.
std::vector<std::string> passesTo(Stage goal, mlir::ModuleOp module, const runtime::ParsedOptions &options);
/// Runs them; a dimension with several values has the passes of its own stage run for each.
void runPasses(mlir::ModuleOp module, std::vector<std::string> passes, Stage goal,
               const runtime::ParsedOptions &options, Messages &messages);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_COMPILE_H
