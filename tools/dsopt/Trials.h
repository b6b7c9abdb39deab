//===- Trials.h - what a model would take with other options ----*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_TRIALS_H
#define DSOPT_TOOLS_DSOPT_TRIALS_H

#include "dsopt/Runtime/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace dsopt {

struct LauncherInfo;

/// An option that takes fewer bytes.
struct Remedy {
  const char *name, *value;
  std::string text() const { return std::string("-") + name + "=" + value; }
};

/// Plans with some of the remedies. What recomputes automatically recomputes all, and is chosen under the
/// budget where that is too much: a choice for each block can take less. What is cut into tiles automatically
/// is where the rest is not enough.
class Trials {
public:
  /// `source` has no options yet.
  Trials(mlir::ModuleOp source, const runtime::ParsedOptions &given, const LauncherInfo &launcher,
         int64_t budget);

  /// Bytes of the largest rank's device; none if there is no such plan.
  std::optional<int64_t> bytes(llvm::ArrayRef<Remedy> remedies) const;
  /// The largest tiles with which what was given fits; the smallest if none do and these take less; 0 if it
  /// fits without, or tiles are no help.
  int64_t chooseTiles() const;

private:
  struct Tiles {
    int64_t elements = 0; ///< 0: none
    std::optional<int64_t> bytes;
  };
  Tiles chooseTiles(runtime::ParsedOptions with) const;
  std::optional<int64_t> recomputed(runtime::ParsedOptions with) const;
  std::optional<int64_t> plan(const runtime::ParsedOptions &with) const;

  runtime::ParsedOptions options;
  const LauncherInfo &launcher;
  int64_t budget;
  mutable mlir::OwningOpRef<mlir::ModuleOp> source;
};

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_TRIALS_H
