//===- DelayUpdates.cpp - a program of steps whose updates lag ------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Step/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_DELAYUPDATES
#include "dsopt/Transforms/Step/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

LogicalResult dsopt::delayUpdates(ModuleOp module) {
  if (options::delayed_update(module).value_or(0) == 0)
    return success();
  // Gradients are set aside by copies.
  declareHostStreams(module);
  SymbolTable symbols(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    if (program.getKind() != ProgramKind::Step)
      continue;
    ProgramOp delayed = program.clone();
    delayed.setSymName((program.getSymName() + ".delayed").str());
    delayed.setKind(ProgramKind::DelayedStep);
    symbols.insert(delayed, std::next(Block::iterator(program)));
  }
  return success();
}

namespace {
struct DelayUpdates : dsopt::impl::DelayUpdatesBase<DelayUpdates> {
  void runOnOperation() override {
    if (failed(delayUpdates(getOperation())))
      signalPassFailure();
  }
};
} // namespace
