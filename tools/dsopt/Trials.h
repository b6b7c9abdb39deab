//===- Trials.h - what a model would need with other options ----*- C++ -*-===//
//
// Plans of one model with some options more, for what to say where it does not fit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_TRIALS_H
#define DSOPT_TOOLS_DSOPT_TRIALS_H

#include "Compile.h"
#include "CompileOptions.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace dsopt {

/// An option that takes fewer bytes.
struct Remedy {
  const char *name, *value;
  std::string text() const { return std::string("-") + name + "=" + value; }
};

/// What recomputes automatically recomputes all, and is chosen under the budget where that is too much: a
/// choice for each block can take less. What is cut into tiles automatically is where the rest is not enough.
class Trials {
public:
  /// `source` has no options yet.
  Trials(mlir::ModuleOp source, const runtime::ParsedOptions &given, const LauncherInfo &launcher,
         int64_t budget);

  /// Bytes of the largest rank's device with some of the remedies; none if there is no such plan.
  std::optional<int64_t> bytes(llvm::ArrayRef<Remedy> remedies);
  /// The largest tiles with which what was given fits; the smallest if none do and these take less; 0 if it
  /// fits without, or tiles are no help.
  int64_t chooseTiles();

  /// Whether few micro-batches are planned in place of a long step where that leaves no doubt on which side
  /// of the budget it is.
  bool estimates = true;

private:
  /// What a plan needs of the largest rank's device.
  struct Need {
    int64_t bytes = 0;
    int64_t states = 0; ///< of them at the peak: what is there whatever is recomputed
    int64_t growth = 0; ///< bytes that were estimated
  };

  struct Tiles {
    int64_t elements = 0; ///< 0: none
    std::optional<int64_t> bytes;
  };
  Tiles chooseTiles(runtime::ParsedOptions with);
  std::optional<int64_t> recomputed(runtime::ParsedOptions with);

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
