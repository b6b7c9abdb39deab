//===- FreezeUpdates.cpp - a program of steps behind the freeze -----------===//

#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Step/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_FREEZEUPDATES
#include "dsopt/Transforms/Step/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

LogicalResult dsopt::freezeUpdates(ModuleOp module) {
  ArrayRef<ProgramKind> kinds = laterKinds(module);
  if (kinds.empty())
    return success();
  SymbolTable symbols(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    if (program.getKind() != ProgramKind::Step)
      continue;
    Operation *last = program;
    for (ProgramKind kind : kinds) {
      ProgramOp frozen = program.clone();
      frozen.setSymName((program.getSymName() + "." + stringifyProgramKind(kind)).str());
      frozen.setKind(kind);
      symbols.insert(frozen, std::next(Block::iterator(last)));
      last = frozen;
      // What ranks have is no sum over them from here on.
      for (auto reduce : llvm::make_early_inc_range(getSchedule(frozen).getOps<ReduceOp>()))
        reduce.erase();
      renumberCollectives(getSchedule(frozen));
    }
  }
  return success();
}

namespace {
struct FreezeUpdates : dsopt::impl::FreezeUpdatesBase<FreezeUpdates> {
  void runOnOperation() override {
    if (failed(freezeUpdates(getOperation())))
      signalPassFailure();
  }
};
} // namespace
