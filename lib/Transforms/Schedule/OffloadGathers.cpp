//===- OffloadGathers.cpp - parameters from the host, when blocks need them -===//
//
// A gather of parameters that are the host's begins with a copy of this rank's slice to
// its place among the whole; where there is but one rank, that is all of it.
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "Communicators.h"
#include "ProgramBuilder.h"
#include "Scheduling.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADGATHERS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// The program's buffers of parameters that are the host's move there, and what gathers them begins there.
static LogicalResult offload(ProgramOp program, AccessAnalysis &analysis) {
  ProgramBuilder out(program);
  // All programs of a position have the same memories, those that evaluate too.
  out.memory(kHostMemory, MemoryKind::Host);
  llvm::DenseSet<Attribute> moved;
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    if (buffer.getRole() != BufferRole::Stored)
      continue;
    dist::BucketOp bucket = analysis.bucket(buffer.getOfAttr().getAttr());
    if (!bucket || bucket.getTier() != dist::Tier::Host)
      continue;
    buffer.setMemoryAttr(FlatSymbolRefAttr::get(out.context, kHostMemory));
    moved.insert(FlatSymbolRefAttr::get(buffer.getSymNameAttr()));
  }
  for (auto gather : llvm::to_vector(getSchedule(program).getBody().front().getOps<GatherOp>())) {
    RefAttr slice = gather.getSlice(), target = gather.getTarget();
    if (!moved.contains(slice.getBuffer()))
      continue;
    FailureOr<ArrayRef<SmallVector<int64_t>>> groups = analysis.members.groups(gather);
    if (failed(groups))
      return failure();
    bool alone = groups->front().size() == 1;
    int64_t bytes = gather.getBytes();
    RefAttr own = out.ref(target.getBuffer(), target.getSlot(), target.getOffset(),
                          target.getPerRank() + (alone ? 0 : bytes));
    out.insertBefore(gather);
    // What holds the gather back holds back its copy, which would else begin a step's all at once.
    for (Operation *before = gather->getPrevNode(); isa_and_nonnull<WaitOp>(before);
         before = before->getPrevNode())
      if (auto wait = cast<WaitOp>(before); getStream(wait) == getStream(gather))
        out.write<WaitOp>(wait.getEvent(), kUploadStream);
    auto copy = out.emit<CopyOp>(slice, own, bytes, kUploadStream);
    gather.setSliceAttr(own);
    if (!alone)
      continue;
    gather.getEvent().replaceAllUsesWith(copy.getEvent());
    gather.erase();
  }
  renumberCollectives(getSchedule(program));
  return success();
}

LogicalResult dsopt::offloadGathers(ModuleOp module) {
  if (llvm::none_of(module.getOps<dist::BucketOp>(),
                    [](dist::BucketOp bucket) { return bucket.getTier() == dist::Tier::Host; }))
    return success();
  declareHostStreams(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>()))
    if (failed(offload(program, analysis)))
      return failure();
  return success();
}

namespace {
struct OffloadGathers : dsopt::impl::OffloadGathersBase<OffloadGathers> {
  void runOnOperation() override {
    if (failed(offloadGathers(getOperation())))
      signalPassFailure();
  }
};
} // namespace
