//===- VerifyValues.cpp - what is read was wholly written -----------------===//
//
// Follows the bytes of every slot through a program in its order. Of each slot two
// sets are known: bytes that hold a value on every rank, and bytes that hold one on
// the rank that owns them (the slice of an address that steps along axes). A gradient that was
// added elsewhere holds nothing any more, so that it cannot be counted twice, and
// what is stored has to be read before other bytes take its place. (A run may have
// a result that the whole program has no use for.)
//
// A gradient buffer has padding between its parameters, which reductions, norms and
// updates read and nobody uses: exactly the bytes that no run stores a gradient to.
// Runs must have stored every parameter of the bucket by then.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Dialect/Graph/Graph.h"

#include <map>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
using SlotKey = std::pair<StringAttr, int64_t>;

class ValueVerifier {
public:
  ValueVerifier(ProgramOp program, const ProgramLife &life, AccessAnalysis &analysis)
      : program(program), life(life), analysis(analysis) {}
  LogicalResult verify();

private:
  struct Writer {
    int64_t end, entry;
    bool read;
  };
  struct Slot {
    const Place *place = nullptr;
    IntervalSet everywhere, owned;     ///< bytes that hold a value; `owned` has all of `everywhere`
    std::map<int64_t, Writer> writers; ///< by first byte, disjoint: the last ones
    int64_t taken = -1;                ///< entry that added what it held elsewhere
    // Of the whole program:
    IntervalSet gradients;   ///< what runs store of parameters' gradients
    int64_t firstStore = -1; ///< entry of the first store
    bool isRead = false;     ///< the buffer is, in some slot
  };

  void collectStores();
  LogicalResult read(int64_t entry, const Access &access);
  LogicalResult write(int64_t entry, const Access &access);
  LogicalResult verifyBucket(NormOp norm);
  LogicalResult verifyEnd();
  /// Whether nothing has to read what the access writes.
  bool mayStayUnread(int64_t entry, const Access &access);
  Slot &slot(SlotKey key) { return slots[keys.lookup(key)]; }
  Operation *action(int64_t entry) { return life.timeline.entries()[entry].op; }

  ProgramOp program;
  const ProgramLife &life;
  AccessAnalysis &analysis;
  std::vector<Slot> slots;                               ///< by place
  llvm::DenseMap<SlotKey, int64_t> keys;                 ///< places
  llvm::DenseMap<SlotKey, SmallVector<SlotKey>> sources; ///< what is added to a gradient
};
} // namespace

/// The micro-batch an action belongs to.
static std::optional<int64_t> microBatchOf(Operation *op) {
  if (auto input = dyn_cast<InputOp>(op))
    return input.getMicroBatch();
  if (auto run = dyn_cast<RunOp>(op))
    return run.getMicroBatch();
  if (auto transfer = dyn_cast<TransferOpInterface>(op))
    return transfer.getMicroBatch();
  return std::nullopt;
}

static SlotKey keyOf(RefAttr ref) { return {ref.getBuffer().getAttr(), ref.getSlot()}; }

/// The slot whose value is part of another sum once the action is complete.
static std::optional<SlotKey> handedOn(Operation *op) {
  if (auto add = dyn_cast<AddOp>(op))
    return keyOf(add.getSource());
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return keyOf(reduce.getWhole());
  if (auto send = dyn_cast<SendOp>(op); send && send.getTraffic() == Traffic::Tied)
    return keyOf(send.getSource());
  return std::nullopt;
}

bool ValueVerifier::mayStayUnread(int64_t entry, const Access &access) {
  const Slot &slot = slots[access.place];
  auto isTemp = [&](std::optional<RefAttr> temp) {
    return temp && keyOf(*temp) == SlotKey(access.buffer, access.slot);
  };
  // Of what is made whole part by part, some parts may be none of the next runs'.
  Operation *op = action(entry);
  if (isa<MapOp>(op) || (isa<GatherOp>(op) && access.end - access.begin < slot.place->bytes))
    return slot.place->buffer && BufferOp(slot.place->buffer).getRole() == BufferRole::Gathered;
  if (auto transform = dyn_cast<TransformOp>(op))
    return isTemp(transform.getTemp());
  auto run = dyn_cast<RunOp>(op);
  if (!run)
    return false;
  return isTemp(run.getTemp()) || (slot.place->kind == BufferKind::Activations && !slot.isRead);
}

void ValueVerifier::collectStores() {
  for (const Place &place : life.places) {
    Slot &slot = slots.emplace_back();
    slot.place = &place;
    if (!place.buffer)
      continue;
    keys[{BufferOp(place.buffer).getSymNameAttr(), place.slot}] = slots.size() - 1;
    // What lives from step to step is there when one starts.
    if (place.persistent)
      for (IntervalSet *set : {&slot.everywhere, &slot.owned})
        set->add(0, place.bytes);
  }
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    for (const Access &access : list) {
      Slot &slot = slots[access.place];
      if (access.reads)
        slot.isRead = true;
      else if (slot.firstStore < 0)
        slot.firstStore = index;
    }
    // What is between the matrices that are written to it is padding, too.
    if (auto transform = dyn_cast<TransformOp>(action(index)))
      for (const Access &access : ArrayRef(list).take_front(transform.getBuffers().size()))
        if (access.writes)
          slots[access.place].gradients.add(access.begin, access.end);
    if (life.timeline.entries()[index].is<RunOp>())
      for (unsigned argument : analysis.gradients(cast<RunOp>(action(index)))) {
        const Access &access = list[argument];
        slots[access.place].gradients.add(access.begin, access.end);
      }
  }
  llvm::DenseSet<Operation *> read;
  for (const Slot &slot : slots)
    if (slot.isRead)
      read.insert(slot.place->buffer);
  for (Slot &slot : slots)
    slot.isRead = slot.place->buffer && read.contains(slot.place->buffer);
}

LogicalResult ValueVerifier::read(int64_t entry, const Access &access) {
  Operation *op = action(entry);
  Slot &slot = slots[access.place];
  BufferOp buffer = slot.place->buffer;
  auto gather = dyn_cast<GatherOp>(op);
  bool own = !access.exact || (gather && access.writes);
  SmallVector<std::pair<int64_t, int64_t>> needed = {{access.begin, access.end}};
  if (cast<ActionOpInterface>(op).readsPadding() && !slot.gradients.empty())
    needed = slot.gradients.within(access.begin, access.end);
  else if (cast<ActionOpInterface>(op).readsPadding() && slot.place->kind == BufferKind::Activations &&
           buffer)
    needed.front().second = std::min<int64_t>(access.end, buffer.getPayload().value_or(access.end));
  for (auto [begin, end] : needed) {
    if ((own ? slot.owned : slot.everywhere).covers(begin, end))
      continue;
    bool some = slot.owned.overlaps(begin, end);
    InFlightDiagnostic diag = op->emitOpError("reads @")
                              << access.buffer.getValue() << " slot " << access.slot;
    if (some && slot.owned.covers(begin, end))
      diag << " on every rank, but each rank holds only its own slice of it";
    else if (some)
      diag << " at bytes " << begin << " to " << end << ", of which only a part is written";
    else
      diag << " before it is written";
    if (slot.taken >= 0 && !some)
      diag.attachNote(action(slot.taken)->getLoc())
          << "what it held is part of another sum since the " << describe(action(slot.taken));
    else if (slot.firstStore > entry)
      diag.attachNote(action(slot.firstStore)->getLoc())
          << "the " << describe(action(slot.firstStore)) << " writes it later";
    else if (slot.firstStore < 0)
      diag.attachNote(buffer.getLoc()) << "nothing writes this slot of the buffer";
    else
      diag.attachNote(buffer.getLoc()) << "the buffer is here";
    return diag;
  }
  auto it = slot.writers.upper_bound(access.begin);
  if (it != slot.writers.begin() && std::prev(it)->second.end > access.begin)
    --it;
  for (; it != slot.writers.end() && it->first < access.end; ++it) {
    it->second.read = true;
    if (slot.place->kind != BufferKind::Activations)
      continue;
    Operation *writer = action(it->second.entry);
    std::optional<int64_t> mine = microBatchOf(op), theirs = microBatchOf(writer);
    if (!mine || !theirs || *mine == *theirs)
      continue;
    InFlightDiagnostic diag = op->emitOpError("on micro-batch ")
                              << *mine << " reads @" << access.buffer.getValue() << " slot " << access.slot
                              << ", which holds micro-batch " << *theirs;
    diag.attachNote(writer->getLoc()) << "it was written here";
    return diag;
  }
  if (std::optional<SlotKey> key = handedOn(op);
      key && !access.writes && !slot.place->persistent && *key == SlotKey(access.buffer, access.slot)) {
    slot.everywhere.subtract(access.begin, access.end);
    slot.owned.subtract(access.begin, access.end);
    slot.taken = entry;
  }
  return success();
}

LogicalResult ValueVerifier::write(int64_t entry, const Access &access) {
  Slot &slot = slots[access.place];
  slot.owned.add(access.begin, access.end);
  if (access.exact)
    slot.everywhere.add(access.begin, access.end);
  else
    slot.everywhere.subtract(access.begin, access.end);
  auto it = slot.writers.upper_bound(access.begin);
  if (it != slot.writers.begin() && std::prev(it)->second.end > access.begin)
    --it;
  const Writer now{access.end, entry, mayStayUnread(entry, access)};
  while (it != slot.writers.end() && it->first < access.end) {
    if (!it->second.read && !slot.place->persistent) {
      Operation *writer = action(it->second.entry);
      InFlightDiagnostic diag = action(entry)->emitOpError("writes @")
                                << access.buffer.getValue() << " slot " << access.slot
                                << ", but nothing has read what the " << describe(writer) << " wrote there";
      diag.attachNote(writer->getLoc()) << "it was written here";
      return diag;
    }
    if (it->first == access.begin && it->second.end == access.end) {
      it->second = now;
      return success();
    }
    // What lies outside of the new bytes stays.
    auto [begin, old] = *it;
    it = slot.writers.erase(it);
    if (begin < access.begin)
      slot.writers[begin] = {access.begin, old.entry, old.read};
    if (access.end < old.end)
      slot.writers[access.end] = old;
  }
  slot.writers[access.begin] = now;
  return success();
}

LogicalResult ValueVerifier::verifyBucket(NormOp norm) {
  dist::BucketOp bucket = analysis.bucket(norm.getBucketAttr().getAttr());
  int64_t bytes = graph::elementBytes(bucket.getGradientType());
  SmallVector<SlotKey> todo = {keyOf(norm.getGradient())};
  llvm::DenseSet<SlotKey> known(todo.begin(), todo.end());
  while (!todo.empty()) {
    SlotKey key = todo.pop_back_val();
    const IntervalSet &stored = slot(key).gradients;
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
      int64_t begin = range.getOffset() * bytes, end = begin + range.getElements() * bytes;
      if (stored.empty() || stored.covers(begin, end))
        continue;
      InFlightDiagnostic diag = norm.emitOpError("of @")
                                << bucket.getSymName() << " misses the gradient of " << range.getParameter()
                                << ": no run writes all of it to @" << key.first.getValue();
      diag.attachNote(bucket.getLoc()) << "the bucket is here";
      return diag;
    }
    for (SlotKey source : sources[key])
      if (known.insert(source).second)
        todo.push_back(source);
  }
  return success();
}

LogicalResult ValueVerifier::verifyEnd() {
  // Of momenta, that the first step behind the freeze gathers, each rank's own slice is what counts.
  bool gathersMomenta = gathersParameters(program->getParentOfType<ModuleOp>());
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    for (int64_t index = 0, count = buffer.getSlots(); index < count; ++index) {
      auto known = keys.find({buffer.getSymNameAttr(), index});
      if (known == keys.end())
        continue;
      const Slot &slot = slots[known->second];
      for (auto &[begin, writer] : slot.writers) {
        Operation *op = action(writer.entry);
        bool whole = slot.everywhere.covers(begin, writer.end);
        bool isOwn = gathersMomenta && buffer.getKind() == BufferKind::Optimizer;
        if (buffer.getPersistent() ? whole || isOwn : writer.read)
          continue;
        InFlightDiagnostic diag = op->emitOpError("writes @") << buffer.getSymName() << " slot " << index;
        if (buffer.getPersistent())
          diag << ", each rank its own slice, but nothing gathers them for the next step";
        else
          diag << ", which nothing reads";
        diag.attachNote(buffer.getLoc()) << "the buffer is here";
        return diag;
      }
    }
  return success();
}

LogicalResult ValueVerifier::verify() {
  collectStores();
  for (auto [index, list] : llvm::enumerate(life.accesses)) {
    const Timeline::Entry &entry = life.timeline.entries()[index];
    Operation *op = entry.op;
    // Values of no elements are nowhere.
    auto some = llvm::make_filter_range(list, [](const Access &access) { return access.begin < access.end; });
    for (const Access &access : some)
      if (access.reads && failed(read(index, access)))
        return failure();
    for (const Access &access : some)
      if (access.writes && failed(write(index, access)))
        return failure();
    if (entry.is<RunOp>() || entry.is<GatherOp>())
      continue;
    if (auto add = dyn_cast<AddOp>(op))
      sources[keyOf(add.getTarget())].push_back(keyOf(add.getSource()));
    else if (auto reduce = dyn_cast<ReduceOp>(op))
      sources[keyOf(reduce.getTarget())].push_back(keyOf(reduce.getWhole()));
    else if (auto exchange = dyn_cast<AllToAllOp>(op))
      sources[keyOf(exchange.getTarget())].push_back(keyOf(exchange.getSource()));
    else if (auto shift = dyn_cast<ShiftOp>(op))
      sources[keyOf(shift.getTarget())].push_back(keyOf(shift.getSource()));
    else if (auto norm = dyn_cast<NormOp>(op); norm && failed(verifyBucket(norm)))
      return failure();
    else if (isa<MapOp>(op))
      for (const Access &target : list)
        for (const Access &source : list)
          if (target.writes && source.reads)
            sources[{target.buffer, target.slot}].push_back({source.buffer, source.slot});
  }
  return verifyEnd();
}

LogicalResult dsopt::verifyValues(ProgramOp program, const ProgramLife &life, AccessAnalysis &analysis) {
  return ValueVerifier(program, life, analysis).verify();
}
