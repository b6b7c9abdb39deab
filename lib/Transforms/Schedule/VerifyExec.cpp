//===- VerifyExec.cpp - what holds after stage 6 --------------------------===//

#include "Verify.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYEXEC
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
class VerifyExec : public dsopt::impl::VerifyExecBase<VerifyExec> {
public:
  using VerifyExecBase::VerifyExecBase;
  void runOnOperation() override {
    SmallVector<exec::ProgramOp> programs = exec::getPrograms(getOperation());
    AccessAnalysis analysis(getOperation());
    for (exec::ProgramOp program : programs)
      if (failed(verifyProgram(program, analysis)))
        return signalPassFailure();
    if (failed(verifyPositions(getOperation(), programs)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
