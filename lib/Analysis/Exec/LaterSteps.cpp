//===- LaterSteps.cpp - how steps behind a freeze differ ------------------===//

#include "dsopt/Analysis/Exec/LaterSteps.h"

#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

bool dsopt::movesApart(ModuleOp module) { return bool(getOption(module, "local_step_clipper")); }

bool dsopt::gathersParameters(ModuleOp module) {
  return options::onebit_gather(module) == "parameters" && dist::getGrid(module).dataParallel() > 1;
}

ArrayRef<ProgramKind> dsopt::laterKinds(ModuleOp module) {
  static constexpr ProgramKind kFrozen[] = {ProgramKind::FrozenStep, ProgramKind::FirstFrozenStep};
  static constexpr ProgramKind kApart[] = {ProgramKind::CompressedStep, ProgramKind::LocalStep,
                                           ProgramKind::JoinStep};
  if (options::freeze_step(module).value_or(0) == 0)
    return {};
  return movesApart(module) ? ArrayRef(kApart)
                            : ArrayRef(kFrozen).take_front(gathersParameters(module) ? 2 : 1);
}
