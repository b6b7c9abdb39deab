//===- Timeline.h - what is complete when an action starts ------*- C++ -*-===//
//
// Vector clocks over the streams of one rank: for each action the number of
// actions of each stream that are surely complete before it starts, by the order
// of its stream and by waits. One comparison answers "is a complete before b
// starts"; building it is linear in the schedule.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_TIMELINE_H
#define DSOPT_ANALYSIS_EXEC_TIMELINE_H

#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Dialect/Exec/Streams.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace dsopt {

/// A number of actions for each stream; of those behind the last that is counted, none.
class Clock {
public:
  int size() const { return counts.size(); }
  int64_t operator[](int stream) const { return stream < size() ? counts[stream] : 0; }
  int32_t &operator[](int stream) {
    if (stream >= size())
      counts.resize(stream + 1);
    return counts[stream];
  }
  void join(const Clock &other) {
    if (size() < other.size())
      counts.resize(other.size());
    for (int s = 0; s < other.size(); ++s)
      counts[s] = std::max(counts[s], other.counts[s]);
  }
  void meet(const Clock &other) {
    counts.truncate(std::min(size(), other.size()));
    for (int s = 0; s < size(); ++s)
      counts[s] = std::min(counts[s], other.counts[s]);
  }
  /// Whether everything counted here is counted there too.
  bool within(const Clock &other) const {
    bool all = true;
    for (int s = 0; s < size(); ++s)
      all &= counts[s] <= other[s];
    return all;
  }

private:
  llvm::SmallVector<int32_t, 8> counts;
};

class Timeline {
public:
  struct Entry {
    mlir::Operation *op;
    mlir::TypeID kind; ///< of operation: to ask without looking at it
    int stream;
    /// The how-manieth action of its stream, from 1.
    int64_t sequence;
    /// What is complete when it starts.
    Clock start;
    template <typename Op> bool is() const { return kind == mlir::TypeID::get<Op>(); }
    /// What is complete when it is.
    Clock completion() const {
      Clock clock = start;
      clock[stream] = sequence;
      return clock;
    }
  };

  /// Of no stream.
  Timeline() = default;
  /// Of streams that outlive it, without actions.
  explicit Timeline(const exec::Streams &streams) : streams(&streams), clocks(streams.size()) {}

  /// The next operation (action or wait) of the schedule.
  void append(mlir::Operation *op);

  const std::vector<Entry> &entries() const { return actions; }
  /// The place of an action among the entries.
  int64_t indexOf(mlir::Operation *op) const { return indices.lookup(op); }
  /// What is complete when the next action of a stream starts.
  const Clock &now(int stream) const { return clocks[stream]; }
  /// Whether entry `a` is complete before entry `b` starts.
  bool precedes(int64_t a, int64_t b) const {
    return actions[b].start[actions[a].stream] >= actions[a].sequence;
  }

private:
  const exec::Streams *streams = nullptr;
  std::vector<Entry> actions;
  llvm::DenseMap<mlir::Operation *, int64_t> indices;
  llvm::SmallVector<Clock> clocks;
};

/// Remembers who touched which bytes last, stream by stream, and finds the
/// earlier actions that an access has to come after.
class HazardTracker {
public:
  explicit HazardTracker(int streams) : streams(streams) {}
  /// Calls `conflict` with the entry of the last action of each stream that
  /// conflicts with the access (one of the two writes, bytes in common).
  void conflicts(const Access &access, llvm::function_ref<void(int64_t entry, bool wrote)> conflict) const;
  /// Adds an access of entry `entry`, which runs on `stream`.
  void record(const Access &access, int64_t entry, int stream);

private:
  struct Touched {
    int32_t written = -1, read = -1; ///< entries, -1 for none
  };
  struct Range {
    int64_t begin, end;
  };
  struct Slot {
    std::vector<Range> ranges;    ///< by first byte and end
    std::vector<Touched> touched; ///< of each range by stream
    int64_t longest = 0;          ///< of the ranges
    /// The first range that starts at `begin` and ends at `end`, or behind that.
    std::vector<Range>::const_iterator find(int64_t begin, int64_t end) const {
      return llvm::partition_point(ranges, [&](const Range &range) {
        return std::tie(range.begin, range.end) < std::tie(begin, end);
      });
    }
  };
  int streams;
  std::vector<Slot> slots; ///< by place
};

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_TIMELINE_H
