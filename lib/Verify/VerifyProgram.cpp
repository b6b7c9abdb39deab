//===- VerifyProgram.cpp - one position's program by itself ---------------===//
//
// Nothing is taken from the builder or the planner: everything is recomputed
// from buffers, offsets, accesses and waits.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Step/Passes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
class ProgramVerifier {
public:
  ProgramVerifier(ProgramOp program, const ProgramLife &life, AccessAnalysis &analysis)
      : program(program), life(life), analysis(analysis) {}
  LogicalResult verify();

private:
  LogicalResult verifyAddresses();
  LogicalResult verifyMemories();
  LogicalResult verifyHazards();
  LogicalResult verifyGradients();
  LogicalResult verifyUpdates();
  LogicalResult verifyCollectives();
  Operation *action(int64_t entry) { return life.timeline.entries()[entry].op; }

  ProgramOp program;
  const ProgramLife &life;
  AccessAnalysis &analysis;
};
} // namespace

LogicalResult ProgramVerifier::verifyAddresses() {
  for (auto [index, list] : llvm::enumerate(life.accesses))
    for (const Access &access : list) {
      const Place &place = life.places[access.place];
      BufferOp buffer = place.buffer;
      if (buffer && access.slot >= 0 && access.slot < (int64_t)buffer.getSlots() && access.begin >= 0 &&
          access.end <= place.bytes)
        continue;
      Operation *op = action(index);
      if (!buffer)
        return op->emitOpError("names @")
               << access.buffer.getValue() << ", which is no buffer of its program";
      auto note = [&](InFlightDiagnostic &&diag) -> LogicalResult {
        diag.attachNote(buffer.getLoc()) << "the buffer is here";
        return diag;
      };
      if (access.slot < 0 || access.slot >= (int64_t)buffer.getSlots())
        return note(op->emitOpError("uses slot ")
                    << access.slot << " of @" << buffer.getSymName() << ", which has "
                    << (int64_t)buffer.getSlots() << " slots");
      return note(op->emitOpError("touches bytes ") << access.begin << " to " << access.end << " of @"
                                                    << buffer.getSymName() << ", which has " << place.bytes);
    }
  return success();
}

/// Whether actions of a stream reach bytes of a memory.
static bool reaches(StreamKind stream, MemoryKind memory) {
  switch (stream) {
  case StreamKind::Compute:
  case StreamKind::Communication:
    return memory == MemoryKind::Device;
  case StreamKind::Host:
    return memory == MemoryKind::Host;
  case StreamKind::Copy:
    return memory != MemoryKind::Disk;
  case StreamKind::Disk:
    return memory != MemoryKind::Device;
  }
  llvm_unreachable("not a kind of stream");
}

/// Actions touch the memories that their streams reach. Constants and the step's scalars are everywhere.
LogicalResult ProgramVerifier::verifyMemories() {
  SmallVector<MemoryOp> memories = getMemories(program);
  if (memories.size() == 1 && memories.front().getKind() == MemoryKind::Device)
    return success();
  std::vector<MemoryOp> memoryOfPlace;
  for (const Place &place : life.places) {
    BufferOp buffer = place.buffer;
    bool everywhere = !buffer || buffer.getSymbol() || buffer.getRole() == BufferRole::Scalars;
    memoryOfPlace.push_back(everywhere ? MemoryOp() : memories[memoryOf(buffer, memories)]);
  }
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    StreamOp stream = analysis.streams[life.timeline.entries()[index].stream];
    auto isOnDisk = [&](const Access &access) {
      MemoryOp memory = memoryOfPlace[access.place];
      return memory && memory.getKind() == MemoryKind::Disk;
    };
    if (stream.getKind() == StreamKind::Disk && llvm::none_of(list, isOnDisk))
      return action(index)->emitOpError("is on @")
             << stream.getSymName() << ", of kind disk, but neither from disk memory nor to it";
    for (const Access &access : list) {
      MemoryOp memory = memoryOfPlace[access.place];
      if (!memory || reaches(stream.getKind(), memory.getKind()))
        continue;
      InFlightDiagnostic diag = action(index)->emitOpError("is on @")
                                << stream.getSymName() << ", of kind "
                                << stringifyStreamKind(stream.getKind()) << ", which does not reach @"
                                << access.buffer.getValue() << " in " << stringifyMemoryKind(memory.getKind())
                                << " memory";
      diag.attachNote(BufferOp(life.places[access.place].buffer).getLoc()) << "the buffer is here";
      return diag;
    }
  }
  return success();
}

LogicalResult ProgramVerifier::verifyHazards() {
  HazardTracker hazards(analysis.streams.size());
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    for (const Access &access : list) {
      int64_t clash = -1;
      bool wrote = false;
      hazards.conflicts(access, [&, now = (int64_t)index](int64_t entry, bool writes) {
        if (entry != now && clash < 0 && !life.timeline.precedes(entry, now)) {
          clash = entry;
          wrote = writes;
        }
      });
      if (clash >= 0) {
        InFlightDiagnostic diag = action(index)->emitOpError(access.writes ? "writes @" : "reads @")
                                  << access.buffer.getValue() << " slot " << access.slot
                                  << " without waiting for the " << describe(action(clash)) << ", which "
                                  << (wrote ? "writes" : "reads") << " it";
        diag.attachNote(action(clash)->getLoc()) << "the earlier action is here";
        return diag;
      }
    }
    for (const Access &access : list)
      hazards.record(access, index, life.timeline.entries()[index].stream);
  }
  return success();
}

LogicalResult ProgramVerifier::verifyGradients() {
  llvm::MapVector<StringAttr, Operation *> pending; ///< whole gradients that nothing has added up yet
  llvm::DenseMap<StringAttr, Operation *> reduced;  ///< last reduction into it
  llvm::DenseMap<StringAttr, Operation *> measured; ///< the gradient's norm or update
  AgreeOp agree;
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    const Timeline::Entry &entry = life.timeline.entries()[index];
    if (entry.is<GatherOp>())
      continue;
    Operation *op = entry.op;
    if (auto found = dyn_cast<AgreeOp>(op))
      agree = found;
    if (!measured.empty() && isa<RunOp, AddOp, ReduceOp, MapOp>(op))
      for (const Access &access : list)
        if (auto it = measured.find(access.buffer); access.writes && it != measured.end()) {
          InFlightDiagnostic diag = op->emitOpError("writes gradient @")
                                    << access.buffer.getValue() << " after the " << describe(it->second);
          diag.attachNote(it->second->getLoc()) << "it is used here";
          return diag;
        }
    if (auto run = dyn_cast<RunOp>(op); run && !agree) {
      std::optional<RefAttr> temp = run.getTemp();
      for (const Access &access : list) {
        BufferKind kind = life.places[access.place].kind;
        bool scratch = temp && temp->getBuffer().getAttr() == access.buffer;
        if (access.writes && !scratch && (kind == BufferKind::Buffers || kind == BufferKind::Reduction))
          pending[access.buffer] = op;
      }
      continue;
    }
    if (auto add = dyn_cast<AddOp>(op))
      pending.erase(add.getSource().getBuffer().getAttr());
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      pending.erase(reduce.getWhole().getBuffer().getAttr());
      reduced[reduce.getTarget().getBuffer().getAttr()] = op;
    }
    // The parts of a slice, which its owner adds.
    if (auto exchange = dyn_cast<AllToAllOp>(op)) {
      pending.erase(exchange.getSource().getBuffer().getAttr());
      reduced[exchange.getTarget().getBuffer().getAttr()] = op;
    }
    if (auto shift = dyn_cast<ShiftOp>(op))
      pending.erase(shift.getSource().getBuffer().getAttr());
    // So does a copy.
    if (auto copy = dyn_cast<CopyOp>(op))
      if (Operation *sum = reduced.lookup(copy.getSource().getBuffer().getAttr()))
        reduced[copy.getTarget().getBuffer().getAttr()] = sum;
    if (auto update = dyn_cast<UpdateOp>(op);
        update && hasOwnGradients(program.getKind()) && program.getKind() != ProgramKind::LocalStep &&
        !update.getDirection() && analysis.members.grid().slices() > 1 &&
        llvm::none_of(update.getBuffers().getAsRange<RefAttr>(),
                      [&](RefAttr ref) { return reduced.contains(ref.getBuffer().getAttr()); }))
      return op->emitOpError(
          "is in a program that is frozen, but nothing it uses comes of an exchange between "
          "ranks");
    // What a kernel makes of a gradient stands for it.
    if (isa<MapOp>(op)) {
      Operation *source = nullptr;
      for (const Access &access : list)
        if (access.reads) {
          pending.erase(access.buffer);
          source = source ? source : reduced.lookup(access.buffer);
        }
      for (const Access &access : list)
        if (access.writes && source)
          reduced[access.buffer] = source;
    }
    if (auto norm = dyn_cast<NormOp>(op)) {
      StringAttr name = norm.getGradient().getBuffer().getAttr();
      measured[name] = op;
      bool isFrozen = hasOwnGradients(program.getKind());
      if (norm.getWhole() != isFrozen)
        return op->emitOpError("is ")
               << (isFrozen ? "not " : "") << "of a whole gradient in a program that is "
               << (isFrozen ? "frozen" : "not frozen");
      if (analysis.members.grid().slices() > 1 && !isFrozen && !reduced.lookup(name)) {
        InFlightDiagnostic diag = op->emitOpError("uses gradient @")
                                  << name.getValue() << ", which is not reduced over the ranks before";
        diag.attachNote(analysis.buffer(program, name)->getLoc()) << "the buffer is here";
        return diag;
      }
    }
    if (auto update = dyn_cast<UpdateOp>(op); update && update.getBuffers().size() > 1)
      measured[cast<RefAttr>(update.getBuffers()[1]).getBuffer().getAttr()] = op;
  }
  if (!agree)
    return success();
  for (auto [name, run] : pending) {
    InFlightDiagnostic diag = agree.emitOpError("comes before the gradient in @")
                              << name.getValue() << " is added to its state";
    diag.attachNote(run->getLoc()) << "the " << describe(run) << " computes it";
    return diag;
  }
  return success();
}

/// New parameters are the next step's: nothing of this one reads them, and with
/// clipping or a loss scale they wait for the agreement, unless it was that of the step before.
LogicalResult ProgramVerifier::verifyUpdates() {
  auto module = program->getParentOfType<ModuleOp>();
  bool needsAgreement = hasOwnGradients(program.getKind()) ||
                        (program.getKind() == ProgramKind::Step && updatesNeedAgreement(module)),
       agreed = false;
  llvm::DenseMap<StringAttr, Operation *> updated;
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    const Timeline::Entry &entry = life.timeline.entries()[index];
    agreed |= entry.is<AgreeOp>();
    if (updated.empty() && !entry.is<UpdateOp>())
      continue;
    Operation *op = entry.op;
    if (auto update = dyn_cast<UpdateOp>(op); update && !update.getBuffers().empty()) {
      if (needsAgreement && !agreed)
        return op->emitOpError("comes before the agreement, but gradients are ")
               << (hasOwnGradients(program.getKind()) ? "kept in momenta"
                   : getOption(module, "clip", 0)     ? "clipped"
                                                      : "of a scaled loss");
      updated[cast<RefAttr>(update.getBuffers()[0]).getBuffer().getAttr()] = op;
      continue;
    }
    if (auto copy = dyn_cast<CopyOp>(op)) {
      if (Operation *update = updated.lookup(copy.getSource().getBuffer().getAttr()))
        updated[copy.getTarget().getBuffer().getAttr()] = update;
      continue;
    }
    auto gather = dyn_cast<GatherOp>(op);
    // A map makes something of this step, or keeps something for the next.
    bool forStep = isa<MapOp>(op) && llvm::any_of(list, [&](const Access &access) {
                     return access.writes && !life.places[access.place].persistent;
                   });
    if (!isa<RunOp>(op) && !forStep &&
        !(gather && gather.getSlice().getBuffer() != gather.getTarget().getBuffer()))
      continue;
    for (const Access &access : list)
      if (auto it = updated.find(access.buffer); access.reads && it != updated.end()) {
        InFlightDiagnostic diag = op->emitOpError("reads @")
                                  << access.buffer.getValue() << " after its update in the same step";
        diag.attachNote(it->second->getLoc()) << "the " << describe(it->second) << " is here";
        return diag;
      }
  }
  return success();
}

LogicalResult ProgramVerifier::verifyCollectives() {
  Operation *last = nullptr;
  llvm::DenseMap<Attribute, Operation *> first; ///< of a communicator
  Operation *reduction = nullptr;
  for (const Timeline::Entry &entry : life.timeline.entries()) {
    if (entry.is<RunOp>())
      continue;
    std::optional<int64_t> order = getOrder(entry.op);
    if (!order)
      continue;
    auto expectStream = [&](Operation *other, const Twine &what) -> LogicalResult {
      if (getStream(other) == getStream(entry.op))
        return success();
      InFlightDiagnostic diag = entry.op->emitOpError("is on ")
                                << getStream(entry.op) << ", expected all " << what << " on one stream";
      diag.attachNote(other->getLoc()) << "the " << describe(other) << " is on " << getStream(other);
      return diag;
    };
    FlatSymbolRefAttr over = getCommunicator(entry.op);
    if (failed(expectStream(first.try_emplace(over, entry.op).first->second,
                            "collectives over @" + over.getValue())))
      return failure();
    // They share what an engine that reads no other rank's memory stages them in.
    if (isa<ReduceOp>(entry.op)) {
      reduction = reduction ? reduction : entry.op;
      if (failed(expectStream(reduction, "reductions")))
        return failure();
    }
    if (last && *getOrder(last) >= *order) {
      InFlightDiagnostic diag = entry.op->emitOpError("is collective ")
                                << *order << " of the position, but comes after collective "
                                << *getOrder(last) << " (" << describe(last) << ")";
      diag.attachNote(last->getLoc()) << "the other is here";
      return diag;
    }
    last = entry.op;
  }
  return success();
}

LogicalResult ProgramVerifier::verify() {
  return failure(failed(verifyAddresses()) || failed(verifyMemories()) || failed(verifyCollectives()) ||
                 failed(verifyGradients()) || failed(verifyUpdates()) ||
                 failed(verifyValues(program, life, analysis)) || failed(verifyHazards()) ||
                 failed(verifyArena(program, life)));
}

LogicalResult dsopt::verifyProgram(ProgramOp program, LifeAnalysis &lives) {
  FailureOr<const ProgramLife *> life = lives.of(program);
  if (failed(life))
    return failure();
  return ProgramVerifier(program, **life, lives.accesses).verify();
}
