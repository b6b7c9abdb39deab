//===- Lifetimes.cpp - when a buffer's bytes hold something ---------------===//

#include "dsopt/Analysis/Exec/Lifetimes.h"

#include "dsopt/Interfaces/Target.h"

#include <numeric>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void IntervalSet::add(int64_t begin, int64_t end) {
  if (covers(begin, end))
    return;
  SmallVector<std::pair<int64_t, int64_t>, 2> result;
  for (auto range : ranges) {
    if (range.second < begin || end < range.first) {
      result.push_back(range);
      continue;
    }
    begin = std::min(begin, range.first);
    end = std::max(end, range.second);
  }
  if (begin < end)
    result.push_back({begin, end});
  llvm::sort(result);
  ranges = std::move(result);
}

void IntervalSet::subtract(int64_t begin, int64_t end) {
  if (!overlaps(begin, end))
    return;
  SmallVector<std::pair<int64_t, int64_t>, 2> result;
  for (auto [first, last] : ranges) {
    if (first < std::min(last, begin))
      result.push_back({first, std::min(last, begin)});
    if (std::max(first, end) < last)
      result.push_back({std::max(first, end), last});
  }
  ranges = std::move(result);
}

bool IntervalSet::overlaps(int64_t begin, int64_t end) const {
  return llvm::any_of(ranges,
                      [&](auto range) { return std::max(range.first, begin) < std::min(range.second, end); });
}

bool IntervalSet::covers(int64_t begin, int64_t end) const {
  return begin >= end ||
         llvm::any_of(ranges, [&](auto range) { return range.first <= begin && end <= range.second; });
}

SmallVector<std::pair<int64_t, int64_t>> IntervalSet::within(int64_t begin, int64_t end) const {
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (auto [first, last] : ranges)
    if (std::max(first, begin) < std::min(last, end))
      parts.push_back({std::max(first, begin), std::min(last, end)});
  return parts;
}

namespace {
/// An access of a slot.
struct Touch {
  int64_t entry;
  const Access *access;
};
} // namespace

/// What a gather in place keeps, this rank's slice, and what brings it there: no other bytes of what it makes
/// whole are of before. Those who are none of both have no slice.
static RefAttr sliceInPlace(Operation *op, const Access &access) {
  auto isHere = [&](RefAttr ref) {
    return !ref.isUniform() && ref.getBuffer().getAttr() == access.buffer && ref.getSlot() == access.slot;
  };
  if (auto gather = dyn_cast<GatherOp>(op))
    return access.writes && isHere(gather.getSlice()) ? gather.getSlice() : RefAttr();
  auto copy = dyn_cast<CopyOp>(op);
  return copy && access.writes && isHere(copy.getTarget()) ? copy.getTarget() : RefAttr();
}

static int64_t bytesOfSlice(Operation *op) {
  auto gather = dyn_cast<GatherOp>(op);
  return gather ? gather.getBytes() : cast<CopyOp>(op).getBytes();
}

/// Backward liveness of one slot. Only bytes that some action stores count: the
/// padding between parameters is read by reductions but holds nothing.
static void appendEpisodes(const std::vector<Touch> &touches, int64_t slot, const Timeline &timeline,
                           std::vector<Episode> &episodes) {
  IntervalSet stored, live;
  Operation *keeps = nullptr; ///< a gather whose slice is live
  for (const Touch &touch : touches)
    if (touch.access->writes && !touch.access->reads)
      stored.add(touch.access->begin, touch.access->end);
  for (size_t end = touches.size(), first; end > 0; end = first) {
    // The accesses of one entry.
    first = end - 1;
    while (first > 0 && touches[first - 1].entry == touches[end - 1].entry)
      --first;
    ArrayRef<Touch> own = ArrayRef<Touch>(touches).slice(first, end - first);
    const Timeline::Entry &entry = timeline.entries()[own.front().entry];
    if (live.empty() && !keeps) {
      Episode episode;
      episode.first = episode.last = own.front().entry;
      episode.slot = slot;
      episode.start = entry.start;
      episodes.push_back(episode);
    }
    Episode &episode = episodes.back();
    episode.first = own.front().entry;
    episode.start.meet(entry.start);
    // Only the entry's own end: what it waited for may be any other buffer's.
    episode.end[entry.stream] = std::max<int64_t>(episode.end[entry.stream], entry.sequence);
    Operation *kept = nullptr;
    for (const Touch &touch : own) {
      RefAttr slice = sliceInPlace(entry.op, *touch.access);
      bool gathers = slice && isa<GatherOp>(entry.op);
      if (gathers)
        kept = entry.op;
      else if (slice && keeps && slice == cast<GatherOp>(keeps).getSlice() &&
               bytesOfSlice(entry.op) == bytesOfSlice(keeps))
        keeps = nullptr;
      if (touch.access->writes && (gathers || !touch.access->reads) && touch.access->exact)
        live.subtract(touch.access->begin, touch.access->end);
    }
    if (kept) {
      keeps = kept;
      continue;
    }
    for (const Touch &touch : own)
      if (touch.access->reads)
        for (auto [begin, end] : stored.within(touch.access->begin, touch.access->end))
          live.add(begin, end);
  }
}

FailureOr<ProgramLife> ProgramLife::compute(ProgramOp program, AccessAnalysis &analysis) {
  ProgramLife life;
  life.timeline = Timeline(analysis.streams);
  ScheduleOp schedule = getSchedule(program);
  if (!schedule)
    return program.emitOpError("has no schedule"), failure();
  for (Operation &op : schedule.getBody().front())
    if (isa<ReleaseOp>(op))
      return op.emitOpError("is left in a schedule whose gathers should be shared: expected share-gathers "
                            "before this pass"),
             failure();
    else if (isComposite(&op))
      return op.emitOpError("stands for several actions: expected expand-collectives before this pass"),
             failure();
    else
      life.timeline.append(&op);
  std::vector<std::vector<Touch>> touches; ///< by place
  life.accesses.reserve(life.timeline.entries().size());
  for (auto [index, entry] : llvm::enumerate(life.timeline.entries())) {
    FailureOr<ArrayRef<Access>> list = analysis.of(entry.op);
    if (failed(list))
      return failure();
    life.accesses.push_back(*list);
    if (touches.size() < analysis.places())
      touches.resize(2 * analysis.places());
    for (const Access &access : *list)
      touches[access.place].push_back({(int64_t)index, &access});
  }
  llvm::DenseMap<StringAttr, SmallVector<std::pair<int64_t, int64_t>, 1>> slots; ///< of buffers, and places
  life.places.resize(touches.size());
  for (auto [number, list] : llvm::enumerate(touches)) {
    if (list.empty())
      continue;
    Place &place = life.places[number];
    StringAttr name = list.front().access->buffer;
    place.slot = list.front().access->slot;
    slots[name].push_back({place.slot, number});
    if ((place.buffer = analysis.buffer(program, name))) {
      place.bytes = bytesOf(place.buffer.getType());
      place.kind = place.buffer.getKind();
      place.persistent = place.buffer.getPersistent();
    }
  }
  SmallVector<MemoryOp> memories = getMemories(program);
  bool onDevice = isForDevice(program);
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    // The host's are in the program's image; a device has a copy in its memory.
    if (buffer.getKind() == BufferKind::Constants && !onDevice)
      continue;
    BufferLife entry;
    entry.buffer = buffer;
    entry.memory = memoryOf(buffer, memories);
    entry.bytes =
        llvm::alignTo(buffer.getSlots() * buffer.getStride(), memories[entry.memory].getAlignment());
    entry.persistent = buffer.getPersistent();
    if (auto used = slots.find(buffer.getSymNameAttr()); used != slots.end() && !entry.persistent) {
      llvm::sort(used->second);
      for (auto [slot, place] : used->second)
        if (slot >= 0 && slot < (int64_t)buffer.getSlots())
          appendEpisodes(touches[place], slot, life.timeline, entry.episodes);
    }
    // Those of a slot are found last first.
    std::reverse(entry.episodes.begin(), entry.episodes.end());
    if (buffer.getSlots() > 1)
      llvm::sort(entry.episodes, [](const Episode &a, const Episode &b) { return a.first < b.first; });
    life.lives.push_back(std::move(entry));
  }
  life.listSpans();
  return life;
}

void ProgramLife::listSpans() {
  // By counting: there are as many first entries as entries.
  std::vector<size_t> places(timeline.entries().size() + 1, 0);
  for (const BufferLife &buffer : lives)
    for (const Episode &episode : buffer.episodes)
      ++places[episode.first + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  spans.resize(places.back());
  for (auto [id, buffer] : llvm::enumerate(lives))
    for (const Episode &episode : buffer.episodes)
      spans[places[episode.first]++] = {(int64_t)id, &episode};
}

FailureOr<const ProgramLife *> LifeAnalysis::of(ProgramOp program) {
  std::unique_ptr<ProgramLife> &life = lives[program];
  if (!life) {
    FailureOr<ProgramLife> computed = ProgramLife::compute(program, accesses);
    if (failed(computed))
      return failure();
    life = std::make_unique<ProgramLife>(std::move(*computed));
  }
  return life.get();
}

std::optional<std::pair<const Episode *, const Episode *>> dsopt::findClash(const BufferLife &a,
                                                                            const BufferLife &b) {
  // Both lists in order of their first entries: each episode has to start after
  // all earlier ones of the other list are complete.
  const std::vector<Episode> *lists[2] = {&a.episodes, &b.episodes};
  size_t next[2] = {0, 0};
  Clock ended[2];
  while (next[0] < lists[0]->size() || next[1] < lists[1]->size()) {
    int side = next[0] == lists[0]->size() ||
               (next[1] < lists[1]->size() && (*lists[1])[next[1]].first < (*lists[0])[next[0]].first);
    const Episode &episode = (*lists[side])[next[side]++];
    if (!ended[!side].within(episode.start))
      for (const Episode &other : ArrayRef<Episode>(*lists[!side]).take_front(next[!side]))
        if (!other.end.within(episode.start))
          return side ? std::make_pair(&other, &episode) : std::make_pair(&episode, &other);
    ended[side].join(episode.end);
  }
  return std::nullopt;
}
