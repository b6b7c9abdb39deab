//===- OffloadActivations.cpp - activations on the host until backward ----===//
//
// A value that no run touches for long is copied to the host as soon as it is written
// and back ahead of the next run that reads it; between the two, others have its bytes.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Offload/Passes.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_OFFLOADACTIVATIONS
#include "dsopt/Transforms/Offload/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Runs whose values are on their way to the host at once: the next one waits for those of the one before the
/// last.
static constexpr size_t kLeaving = 2;

namespace {
/// What an action does to one slot of a buffer.
struct Touch {
  Operation *action;
  int64_t run; ///< runs before it
  bool reads = false, writes = false;
};

/// Moves the activations of one program.
class Offloader {
public:
  Offloader(ProgramOp program, AccessAnalysis &analysis, int64_t leastBytes, int64_t ahead)
      : analysis(analysis), out(program), leastBytes(leastBytes), ahead(ahead) {
    // All programs of a position have the same memories, those that evaluate too.
    out.memory(kHostMemory, MemoryKind::Host);
  }
  LogicalResult run();
  bool didOffload() const { return !leaving.empty(); }

private:
  using Slot = std::pair<StringAttr, int64_t>;
  LogicalResult collect();
  /// Copies what a slot holds away and back wherever it is left alone for long enough.
  void offload(Slot slot, ArrayRef<Touch> touches);
  void copyBack(RefAttr from, RefAttr to, int64_t bytes, const Touch &reader);
  void throttle();

  AccessAnalysis &analysis;
  ProgramBuilder out;
  int64_t leastBytes, ahead;
  SmallVector<Operation *> runs;
  llvm::MapVector<Slot, SmallVector<Touch>> slots;
  llvm::DenseMap<Operation *, Operation *> last; ///< that an action or a place among the runs is followed by
  llvm::DenseSet<Operation *> awaited;           ///< runs that the way back waits for
  llvm::MapVector<Operation *, CopyOp> leaving;  ///< the last copy of what an action wrote
};
} // namespace

LogicalResult Offloader::collect() {
  for (Operation &op : getSchedule(out.program).getBody().front()) {
    if (isa<WaitOp>(op))
      continue;
    FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
    if (failed(accesses))
      return failure();
    for (const Access &access : *accesses) {
      BufferOp buffer = analysis.buffer(out.program, access.buffer);
      if (!buffer || buffer.getKind() != BufferKind::Activations || bytesOf(buffer.getType()) < leastBytes)
        continue;
      SmallVector<Touch> &touches = slots[{access.buffer, access.slot}];
      if (touches.empty() || touches.back().action != &op)
        touches.push_back({&op, (int64_t)runs.size()});
      touches.back().reads |= access.reads;
      touches.back().writes |= access.writes;
    }
    if (isa<RunOp>(op))
      runs.push_back(&op);
  }
  return success();
}

void Offloader::copyBack(RefAttr from, RefAttr to, int64_t bytes, const Touch &reader) {
  // Not earlier than when a run further ahead is complete: what those before have used is free by then.
  Operation *run = runs[reader.run - 1 - ahead];
  Operation *&end = last.try_emplace(run, run).first->second;
  out.insertAfter(end);
  // What stands behind the run may be a copy away of what it wrote.
  if (awaited.insert(run).second)
    end = out.write<WaitOp>(cast<RunOp>(run).getEvent(), kUploadStream);
  out.insertAfter(end);
  end = out.emit<CopyOp>(from, to, bytes, kUploadStream);
}

void Offloader::offload(Slot slot, ArrayRef<Touch> touches) {
  const Touch *writer = nullptr;
  FlatSymbolRefAttr host;
  BufferOp buffer = analysis.buffer(out.program, slot.first);
  RefAttr there = out.ref(FlatSymbolRefAttr::get(slot.first), slot.second);
  int64_t bytes = bytesOf(buffer.getType());
  bool isCopied = false;
  for (size_t i = 0; i < touches.size(); ++i) {
    const Touch &touch = touches[i];
    if (touch.writes) {
      writer = &touch;
      isCopied = false;
    }
    // It leaves during one run and comes back during another; one lies between, or nothing is gained.
    if (i + 1 == touches.size() || !touches[i + 1].reads || !writer ||
        touches[i + 1].run - touch.run <= 2 * (ahead + 1))
      continue;
    if (!host) {
      ProgramBuilder::BufferTraits traits;
      traits.slots = buffer.getSlots();
      traits.memory = kHostMemory;
      host = out.buffer("host." + slot.first.getValue(), buffer.getType(), BufferKind::Activations, traits);
    }
    RefAttr away = out.ref(host, slot.second);
    if (!isCopied) {
      Operation *&end = last.try_emplace(writer->action, writer->action).first->second;
      out.insertAfter(end);
      auto copy = out.emit<CopyOp>(there, away, bytes, kDownloadStream);
      end = copy;
      leaving[writer->action] = copy;
      isCopied = true;
    }
    copyBack(away, there, bytes, touches[i + 1]);
  }
}

void Offloader::throttle() {
  SmallVector<CopyOp> copies;
  for (Operation *run : runs) {
    CopyOp copy = leaving.lookup(run);
    if (!copy)
      continue;
    if (copies.size() >= kLeaving) {
      out.insertBefore(run);
      out.write<WaitOp>(copies[copies.size() - kLeaving].getEvent(), getStream(run));
    }
    copies.push_back(copy);
  }
}

LogicalResult Offloader::run() {
  if (failed(collect()))
    return failure();
  for (auto &[slot, touches] : slots)
    offload(slot, touches);
  throttle();
  return success();
}

LogicalResult dsopt::offloadActivations(ModuleOp module, int64_t leastBytes) {
  if (options::offload_activations(module) == "none")
    return success();
  declareHostStreams(module);
  AccessAnalysis analysis(module);
  bool didOffload = false;
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>())) {
    Offloader offloader(program, analysis, leastBytes, options::prefetch(module).value_or(1));
    if (failed(offloader.run()))
      return failure();
    didOffload |= offloader.didOffload();
  }
  if (!didOffload)
    module.emitWarning("nothing is offloaded: no activation of at least ")
        << leastBytes << " bytes is left alone for long enough";
  return success();
}

namespace {
struct OffloadActivations : dsopt::impl::OffloadActivationsBase<OffloadActivations> {
  using OffloadActivationsBase::OffloadActivationsBase;
  void runOnOperation() override {
    giveOption(getOperation(), "offload_activations", StringRef(to));
    if (failed(offloadActivations(getOperation(), leastBytes)))
      signalPassFailure();
  }
};
} // namespace
