//===- VerifyExec.cpp - what holds after stage 6 --------------------------===//

#include "Verify.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYEXEC
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// What training and evaluation of a position share lies at one place, and evaluation writes nothing else
/// that lives from step to step.
static LogicalResult verifyShared(exec::ProgramOp train, exec::ProgramOp evaluate) {
  for (auto kept : train.getBody().front().getOps<exec::BufferOp>())
    for (auto other : evaluate.getBody().front().getOps<exec::BufferOp>()) {
      if (!kept.getPersistent() || !kept.getOffset() || !other.getOffset())
        continue;
      bool same = kept.getSymName() == other.getSymName();
      int64_t begin = *kept.getOffset(), end = begin + (int64_t)kept.getSlots() * (int64_t)kept.getStride();
      int64_t first = *other.getOffset(),
              last = first + (int64_t)other.getSlots() * (int64_t)other.getStride();
      if (same ? begin == first && end == last : end <= first || last <= begin)
        continue;
      InFlightDiagnostic diag =
          other.emitOpError("of evaluation lies at bytes ")
          << first << " to " << last << ", expected "
          << (same ? "the place that training gives it, " : "none of what training keeps in ") << begin
          << " to " << end;
      diag.attachNote(kept.getLoc()) << "training's buffer is here";
      return diag;
    }
  return success();
}

namespace {
class VerifyExec : public dsopt::impl::VerifyExecBase<VerifyExec> {
public:
  using VerifyExecBase::VerifyExecBase;
  void runOnOperation() override {
    AccessAnalysis analysis(getOperation());
    SmallVector<exec::ProgramOp> trains = exec::getPrograms(getOperation());
    SmallVector<exec::ProgramOp> evaluates = exec::getPrograms(getOperation(), /*evaluate=*/true);
    for (ArrayRef<exec::ProgramOp> programs : {ArrayRef(trains), ArrayRef(evaluates)}) {
      for (exec::ProgramOp program : programs)
        if (failed(verifyProgram(program, analysis)))
          return signalPassFailure();
      if (!programs.empty() && failed(verifyPositions(getOperation(), programs)))
        return signalPassFailure();
    }
    for (auto [train, evaluate] : llvm::zip(trains, evaluates))
      if (failed(verifyShared(train, evaluate)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
