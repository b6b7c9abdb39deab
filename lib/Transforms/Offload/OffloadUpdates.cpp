//===- OffloadUpdates.cpp - updates where the optimizer's state is --------===//
//
// An update of a bucket whose state is not the device's runs on the host: its gradient is
// copied there as soon as it is complete, the new parameters back as soon as they are. State
// that lies on disk is read ahead, part by part, and written back. An update that lags a
// step behind begins with the step, beside forward and backward; the gradients that wait
// for it lie where the state does.
//
//===----------------------------------------------------------------------===//

#include "DiskStaging.h"
#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Transforms/Offload/Passes.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADUPDATES
#include "dsopt/Transforms/Offload/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Updates that are under way at once: the gradient of one is brought while another runs.
static constexpr int64_t kStaged = 2;

namespace {
/// What an update reads and writes, operand by operand.
struct Operand {
  RefAttr home;      ///< of the whole update's
  MemoryKind memory; ///< that it lies in
  int64_t width;     ///< bytes of an element
  bool reads, writes;
  std::string name; ///< of what it is staged in
};

/// A range of an update's elements.
struct Part {
  UpdateOp update;
  int64_t from, elements;
  bool isLast;
  bool isEarly; ///< it begins with the step
  SmallVector<Operand> operands;
  SmallVector<Attribute> staged; ///< where the update finds them
};

/// Moves the updates of one program.
class Offloader {
public:
  Offloader(ProgramOp program, AccessAnalysis &analysis, bool usesDisk)
      : analysis(analysis), out(program), usesDisk(usesDisk),
        lags(program.getKind() == ProgramKind::DelayedStep),
        start(getSchedule(program).getBody().front().empty()
                  ? nullptr
                  : &getSchedule(program).getBody().front().front()) {
    // All programs of a position have the same memories, those that evaluate too.
    out.memory(kHostMemory, MemoryKind::Host, usesDisk ? kDiskAlignment : kAlignment);
    if (usesDisk)
      out.memory(kDiskMemory, MemoryKind::Disk, kDiskAlignment);
  }
  LogicalResult move(ArrayRef<UpdateOp> updates);

private:
  LogicalResult split(UpdateOp update);
  /// Whether the update need not wait for what reads the parameters: it leaves these alone until then. One
  /// that goes by norms waits for all ranks anyhow.
  bool isEarly(UpdateOp update) {
    return lags && !update.getRecord() &&
           analysis.bucket(update.getBucketAttr().getAttr()).getTier() == dist::Tier::Device;
  }
  FailureOr<SmallVector<Operand>> operandsOf(UpdateOp update, dist::BucketOp bucket);
  /// Where a part of a buffer lies on the host for a while.
  RefAttr stage(const Operand &operand, int64_t number);
  /// Where the new parameters lie until the old ones are not needed any more.
  RefAttr next(UpdateOp update, const Operand &operand);
  /// Where the host has a record of norms: it brings that of all ranks once, before what it writes next.
  RefAttr record(UpdateOp update);
  /// Copies what of the part lies in that memory to the host, or what changed back.
  void bring(const Part &part, MemoryKind from, StringRef stream);
  void takeBack(const Part &part, MemoryKind to, StringRef stream);
  void write(size_t number);
  /// Splits the copy that sets aside the gradient of a bucket whose state lies on disk.
  void keepOnDisk(CopyOp copy);
  BufferOp bufferOf(RefAttr ref) { return analysis.buffer(out.program, ref.getBuffer().getAttr()); }

  AccessAnalysis &analysis;
  ProgramBuilder out;
  bool usesDisk, lags;
  Operation *start;                  ///< the step's first action
  int64_t most = 0;                  ///< elements of a part
  llvm::DenseSet<Attribute> brought; ///< records of all ranks
  int64_t kept = 0;                  ///< parts of gradients that were set aside on disk
  std::vector<Part> parts;
};
} // namespace

static RefAttr atElement(const Operand &operand, int64_t element) {
  return shifted(operand.home, element * operand.width);
}

static MemoryKind memoryOf(dist::Tier tier) {
  return tier == dist::Tier::Disk   ? MemoryKind::Disk
         : tier == dist::Tier::Host ? MemoryKind::Host
                                    : MemoryKind::Device;
}

FailureOr<SmallVector<Operand>> Offloader::operandsOf(UpdateOp update, dist::BucketOp bucket) {
  FailureOr<ArrayRef<Access>> accesses = analysis.of(update);
  if (failed(accesses))
    return failure();
  SmallVector<std::string> names = {"param", "grad"};
  if (bucket.getMaster())
    names.push_back("master");
  if (auto states = bucket.getStates())
    for (auto state : states->getAsRange<dist::StateAttr>())
      names.push_back(state.getRole().str());
  SmallVector<Operand> operands;
  for (auto [i, ref] : llvm::enumerate(update.getBuffers().getAsRange<RefAttr>())) {
    Type type = getElementTypeOrSelf(bufferOf(ref).getType());
    MemoryKind memory = i == kUpdatedParameter          ? memoryOf(bucket.getTier())
                        : i == kUpdateGradient && !lags ? MemoryKind::Device
                                                        : memoryOf(bucket.getStateTier());
    // A rule may call a state as another operand is called.
    bool isUnique = llvm::count(names, names[i]) == 1;
    std::string name = "host." + names[i] + (isUnique ? "." : std::to_string(i) + ".");
    llvm::raw_string_ostream(name) << type;
    operands.push_back({ref, memory, bytesOf(1, type), (*accesses)[i].reads, (*accesses)[i].writes, name});
  }
  return operands;
}

RefAttr Offloader::stage(const Operand &operand, int64_t number) {
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  traits.slots = usesDisk ? kStagedOnDisk : kStaged;
  Type type = getElementTypeOrSelf(bufferOf(operand.home).getType());
  return out.ref(out.buffer(operand.name, MemRefType::get({most}, type), BufferKind::Buffers, traits),
                 number % traits.slots);
}

RefAttr Offloader::next(UpdateOp update, const Operand &operand) {
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  traits.of = update.getBucket();
  Type type = getElementTypeOrSelf(bufferOf(operand.home).getType());
  return out.ref(out.buffer(update.getBucket() + ".next",
                            MemRefType::get({(int64_t)update.getElements()}, type), BufferKind::Buffers,
                            traits));
}

LogicalResult Offloader::split(UpdateOp update) {
  dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
  FailureOr<SmallVector<Operand>> operands = operandsOf(update, bucket);
  if (failed(operands))
    return failure();
  // What is read ahead would be the gradient still.
  if (update.getRecord() && lags && memoryOf(bucket.getStateTier()) == MemoryKind::Disk)
    return update->getParentOfType<ModuleOp>().emitError(
        "-delayed-update with an optimizer that goes by norms of whole parameters: expected "
        "-offload-optimizer=cpu, got nvme");
  auto home = FlatSymbolRefAttr::get(
      out.context, memoryOf(bucket.getStateTier()) == MemoryKind::Disk ? kDiskMemory : kHostMemory);
  for (const Operand &state : ArrayRef(*operands).drop_front(kFirstUpdateState))
    bufferOf(state.home).setMemoryAttr(home);
  if (BufferOp pending = out.find(BufferRole::Pending, bucket.getSymName()))
    pending.setMemoryAttr(home);
  int64_t all = update.getElements();
  for (int64_t from = 0; from < all; from += most) {
    Part part{update, from, std::min(most, all - from), from + most >= all, isEarly(update), *operands, {}};
    for (auto [i, operand] : llvm::enumerate(*operands)) {
      Operand there = operand;
      if (i == kUpdatedParameter && part.isEarly)
        there.home = next(update, operand);
      else if (operand.memory != MemoryKind::Host) {
        part.staged.push_back(stage(operand, parts.size()));
        continue;
      }
      part.staged.push_back(atElement(there, from));
    }
    parts.push_back(part);
  }
  return success();
}

void Offloader::bring(const Part &part, MemoryKind from, StringRef stream) {
  for (auto [operand, staged] : llvm::zip(part.operands, part.staged))
    if (operand.memory == from && operand.reads)
      out.emit<CopyOp>(atElement(operand, part.from), cast<RefAttr>(staged), part.elements * operand.width,
                       stream);
}

void Offloader::takeBack(const Part &part, MemoryKind to, StringRef stream) {
  for (auto [operand, staged] : llvm::zip(part.operands, part.staged))
    if (operand.memory == to && operand.writes)
      out.emit<CopyOp>(cast<RefAttr>(staged), atElement(operand, part.from), part.elements * operand.width,
                       stream);
}

RefAttr Offloader::record(UpdateOp update) {
  RefAttr home = *update.getRecord();
  Type type = bufferOf(home).getType();
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  // Tensor shards have a record of their own.
  bool isOfShards =
      dist::BucketOp(analysis.bucket(update.getBucketAttr().getAttr())).getDistinct().has_value();
  StringRef name = update.getDirection() ? "host.norms.own" : "host.norms.all";
  FlatSymbolRefAttr buffer =
      out.buffer(name + Twine(isOfShards ? ".shards" : ""), type, BufferKind::Buffers, traits);
  RefAttr there = out.ref(buffer, 0, home.getOffset());
  if (!update.getDirection() && brought.insert(buffer).second)
    out.emit<CopyOp>(home, there, bytesOf(type), kDownloadStream);
  return there;
}

void Offloader::write(size_t number) {
  const Part &part = parts[number];
  UpdateOp whole = part.update;
  out.insertBefore(part.isEarly ? start : whole);
  bring(part, MemoryKind::Device, kDownloadStream);
  RefAttr norms = whole.getRecord() ? record(whole) : RefAttr();
  UpdateOp update = out.repeat(whole);
  update.setBuffersAttr(ArrayAttr::get(out.context, part.staged));
  update.setElements(part.elements);
  update.setFrom(part.from);
  update.setStream(kHostStream);
  if (norms)
    update.setRecordAttr(norms);
  if (norms && whole.getDirection() && part.isLast) {
    int64_t parameters = analysis.bucket(whole.getBucketAttr().getAttr()).getRanges().size();
    out.emit<CopyOp>(norms, *whole.getRecord(), parameters * kTrustWords * (int64_t)sizeof(int64_t),
                     kUploadStream);
  }
  if (!part.isEarly)
    takeBack(part, MemoryKind::Device, kUploadStream);
  if (usesDisk) {
    takeBack(part, MemoryKind::Disk, kDiskStream);
    // What is written makes room for what is read next.
    if (number + kStagedOnDisk < parts.size())
      bring(parts[number + kStagedOnDisk], MemoryKind::Disk, kDiskStream);
  }
  if (part.isEarly) {
    out.insertBefore(whole);
    takeBack(part, MemoryKind::Device, kUploadStream);
  }
  if (!part.isLast)
    return;
  whole.getEvent().replaceAllUsesWith(update.getEvent());
  if (start == whole)
    start = whole->getNextNode();
  whole.erase();
}

void Offloader::keepOnDisk(CopyOp copy) {
  RefAttr gradient = copy.getSource(), pending = copy.getTarget();
  Type type = getElementTypeOrSelf(bufferOf(pending).getType());
  ProgramBuilder::BufferTraits traits;
  traits.memory = kHostMemory;
  traits.slots = kStaged;
  std::string name = "host.pending.";
  llvm::raw_string_ostream(name) << type;
  FlatSymbolRefAttr staging = out.buffer(name, MemRefType::get({most}, type), BufferKind::Buffers, traits);
  int64_t part = bytesOf(most, type), bytes = copy.getBytes();
  out.insertBefore(copy);
  for (int64_t at = 0; at < bytes; at += part) {
    RefAttr staged = out.ref(staging, kept++ % kStaged);
    int64_t size = std::min(part, bytes - at);
    out.emit<CopyOp>(shifted(gradient, at), staged, size, kDownloadStream);
    out.emit<CopyOp>(staged, shifted(pending, at), size, kDiskStream);
  }
  copy.erase();
}

LogicalResult Offloader::move(ArrayRef<UpdateOp> updates) {
  SmallVector<CopyOp> setAside;
  for (auto copy : getSchedule(out.program).getBody().front().getOps<CopyOp>())
    if (bufferOf(copy.getTarget()).getRole() == BufferRole::Pending)
      setAside.push_back(copy);
  for (UpdateOp update : updates)
    most = std::max<int64_t>(most, update.getElements());
  if (usesDisk)
    most = elementsOfPart(out.program->getParentOfType<ModuleOp>(), most);
  for (bool early : {true, false})
    for (UpdateOp update : updates)
      if (isEarly(update) == early && failed(split(update)))
        return failure();
  if (usesDisk && !parts.empty()) {
    Operation *last = nullptr;
    for (Operation &op : getSchedule(out.program).getBody().front()) {
      if (&op == parts.front().update || parts.front().isEarly)
        break;
      if (auto copy = dyn_cast<CopyOp>(op); copy && copy.getStream() == kDiskStream)
        last = &op;
    }
    last ? out.insertAfter(last) : out.insertBefore(start);
    for (size_t number = 0; number < std::min<size_t>(kStagedOnDisk, parts.size()); ++number)
      bring(parts[number], MemoryKind::Disk, kDiskStream);
  }
  for (size_t number = 0; number < parts.size(); ++number)
    write(number);
  for (CopyOp copy : setAside)
    if (bufferOf(copy.getTarget()).getMemory() == kDiskMemory)
      keepOnDisk(copy);
  return success();
}

LogicalResult dsopt::offloadUpdates(ModuleOp module) {
  auto isOffloaded = [](dist::BucketOp bucket) { return bucket.getStateTier() != dist::Tier::Device; };
  if (llvm::none_of(module.getOps<dist::BucketOp>(), isOffloaded))
    return success();
  declareHostStreams(module);
  bool usesDisk = llvm::any_of(module.getOps<dist::BucketOp>(), [&](dist::BucketOp bucket) {
    return isOffloaded(bucket) &&
           (bucket.getStateTier() == dist::Tier::Disk || bucket.getTier() == dist::Tier::Disk);
  });
  if (usesDisk)
    declareDiskStream(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    SmallVector<UpdateOp> updates;
    for (auto update : getSchedule(program).getBody().front().getOps<UpdateOp>())
      if (dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
          bucket && isOffloaded(bucket))
        updates.push_back(update);
    if (failed(Offloader(program, analysis, usesDisk).move(updates)))
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
