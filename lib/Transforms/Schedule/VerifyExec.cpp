//===- VerifyExec.cpp - what holds after stage 6 --------------------------===//

#include "Verify.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYEXEC
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// What a position's programs share lies at one place, and the other writes nothing else that lives from
/// step to step.
static LogicalResult verifyShared(exec::ProgramOp own, exec::ProgramOp program) {
  for (auto kept : own.getBody().front().getOps<exec::BufferOp>())
    for (auto other : program.getBody().front().getOps<exec::BufferOp>()) {
      if (!kept.getPersistent() || !kept.getOffset() || !other.getOffset())
        continue;
      bool same = kept.getSymName() == other.getSymName();
      int64_t begin = *kept.getOffset(), end = begin + (int64_t)kept.getSlots() * (int64_t)kept.getStride();
      int64_t first = *other.getOffset(),
              last = first + (int64_t)other.getSlots() * (int64_t)other.getStride();
      if (same ? begin == first && end == last : end <= first || last <= begin)
        continue;
      InFlightDiagnostic diag = other.emitOpError("of @")
                                << program.getSymName() << " lies at bytes " << first << " to " << last
                                << ", expected "
                                << (same ? "the place that the step's program gives it, "
                                         : "none of what the step's program keeps in ")
                                << begin << " to " << end;
      diag.attachNote(kept.getLoc()) << "its buffer is here";
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
    SmallVector<SmallVector<exec::ProgramOp>> lists = exec::getProgramLists(getOperation());
    for (const SmallVector<exec::ProgramOp> &programs : lists) {
      for (exec::ProgramOp program : programs)
        if (failed(verifyProgram(program, analysis)))
          return signalPassFailure();
      if (failed(verifyPositions(getOperation(), programs)) ||
          failed(verifyCompleteness(getOperation(), programs, analysis)))
        return signalPassFailure();
    }
    for (ArrayRef<exec::ProgramOp> programs : ArrayRef(lists).drop_front(!lists.empty()))
      for (auto [own, other] : llvm::zip(lists.front(), programs))
        if (failed(verifyShared(own, other)))
          return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
