//===- DelayUpdates.cpp - a program of steps whose updates lag ------------===//

#include "Communicators.h"
#include "Scheduling.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_DELAYUPDATES
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void dsopt::delayUpdates(ModuleOp module) {
  if (getOption(module, "delayed_update", 0) == 0)
    return;
  // Gradients are set aside by copies.
  declareHostStreams(module);
  SymbolTable symbols(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    if (kindOf(program) != ProgramKind::Step)
      continue;
    ProgramOp delayed = program.clone();
    delayed.setSymName((program.getSymName() + ".delayed").str());
    delayed->setAttr(kDelayedAttr, UnitAttr::get(module.getContext()));
    symbols.insert(delayed, std::next(Block::iterator(program)));
  }
}

namespace {
struct DelayUpdates : dsopt::impl::DelayUpdatesBase<DelayUpdates> {
  void runOnOperation() override { delayUpdates(getOperation()); }
};
} // namespace
