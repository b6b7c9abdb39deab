//===- DescribeChanges.cpp - what actions touch, and change of lasting state ===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Arena/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace dsopt {
#define GEN_PASS_DEF_DESCRIBECHANGES
#include "dsopt/Transforms/Arena/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// A segment that writes but a view of an argument, such as a tile's columns, leaves the rest of it as it is.
static ArrayAttr withViews(func::FuncOp segment, ArrayAttr touches) {
  SmallVector<Attribute> all = llvm::to_vector(touches);
  for (BlockArgument argument : segment.isExternal() ? ArrayRef<BlockArgument>() : segment.getArguments()) {
    auto touch = cast<TouchAttr>(all[argument.getArgNumber()]);
    bool isPart = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      auto view = dyn_cast<ViewOp>(user);
      return view && bytesOf(view.getType()) < bytesOf(argument.getType());
    });
    if (isPart && touch.getMode() == AccessMode::Write)
      all[argument.getArgNumber()] =
          TouchAttr::get(touch.getContext(), touch.getRef(), touch.getBytes(), AccessMode::Update);
  }
  return ArrayAttr::get(touches.getContext(), all);
}

namespace {
struct DescribeChanges : dsopt::impl::DescribeChangesBase<DescribeChanges> {
  void runOnOperation() override {
    AccessAnalysis analysis(getOperation());
    SymbolTable segments(getOperation());
    WalkResult walked = getOperation().walk([&](ActionOpInterface action) {
      FailureOr<ArrayRef<Access>> accesses = analysis.of(action);
      FailureOr<ArrayAttr> touches = analysis.touches(action);
      if (failed(accesses) || failed(touches))
        return WalkResult::interrupt();
      if (auto run = dyn_cast<RunOp>(action.getOperation()))
        touches = withViews(segments.lookup<func::FuncOp>(run.getSegment()), *touches);
      action->setAttr(kTouchesAttr, *touches);
      auto program = action->getParentOfType<ProgramOp>();
      llvm::SmallSetVector<Attribute, 4> changed;
      for (const Access &access : *accesses)
        if (BufferOp buffer = access.writes ? analysis.buffer(program, access.buffer) : BufferOp();
            buffer && buffer.getPersistent())
          changed.insert(FlatSymbolRefAttr::get(access.buffer));
      // Whoever writes the program sees by its updates that this has run.
      if (changed.empty() && !isa<UpdateOp>(action))
        action->removeAttr(kChangesAttr);
      else
        action->setAttr(kChangesAttr, ArrayAttr::get(&getContext(), changed.getArrayRef()));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
