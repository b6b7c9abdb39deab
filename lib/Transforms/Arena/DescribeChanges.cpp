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

namespace {
struct DescribeChanges : dsopt::impl::DescribeChangesBase<DescribeChanges> {
  void runOnOperation() override {
    AccessAnalysis analysis(getOperation());
    WalkResult walked = getOperation().walk([&](ActionOpInterface action) {
      FailureOr<ArrayRef<Access>> accesses = analysis.of(action);
      FailureOr<ArrayAttr> touches = analysis.touches(action);
      if (failed(accesses) || failed(touches))
        return WalkResult::interrupt();
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
