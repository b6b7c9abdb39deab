//===- OffloadUpdates.cpp - updates where the optimizer's state is --------===//
//
// An update of a bucket whose state is the host's runs there: its gradient is copied to
// the host as soon as it is complete, the new parameters back as soon as they are.
//
//===----------------------------------------------------------------------===//

#include "Accesses.h"
#include "Communicators.h"
#include "ProgramBuilder.h"
#include "Scheduling.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Transforms/Schedule/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADUPDATES
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Moves the updates of one program.
class Offloader {
public:
  Offloader(ProgramOp program, AccessAnalysis &analysis) : analysis(analysis), out(program) {
    // All programs of a position have the same memories, those that evaluate too.
    out.memory(kHostMemory, MemoryKind::Host);
  }
  LogicalResult move(UpdateOp update);

private:
  /// Where a part of a device's buffer lies on the host for a while.
  RefAttr stage(RefAttr ref, int64_t elements);
  void copy(RefAttr from, RefAttr to, int64_t elements, StringRef stream) {
    out.emit<CopyOp>(from, to, bytesOf(elements, typeOf(from)), stream);
  }
  BufferOp bufferOf(RefAttr ref) { return analysis.buffer(out.program, ref.getBuffer().getAttr()); }
  Type typeOf(RefAttr ref) {
    // Staging is as what it stages.
    BufferOp buffer = bufferOf(ref);
    return buffer ? getElementTypeOrSelf(buffer.getType()) : staged.lookup(ref.getBuffer().getAttr());
  }

  AccessAnalysis &analysis;
  ProgramBuilder out;
  llvm::DenseMap<StringAttr, Type> staged; ///< element types of buffers declared here
};
} // namespace

RefAttr Offloader::stage(RefAttr ref, int64_t elements) {
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  Type type = typeOf(ref);
  FlatSymbolRefAttr buffer = out.buffer(ref.getBuffer().getValue() + ".host",
                                        MemRefType::get({elements}, type), BufferKind::Buffers, traits);
  staged[buffer.getAttr()] = type;
  return out.ref(buffer);
}

LogicalResult Offloader::move(UpdateOp update) {
  FailureOr<ArrayRef<Access>> accesses = analysis.of(update);
  if (failed(accesses))
    return failure();
  bool readsParameter = accesses->front().reads;
  int64_t elements = update.getElements();
  SmallVector<Attribute> refs(update.getBuffers().begin(), update.getBuffers().end());
  auto parameter = cast<RefAttr>(refs[0]), gradient = cast<RefAttr>(refs[1]);
  RefAttr ownParameter = stage(parameter, elements), ownGradient = stage(gradient, elements);
  out.insertBefore(update);
  if (readsParameter)
    copy(parameter, ownParameter, elements, kDownloadStream);
  copy(gradient, ownGradient, elements, kDownloadStream);
  out.insertAfter(update);
  copy(ownParameter, parameter, elements, kUploadStream);
  refs[0] = ownParameter;
  refs[1] = ownGradient;
  for (Attribute state : ArrayRef(refs).drop_front(2))
    bufferOf(cast<RefAttr>(state)).setMemoryAttr(FlatSymbolRefAttr::get(out.context, kHostMemory));
  update.setBuffersAttr(ArrayAttr::get(out.context, refs));
  update.setStream(kHostStream);
  return success();
}

LogicalResult dsopt::offloadUpdates(ModuleOp module) {
  auto isOffloaded = [](dist::BucketOp bucket) { return bucket.getStateTier() == dist::Tier::Host; };
  if (llvm::none_of(module.getOps<dist::BucketOp>(), isOffloaded))
    return success();
  declareHostStreams(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    Offloader offloader(program, analysis);
    for (auto update : llvm::to_vector(getSchedule(program).getBody().front().getOps<UpdateOp>()))
      if (dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
          bucket && isOffloaded(bucket) && failed(offloader.move(update)))
        return failure();
  }
  return success();
}

namespace {
struct OffloadUpdates : dsopt::impl::OffloadUpdatesBase<OffloadUpdates> {
  void runOnOperation() override {
    if (failed(offloadUpdates(getOperation())))
      signalPassFailure();
  }
};
} // namespace
