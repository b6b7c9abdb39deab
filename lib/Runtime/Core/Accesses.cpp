//===- Accesses.cpp - what a program says that its actions touch -----------===//

#include "Core/Accesses.h"
#include "Core/CheckProgram.h"

#include <algorithm>

namespace dsopt::runtime {

enum TouchNumber { Place, Bytes, Mode, TouchNumbers };
enum TouchMode { Reads = 1, Writes = 2 };

/// Of the program table: that the range lies in a slot of its buffer.
static Touch resolve(const Position &position, const RankInfo &info, const Ref &ref, int64_t bytes,
                     int64_t mode, const std::string &where) {
  const Buffer &buffer = position.buffers[ref.buffer];
  int64_t offset = info.offsetOf(ref);
  if (bytes < 0 || offset < 0 || offset > buffer.bytes || bytes > buffer.bytes - offset || mode < Reads ||
      mode > (Reads | Writes))
    badProgram(where + " touches bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
               " of '" + buffer.name + "', which has " + std::to_string(buffer.bytes));
  Touch touch;
  touch.memory = buffer.memory;
  touch.begin = buffer.offset + ref.slot * buffer.stride + offset;
  touch.end = touch.begin + bytes;
  touch.reads = mode & Reads;
  touch.writes = mode & Writes;
  return touch;
}

std::vector<std::vector<Touch>> touchesOf(const Program &program, const Position &position,
                                          const RankInfo &info) {
  std::vector<std::vector<Touch>> all;
  for (const Action &action : position.actions) {
    std::string where = "'" + action.name + "'";
    if (action.use < 0 || action.use >= static_cast<int64_t>(program.uses.size()))
      badProgram(where + " does not say what it touches (DSOPT_CHECK_ACCESSES): compile the program anew");
    std::vector<Ref> places = action.refs;
    if (action.temp.buffer >= 0)
      places.push_back(action.temp);
    places.insert(places.end(), action.others.begin(), action.others.end());
    const std::vector<int64_t> &use = program.uses[action.use];
    std::vector<Touch> &touches = all.emplace_back();
    for (size_t i = 0; i + TouchNumbers <= use.size(); i += TouchNumbers) {
      if (use[i + Place] < 0 || use[i + Place] >= static_cast<int64_t>(places.size()))
        badProgram(where + " touches its address " + std::to_string(use[i + Place]) + " of " +
                   std::to_string(places.size()));
      const Ref &ref = places[use[i + Place]];
      const Buffer &buffer = position.buffers[ref.buffer];
      Touch touch = resolve(position, info, ref, use[i + Bytes], use[i + Mode], where);
      // Constants of a program for the host lie in its code.
      if (!buffer.symbol.empty() && program.target == "cpu")
        continue;
      if (touch.writes && buffer.persistent &&
          std::find(action.changes.begin(), action.changes.end(), ref.buffer) == action.changes.end())
        badProgram(where + " changes '" + buffer.name +
                   "', which outlives the step, but does not have it among its "
                   "changes: it would not wait for a checkpoint (DSOPT_CHECK_ACCESSES)");
      touch.address = static_cast<size_t>(use[i + Place]);
      bool isTemp = action.temp.buffer >= 0 && touch.address == action.refs.size();
      touch.isScratch = isTemp && action.kind == ActionKind::Run;
      touch.isWhole = touch.writes && !touch.reads && !touch.isScratch;
      touches.push_back(touch);
    }
  }
  return all;
}

std::string describePlace(const Position &position, size_t memory, int64_t at,
                          const std::vector<Touch> &touches) {
  std::string found;
  for (const Buffer &buffer : position.buffers) {
    if (buffer.memory != static_cast<int64_t>(memory) || at < buffer.offset)
      continue;
    int64_t slot = buffer.stride > 0 ? std::min((at - buffer.offset) / buffer.stride, buffer.slots - 1) : 0;
    int64_t begin = buffer.offset + slot * buffer.stride, end = begin + buffer.bytes;
    if (at < begin || at >= end)
      continue;
    bool isTouched = std::any_of(touches.begin(), touches.end(), [&](const Touch &touch) {
      return touch.memory == memory && touch.begin < end && begin < touch.end;
    });
    if (!found.empty() && !isTouched)
      continue;
    found = "byte " + std::to_string(at - begin) + " of " +
            (buffer.slots > 1 ? "slot " + std::to_string(slot) + " of " : "") + "'" + buffer.name + "'";
    if (isTouched)
      break;
  }
  if (!found.empty())
    return found;
  return "byte " + std::to_string(at) + " of the " +
         kMemoryKinds[static_cast<int>(position.memories[memory].kind)] + " memory, which is of no buffer";
}

namespace {
/// Who has touched bytes last that all actions touch alike.
struct Bytes {
  int64_t writer = -1;
  std::vector<int64_t> readers{}; ///< since then, by queue
};

class RaceFinder {
public:
  RaceFinder(const Position &position, const std::vector<std::vector<Touch>> &all)
      : position(position), all(all), bounds(position.memories.size()), bytes(position.memories.size()) {
    for (const std::vector<Touch> &touches : all)
      for (const Touch &touch : touches)
        for (int64_t bound : {touch.begin, touch.end})
          bounds[touch.memory].push_back(bound);
    for (size_t memory = 0; memory < bounds.size(); ++memory) {
      std::vector<int64_t> &its = bounds[memory];
      std::sort(its.begin(), its.end());
      its.erase(std::unique(its.begin(), its.end()), its.end());
      bytes[memory].resize(its.size(), {-1, std::vector<int64_t>(position.queues.size(), -1)});
    }
  }

  std::string find() {
    std::vector<int64_t> lastOf(position.queues.size(), -1);
    for (size_t index = 0; index < all.size(); ++index) {
      const Action &action = position.actions[index];
      // What is over before it starts: the last action of each queue.
      std::vector<int64_t> over(position.queues.size(), -1);
      auto follow = [&](int64_t before) {
        for (size_t queue = 0; queue < over.size(); ++queue)
          over[queue] = std::max(over[queue], overBefore[before][queue]);
        int64_t &own = over[position.actions[before].queue];
        own = std::max(own, before);
      };
      if (lastOf[action.queue] >= 0)
        follow(lastOf[action.queue]);
      for (int64_t wait : action.waits)
        follow(wait);
      lastOf[action.queue] = static_cast<int64_t>(index);
      overBefore.push_back(over);
      for (bool writes : {false, true})
        for (const Touch &touch : all[index])
          if (writes ? touch.writes : touch.reads)
            if (std::string wrong = go(index, touch, writes); !wrong.empty())
              return wrong;
    }
    return "";
  }

private:
  std::string go(size_t index, const Touch &touch, bool writes) {
    std::vector<int64_t> &its = bounds[touch.memory];
    size_t first = std::lower_bound(its.begin(), its.end(), touch.begin) - its.begin();
    const std::vector<int64_t> &over = overBefore[index];
    int64_t queue = position.actions[index].queue;
    for (size_t i = first; its[i] < touch.end; ++i) {
      Bytes &its = bytes[touch.memory][i];
      auto mayOverlap = [&](int64_t other) {
        return other >= 0 && other != static_cast<int64_t>(index) &&
               over[position.actions[other].queue] < other;
      };
      if (mayOverlap(its.writer))
        return tell(index, its.writer, touch, i, writes, true);
      if (!writes) {
        its.readers[queue] = static_cast<int64_t>(index);
        continue;
      }
      for (int64_t reader : its.readers)
        if (mayOverlap(reader))
          return tell(index, reader, touch, i, true, false);
      its.writer = static_cast<int64_t>(index);
      std::fill(its.readers.begin(), its.readers.end(), -1);
    }
    return "";
  }

  std::string tell(size_t index, int64_t other, const Touch &touch, size_t bound, bool writes,
                   bool otherWrites) const {
    return "'" + position.actions[index].name + "' (action " + std::to_string(index) + ") " +
           (writes ? "writes " : "reads ") +
           describePlace(position, touch.memory, bounds[touch.memory][bound], all[index]) +
           ", but does not wait for '" + position.actions[other].name + "' (action " + std::to_string(other) +
           "), which " + (otherWrites ? "writes" : "reads") + " it before";
  }

  const Position &position;
  const std::vector<std::vector<Touch>> &all;
  std::vector<std::vector<int64_t>> bounds;     ///< by memory: where touches begin and end
  std::vector<std::vector<Bytes>> bytes;        ///< between them
  std::vector<std::vector<int64_t>> overBefore; ///< by action
};
} // namespace

std::string findRace(const Position &position, const std::vector<std::vector<Touch>> &touches) {
  return RaceFinder(position, touches).find();
}

} // namespace dsopt::runtime
