//===- FreezeUpdates.cpp - a program of steps behind the freeze -----------===//

#include "Scheduling.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_FREEZEUPDATES
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void dsopt::freezeUpdates(ModuleOp module) {
  if (getOption(module, "freeze_step", 0) == 0)
    return;
  SymbolTable symbols(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    if (kindOf(program) != ProgramKind::Step)
      continue;
    ProgramOp frozen = program.clone();
    frozen.setSymName((program.getSymName() + ".frozen").str());
    frozen->setAttr(kFrozenAttr, UnitAttr::get(module.getContext()));
    symbols.insert(frozen, std::next(Block::iterator(program)));
    // What ranks have is no sum over them from here on.
    for (auto reduce : llvm::make_early_inc_range(getSchedule(frozen).getOps<ReduceOp>()))
      reduce.erase();
    renumberCollectives(getSchedule(frozen));
  }
}

namespace {
struct FreezeUpdates : dsopt::impl::FreezeUpdatesBase<FreezeUpdates> {
  void runOnOperation() override { freezeUpdates(getOperation()); }
};
} // namespace
