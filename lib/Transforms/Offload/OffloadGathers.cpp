//===- OffloadGathers.cpp - parameters from host or disk, when blocks need them -===//
//
// A gather of parameters that are not the device's begins with a copy of this rank's slice
// to its place among the whole; where there is but one rank, that is all of it.
//
//===----------------------------------------------------------------------===//

#include "DiskStaging.h"
#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Transforms/Offload/Passes.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADGATHERS
#include "dsopt/Transforms/Offload/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Moves the parameters of one program.
class Offloader {
public:
  Offloader(ProgramOp program, AccessAnalysis &analysis, bool usesDisk) : analysis(analysis), out(program) {
    // All programs of a position have the same memories, those that evaluate too.
    out.memory(kHostMemory, MemoryKind::Host, usesDisk ? kDiskAlignment : kAlignment);
    if (usesDisk)
      out.memory(kDiskMemory, MemoryKind::Disk, kDiskAlignment);
  }
  LogicalResult move();

private:
  void moveBuffers();
  LogicalResult findReads();
  LogicalResult move(GatherOp gather);
  /// Where on the device a gather takes this rank's slice: its place among the whole, or beside that where it
  /// travels as something else or to some of the ranks.
  RefAttr ownPlace(GatherOp gather);
  /// Copies a slice to the device; from disk by way of the host, those parts of which `isRead` some bytes.
  /// The last copy.
  CopyOp bring(RefAttr slice, RefAttr own, int64_t bytes,
               llvm::function_ref<bool(int64_t begin, int64_t end)> isRead);

  AccessAnalysis &analysis;
  ProgramBuilder out;
  llvm::DenseMap<Attribute, dist::Tier> moved; ///< buffers
  /// What is read of a gather's target until the next one's, in bytes.
  llvm::DenseMap<Operation *, SmallVector<std::pair<int64_t, int64_t>>> reads;
  int64_t most = 0; ///< elements of a part
  int64_t read = 0; ///< parts
};
} // namespace

void Offloader::moveBuffers() {
  int64_t slice = 0;
  bool isCut = false;
  for (auto buffer : out.program.getBody().front().getOps<BufferOp>()) {
    if (buffer.getRole() != BufferRole::Stored)
      continue;
    dist::BucketOp bucket = analysis.bucket(buffer.getOfAttr().getAttr());
    if (!bucket || bucket.getTier() == dist::Tier::Device)
      continue;
    bool onDisk = bucket.getTier() == dist::Tier::Disk;
    buffer.setMemoryAttr(FlatSymbolRefAttr::get(out.context, onDisk ? kDiskMemory : kHostMemory));
    moved[FlatSymbolRefAttr::get(buffer.getSymNameAttr())] = bucket.getTier();
    slice = std::max(slice, bucket.getSlice());
    isCut |= bucket.getRanks() > 1;
  }
  // What each rank has of a slice's part would lie between what others have: a slice is copied whole.
  most = isCut ? alignedOnDisk(slice) : elementsOfPart(out.program->getParentOfType<ModuleOp>(), slice);
}

LogicalResult Offloader::findReads() {
  llvm::DenseMap<int64_t, Operation *> holds; ///< gathers, by the place of their target
  for (Operation &op : getSchedule(out.program).getBody().front()) {
    if (isa<WaitOp>(op))
      continue;
    FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
    if (failed(accesses))
      return failure();
    for (const Access &access : *accesses)
      if (Operation *gather = holds.lookup(access.place); gather && access.reads)
        reads[gather].emplace_back(access.begin, access.end);
    if (isa<GatherOp>(op))
      for (const Access &access : *accesses)
        if (access.writes)
          holds[access.place] = &op;
  }
  return success();
}

CopyOp Offloader::bring(RefAttr slice, RefAttr own, int64_t bytes,
                        llvm::function_ref<bool(int64_t begin, int64_t end)> isRead) {
  if (moved.lookup(slice.getBuffer()) == dist::Tier::Host)
    return out.emit<CopyOp>(slice, own, bytes, kUploadStream);
  Type type = getElementTypeOrSelf(analysis.buffer(out.program, slice.getBuffer().getAttr()).getType());
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  traits.slots = kStagedOnDisk;
  std::string name = "host.fetch.";
  llvm::raw_string_ostream(name) << type;
  FlatSymbolRefAttr staged = out.buffer(name, MemRefType::get({most}, type), BufferKind::Buffers, traits);
  CopyOp copy;
  for (int64_t from = 0, step = bytesOf(most, type); from < bytes; from += step) {
    int64_t part = std::min(step, bytes - from);
    if (!isRead(from, from + part))
      continue;
    RefAttr slot = out.ref(staged, read++ % kStagedOnDisk);
    out.emit<CopyOp>(shifted(slice, from), slot, part, kDiskStream);
    copy = out.emit<CopyOp>(slot, shifted(own, from), part, kUploadStream);
  }
  return copy;
}

RefAttr Offloader::ownPlace(GatherOp gather) {
  RefAttr slice = gather.getSlice(), target = gather.getTarget();
  if (gather.getCommunicator() == kDataParallel && !gather.getWire())
    return ownPart(target, gather.getBytes(), *analysis.members.axes(gather), analysis.members.grid());
  BufferOp stored = analysis.buffer(out.program, slice.getBuffer().getAttr());
  ProgramBuilder::BufferTraits traits;
  traits.of = *stored.getOf();
  return out.ref(out.buffer(*stored.getOf() + ".fetched", stored.getType(), BufferKind::Buffers, traits));
}

LogicalResult Offloader::move(GatherOp gather) {
  RefAttr slice = gather.getSlice(), target = gather.getTarget();
  FailureOr<int64_t> members = analysis.members.count(gather);
  if (failed(members))
    return failure();
  bool alone = *members == 1;
  int64_t bytes = gather.getBytes();
  RefAttr own = alone ? target : ownPlace(gather);
  out.insertBefore(gather);
  // What holds the gather back holds back its copy, which would else begin a step's all at once. Reads from
  // disk are held back by where they are put.
  for (Operation *before = gather->getPrevNode(); isa_and_nonnull<WaitOp>(before);
       before = before->getPrevNode())
    if (auto wait = cast<WaitOp>(before); getStream(wait) == getStream(gather))
      out.write<WaitOp>(wait.getEvent(), kUploadStream);
  // A gather needs all that each rank has, a rank alone what its blocks read.
  CopyOp copy = bring(slice, own, bytes, [&](int64_t begin, int64_t end) {
    return !alone || reads[gather].empty() || llvm::any_of(reads[gather], [&](auto range) {
      return range.first < target.getOffset() + end && range.second > target.getOffset() + begin;
    });
  });
  gather.setSliceAttr(own);
  if (!alone)
    return success();
  gather.getEvent().replaceAllUsesWith(copy.getEvent());
  gather.erase();
  return success();
}

LogicalResult Offloader::move() {
  moveBuffers();
  if (failed(findReads()))
    return failure();
  for (auto gather : llvm::to_vector(getSchedule(out.program).getBody().front().getOps<GatherOp>()))
    if (moved.contains(gather.getSlice().getBuffer()) && failed(move(gather)))
      return failure();
  renumberCollectives(getSchedule(out.program));
  return success();
}

LogicalResult dsopt::offloadGathers(ModuleOp module) {
  auto isIn = [&](dist::Tier tier) {
    return llvm::any_of(module.getOps<dist::BucketOp>(),
                        [&](dist::BucketOp bucket) { return bucket.getTier() == tier; });
  };
  bool usesDisk = isIn(dist::Tier::Disk);
  if (!usesDisk && !isIn(dist::Tier::Host))
    return success();
  declareHostStreams(module);
  if (usesDisk)
    declareDiskStream(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>()))
    if (failed(Offloader(program, analysis, usesDisk).move()))
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
