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

/// Buckets whose copies and update are under way at once: one is brought while another is updated.
static constexpr int64_t kStaged = 2;

namespace {
/// Moves the updates of one program.
class Offloader {
public:
  Offloader(ProgramOp program, AccessAnalysis &analysis) : analysis(analysis), out(program) {
    // All programs of a position have the same memories, those that evaluate too.
    out.memory(kHostMemory, MemoryKind::Host);
  }
  LogicalResult move(ArrayRef<UpdateOp> updates);

private:
  LogicalResult move(UpdateOp update);
  /// Where a part of a device's buffer lies on the host for a while.
  RefAttr stage(RefAttr ref, StringRef what);
  void copy(RefAttr from, RefAttr to, int64_t bytes, StringRef stream) {
    out.emit<CopyOp>(from, to, bytes, stream);
  }
  BufferOp bufferOf(RefAttr ref) { return analysis.buffer(out.program, ref.getBuffer().getAttr()); }

  AccessAnalysis &analysis;
  ProgramBuilder out;
  int64_t most = 0;  ///< elements of an update
  int64_t moved = 0; ///< updates
};
} // namespace

RefAttr Offloader::stage(RefAttr ref, StringRef what) {
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  traits.slots = kStaged;
  Type type = getElementTypeOrSelf(bufferOf(ref).getType());
  std::string name = ("host." + what + ".").str();
  llvm::raw_string_ostream(name) << type;
  return out.ref(out.buffer(name, MemRefType::get({most}, type), BufferKind::Buffers, traits),
                 moved % kStaged);
}

LogicalResult Offloader::move(UpdateOp update) {
  FailureOr<ArrayRef<Access>> accesses = analysis.of(update);
  if (failed(accesses))
    return failure();
  dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
  bool readsParameter = accesses->front().reads, isThere = bucket.getTier() == dist::Tier::Host;
  int64_t elements = update.getElements();
  int64_t bytes = bytesOf(elements, bucket.getType()),
          gradientBytes = bytesOf(elements, bucket.getGradientType());
  SmallVector<Attribute> refs(update.getBuffers().begin(), update.getBuffers().end());
  auto parameter = cast<RefAttr>(refs[0]), gradient = cast<RefAttr>(refs[1]);
  RefAttr staged = isThere ? parameter : stage(parameter, "param"), stagedGradient = stage(gradient, "grad");
  out.insertBefore(update);
  if (!isThere && readsParameter)
    copy(parameter, staged, bytes, kDownloadStream);
  copy(gradient, stagedGradient, gradientBytes, kDownloadStream);
  out.insertAfter(update);
  if (!isThere)
    copy(staged, parameter, bytes, kUploadStream);
  refs[0] = staged;
  refs[1] = stagedGradient;
  for (Attribute state : ArrayRef(refs).drop_front(2))
    bufferOf(cast<RefAttr>(state)).setMemoryAttr(FlatSymbolRefAttr::get(out.context, kHostMemory));
  update.setBuffersAttr(ArrayAttr::get(out.context, refs));
  update.setStream(kHostStream);
  ++moved;
  return success();
}

LogicalResult Offloader::move(ArrayRef<UpdateOp> updates) {
  for (UpdateOp update : updates)
    most = std::max<int64_t>(most, update.getElements());
  for (UpdateOp update : updates)
    if (failed(move(update)))
      return failure();
  return success();
}

LogicalResult dsopt::offloadUpdates(ModuleOp module) {
  auto isOffloaded = [](dist::BucketOp bucket) { return bucket.getStateTier() == dist::Tier::Host; };
  if (llvm::none_of(module.getOps<dist::BucketOp>(), isOffloaded))
    return success();
  declareHostStreams(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    SmallVector<UpdateOp> updates;
    for (auto update : getSchedule(program).getBody().front().getOps<UpdateOp>())
      if (dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
          bucket && isOffloaded(bucket))
        updates.push_back(update);
    if (failed(Offloader(program, analysis).move(updates)))
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
