//===- Lifetimes.cpp - when a buffer's bytes hold something ---------------===//

#include "Lifetimes.h"

#include "llvm/ADT/DenseSet.h"

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

/// Backward liveness of one slot. Only bytes that some action stores count: the
/// padding between parameters is read by reductions but holds nothing.
static void appendEpisodes(const std::vector<Touch> &touches, int64_t slot, const Timeline &timeline,
                           std::vector<Episode> &episodes) {
  IntervalSet stored, live;
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
    if (live.empty()) {
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
    episode.end[entry.stream] = std::max(episode.end[entry.stream], entry.sequence);
    for (const Touch &touch : own)
      if (touch.access->writes && !touch.access->reads && touch.access->exact)
        live.subtract(touch.access->begin, touch.access->end);
    for (const Touch &touch : own)
      if (touch.access->reads)
        for (auto [begin, end] : stored.within(touch.access->begin, touch.access->end))
          live.add(begin, end);
  }
}

FailureOr<ProgramLife> ProgramLife::compute(ProgramOp program, AccessAnalysis &analysis) {
  ProgramLife life;
  ScheduleOp schedule = getSchedule(program);
  if (!schedule)
    return program.emitOpError("has no schedule"), failure();
  if (failed(verifyNoRelease(schedule)))
    return failure();
  life.timeline = Timeline(schedule);
  llvm::DenseSet<StringAttr> persistent;
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    if (buffer.getPersistent())
      persistent.insert(buffer.getSymNameAttr());
  llvm::DenseMap<std::pair<StringAttr, int64_t>, std::vector<Touch>> touches;
  for (auto [index, entry] : llvm::enumerate(life.timeline.entries())) {
    FailureOr<ArrayRef<Access>> list = analysis.of(entry.op);
    if (failed(list))
      return failure();
    life.accesses.push_back(*list);
    for (const Access &access : *list)
      if (!persistent.contains(access.buffer))
        touches[{access.buffer, access.slot}].push_back({(int64_t)index, &access});
  }
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    if (buffer.getKind() == BufferKind::Constants)
      continue;
    BufferLife entry;
    entry.buffer = buffer;
    entry.bytes = (int64_t)buffer.getSlots() * (int64_t)buffer.getStride();
    entry.persistent = buffer.getPersistent();
    if (!entry.persistent)
      for (int64_t slot = 0, slots = buffer.getSlots(); slot < slots; ++slot)
        if (auto it = touches.find({buffer.getSymNameAttr(), slot}); it != touches.end())
          appendEpisodes(it->second, slot, life.timeline, entry.episodes);
    llvm::sort(entry.episodes, [](const Episode &a, const Episode &b) { return a.first < b.first; });
    life.lives.push_back(std::move(entry));
  }
  return life;
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
