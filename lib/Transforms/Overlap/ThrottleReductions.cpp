//===- ThrottleReductions.cpp - bounds the gradients on their way ---------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Overlap/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace dsopt {
#define GEN_PASS_DEF_THROTTLEREDUCTIONS
#include "dsopt/Transforms/Overlap/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What leaves a device's buffers in one way, reduced or copied to the host, and the buffers that are free
/// then.
struct Leaving {
  llvm::DenseSet<StringAttr> buffers;
  SmallVector<Operation *> actions;
};
} // namespace

/// Buffers of gradients that are free when they are reduced or added to another.
static llvm::DenseSet<StringAttr> reducedGradients(Block &actions) {
  llvm::DenseSet<StringAttr> reduced;
  for (Operation &op : actions)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      reduced.insert(reduce.getWhole().getBuffer().getAttr());
    else if (auto add = dyn_cast<AddOp>(op))
      reduced.insert(add.getSource().getBuffer().getAttr());
  for (auto reduce : actions.getOps<ReduceOp>())
    reduced.erase(reduce.getTarget().getBuffer().getAttr());
  return reduced;
}

/// Accumulators that are copied to another memory.
static llvm::DenseSet<StringAttr> copiedGradients(ProgramOp program, AccessAnalysis &analysis) {
  llvm::DenseSet<StringAttr> copied;
  for (auto copy : getSchedule(program).getBody().front().getOps<CopyOp>()) {
    BufferOp buffer = analysis.buffer(program, copy.getSource().getBuffer().getAttr());
    if (buffer && buffer.getKind() == BufferKind::Gradients)
      copied.insert(buffer.getSymNameAttr());
  }
  return copied;
}

static LogicalResult throttle(ProgramOp program, size_t most, AccessAnalysis &analysis) {
  Block &actions = getSchedule(program).getBody().front();
  Leaving reduced{reducedGradients(actions), {}}, copied{copiedGradients(program, analysis), {}};
  llvm::DenseSet<StringAttr> begun; ///< accumulators that hold something
  for (Operation &op : llvm::make_early_inc_range(actions)) {
    if (auto copy = dyn_cast<CopyOp>(op)) {
      if (copied.buffers.contains(copy.getSource().getBuffer().getAttr()))
        copied.actions.push_back(&op);
      continue;
    }
    if (isa<ReduceOp>(op))
      reduced.actions.push_back(&op);
    if (!isa<RunOp, ReduceOp, AddOp>(op))
      continue;
    FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
    if (failed(accesses))
      return failure();
    // What it writes takes the bytes of what has left, so that it has to wait for that.
    auto wait = [&](const Leaving &leaving, bool writes) {
      if (!writes || leaving.actions.size() < most)
        return;
      Operation *left = leaving.actions[leaving.actions.size() - most];
      OpBuilder builder(&op);
      WaitOp::create(builder, op.getLoc(), left->getResult(0), getStream(&op));
    };
    bool begins = false;
    for (const Access &access : *accesses)
      begins |= access.writes && copied.buffers.contains(access.buffer) && begun.insert(access.buffer).second;
    wait(copied, begins);
    wait(reduced, isa<RunOp>(op) && llvm::any_of(*accesses, [&](const Access &access) {
                    return access.writes && reduced.buffers.contains(access.buffer);
                  }));
  }
  return success();
}

LogicalResult dsopt::throttleReductions(ModuleOp module) {
  size_t most = options::reductions_in_flight(module);
  AccessAnalysis analysis(module);
  for (auto program : module.getOps<ProgramOp>())
    if (getSchedule(program) && failed(throttle(program, most, analysis)))
      return failure();
  return success();
}

namespace {
struct ThrottleReductions : dsopt::impl::ThrottleReductionsBase<ThrottleReductions> {
  using ThrottleReductionsBase::ThrottleReductionsBase;
  void runOnOperation() override {
    giveOption(getOperation(), "reductions_in_flight", inFlight, /*unset=*/0);
    if (failed(throttleReductions(getOperation())))
      signalPassFailure();
  }
};
} // namespace
