//===- VerifyExec.cpp - what holds after stage 6 --------------------------===//

#include "Verify.h"
#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Analysis/Exec/Packing.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Verify/Passes.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_VERIFYEXEC
#include "dsopt/Verify/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// Ranks follow from positions: these are 0, 1, 2 ...
static LogicalResult verifyNumbers(ArrayRef<exec::ProgramOp> programs) {
  for (auto [i, program] : llvm::enumerate(programs))
    if (exec::ProgramOp(program).getPosition() != i)
      return exec::ProgramOp(program).emitOpError("is position ")
             << exec::ProgramOp(program).getPosition() << ", expected position " << i;
  return success();
}

/// What a position's programs keep from step to step has one place in a memory, whichever of them have it,
/// and nothing else of any of them lies there.
static LogicalResult verifyShared(ArrayRef<exec::ProgramOp> programs, size_t memory) {
  struct Kept {
    int64_t end;
    exec::BufferOp buffer;
  };
  auto placeOf = [](exec::BufferOp buffer) {
    int64_t begin = *buffer.getOffset();
    return std::make_pair(begin, begin + (int64_t)buffer.getSlots() * (int64_t)buffer.getStride());
  };
  SmallVector<exec::MemoryOp> memories = exec::getMemories(programs.front());
  llvm::DenseMap<StringAttr, exec::BufferOp> named;
  std::map<int64_t, Kept> kept; ///< by first byte; none overlaps another
  auto check = [&](exec::BufferOp buffer) -> LogicalResult {
    auto [first, last] = placeOf(buffer);
    exec::BufferOp clash = named.lookup(buffer.getSymNameAttr());
    bool same = (bool)clash;
    if (same && placeOf(clash) == std::make_pair(first, last))
      return success();
    if (!same) {
      auto it = kept.lower_bound(last);
      if (it == kept.begin() || std::prev(it)->second.end <= first)
        return success();
      clash = std::prev(it)->second.buffer;
    }
    auto [begin, end] = placeOf(clash);
    auto owner = clash->getParentOfType<exec::ProgramOp>();
    std::string whose = owner == programs.front() ? "the step's program" : "@" + owner.getSymName().str();
    InFlightDiagnostic diag = buffer.emitOpError("of @")
                              << buffer->getParentOfType<exec::ProgramOp>().getSymName() << " lies at bytes "
                              << first << " to " << last << ", expected "
                              << (same ? "the place that " + whose + " gives it, "
                                       : "none of what " + whose + " keeps in ")
                              << begin << " to " << end;
    diag.attachNote(clash.getLoc()) << "its buffer is here";
    return diag;
  };
  // The first's own buffers are verified with its arena.
  for (bool persistent : {true, false})
    for (exec::ProgramOp program : programs)
      for (auto buffer : program.getBody().front().getOps<exec::BufferOp>()) {
        if (buffer.getPersistent() != persistent || !buffer.getOffset() ||
            exec::memoryOf(buffer, memories) != memory)
          continue;
        if (program != programs.front() && failed(check(buffer)))
          return failure();
        if (persistent && (int64_t)buffer.getStride() > 0 &&
            named.try_emplace(buffer.getSymNameAttr(), buffer).second)
          kept[placeOf(buffer).first] = {placeOf(buffer).second, buffer};
      }
  return success();
}

static LogicalResult verifyShared(ArrayRef<exec::ProgramOp> programs) {
  for (exec::ProgramOp program : programs.drop_front())
    if (failed(exec::verifySameMemories(programs.front(), program)))
      return failure();
  for (size_t memory = 0, count = exec::getMemories(programs.front()).size(); memory < count; ++memory)
    if (failed(verifyShared(programs, memory)))
      return failure();
  return success();
}

/// Where steps change at some step there are programs of those behind it, at each size.
static LogicalResult verifyLater(ModuleOp module, StringRef option, int64_t first, exec::ProgramKind kind,
                                 StringRef what) {
  SmallVector<int64_t> sizes = exec::getVariants(module);
  sizes.insert(sizes.begin(), 0);
  for (int64_t size : sizes) {
    size_t steps = exec::getPrograms(module, exec::ProgramKind::Step, size).size(),
           later = exec::getPrograms(module, kind, size).size();
    if (later != (first ? steps : 0))
      return module.emitError("dsopt.options says that ")
             << option << " is " << first << ", but of " << steps << " programs of a step there are " << later
             << " that are " << what;
  }
  return success();
}

static LogicalResult verifyLater(ModuleOp module, StringRef option, exec::ProgramKind kind, StringRef what) {
  return verifyLater(module, option, getOption(module, option, 0), kind, what);
}

/// Those behind a freeze, or of each kind that there are with it.
static LogicalResult verifyFrozen(ModuleOp module) {
  int64_t freeze = options::freeze_step(module).value_or(0);
  ArrayRef<exec::ProgramKind> kinds = laterKinds(module);
  auto first = [&](exec::ProgramKind kind) { return llvm::is_contained(kinds, kind) ? freeze : 0; };
  for (exec::ProgramKind kind : exec::programKinds(exec::ProgramKind::FrozenStep))
    if (failed(verifyLater(module, "freeze_step", first(kind), kind, exec::stringifyProgramKind(kind))))
      return failure();
  return success();
}

/// A buffer of a bucket holds the bucket whole, or a slice of it.
static LogicalResult verifyBuckets(exec::ProgramOp program, AccessAnalysis &analysis) {
  for (auto buffer : program.getBody().front().getOps<exec::BufferOp>()) {
    FlatSymbolRefAttr name = buffer.getOfAttr();
    if (!name || buffer.getRole() == exec::BufferRole::Kept)
      continue;
    dist::BucketOp bucket = analysis.bucket(name.getAttr());
    if (!bucket)
      return buffer.emitOpError("is of ") << name << ", which is no bucket of this module";
    int64_t elements = cast<ShapedType>(buffer.getType()).getNumElements();
    if (elements != (int64_t)bucket.getPadded() && elements != bucket.getSlice())
      return buffer.emitOpError("has ")
             << elements << " elements, expected the " << (int64_t)bucket.getPadded() << " of " << name
             << " or a slice's " << bucket.getSlice();
  }
  return success();
}

namespace {
class VerifyExec : public dsopt::impl::VerifyExecBase<VerifyExec> {
public:
  using VerifyExecBase::VerifyExecBase;
  void runOnOperation() override {
    auto &lives = getAnalysis<LifeAnalysis>();
    AccessAnalysis &analysis = lives.accesses;
    SmallVector<SmallVector<exec::ProgramOp>> lists = exec::getProgramLists(getOperation());
    if (failed(verifyLater(getOperation(), "delayed_update", exec::ProgramKind::DelayedStep, "delayed")) ||
        failed(verifyFrozen(getOperation())))
      return signalPassFailure();
    for (const SmallVector<exec::ProgramOp> &programs : lists) {
      if (failed(verifyOptions(getOperation(), programs)) || failed(verifyNumbers(programs)))
        return signalPassFailure();
      for (exec::ProgramOp program : programs)
        if (failed(verifyBuckets(program, analysis)) || failed(verifyProgram(program, lives)))
          return signalPassFailure();
      if (failed(verifyPositions(programs, analysis.members)) ||
          failed(verifyCompleteness(getOperation(), programs, analysis)))
        return signalPassFailure();
    }
    for (auto &[position, programs] : programsByPosition(getOperation()))
      if (failed(verifyShared(programs)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
