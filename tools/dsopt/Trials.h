//===- Trials.h - what a model would need with other options ----*- C++ -*-===//
//
// Plans of one model with some options more, for what to say where it does not fit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_TRIALS_H
#define DSOPT_TOOLS_DSOPT_TRIALS_H

#include "Compile.h"
#include "CompileOptions.h"

#include "dsopt/Planner/RemedySearch.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace dsopt {

class Trials {
public:
  /// `source` has no options yet.
  Trials(mlir::ModuleOp source, const runtime::ParsedOptions &given, const LauncherInfo &launcher,
         int64_t budget);

  /// Asks what the model needs by compiling it. The trials have to outlive it.
  RemedySearch search();

  /// Whether few micro-batches are planned in place of a long step where that leaves no doubt on which side
  /// of the budget it is.
  bool estimates = true;

private:
  using Need = RemedySearch::Need;
  /// That of a choice under the budget is asked for behind that of all that can be recomputed.
  std::optional<Need> need(const runtime::ParsedOptions &with, const Need *full);
  /// The module at stage dist, or earlier where options forbid to share it.
  mlir::OwningOpRef<mlir::ModuleOp> begin(const runtime::ParsedOptions &with);
  std::optional<Need> plan(mlir::OwningOpRef<mlir::ModuleOp> module, const runtime::ParsedOptions &with);
  /// By few micro-batches, and what further ones take.
  std::optional<Need> estimate(mlir::ModuleOp module, const runtime::ParsedOptions &with,
                               std::optional<int64_t> growth);

  runtime::ParsedOptions options;
  const LauncherInfo &launcher;
  int64_t budget;
  bool shares; ///< modules at stage dist
  mlir::OwningOpRef<mlir::ModuleOp> source;
  llvm::DenseMap<mlir::Attribute, mlir::OwningOpRef<mlir::ModuleOp>> shared; ///< by what decides them
};

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_TRIALS_H
