//===- Lifetimes.h - when a buffer's bytes hold something -------*- C++ -*-===//
//
// Liveness of each slot of each buffer over the actions of a program, as episodes
// from a first write to the last use, with clocks that say what has to be
// complete. Planner and verifier share it.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_LIFETIMES_H
#define DSOPT_ANALYSIS_EXEC_LIFETIMES_H

#include "dsopt/Analysis/Exec/Timeline.h"

namespace dsopt {

/// Disjoint, ascending byte ranges.
class IntervalSet {
public:
  void add(int64_t begin, int64_t end);
  void subtract(int64_t begin, int64_t end);
  bool empty() const { return ranges.empty(); }
  bool overlaps(int64_t begin, int64_t end) const;
  /// Whether all of [begin, end) is in the set.
  bool covers(int64_t begin, int64_t end) const;
  /// The parts of [begin, end) that are in the set.
  llvm::SmallVector<std::pair<int64_t, int64_t>> within(int64_t begin, int64_t end) const;

private:
  llvm::SmallVector<std::pair<int64_t, int64_t>, 2> ranges;
};

/// A slot holds something from entry `first` to entry `last`.
struct Episode {
  int64_t first = 0, last = 0;
  int64_t slot = 0;
  Clock start; ///< complete before each of its accesses starts
  Clock end;   ///< complete once all of its accesses are
};

struct BufferLife {
  exec::BufferOp buffer;
  size_t memory = 0;             ///< of its program's
  int64_t bytes = 0;             ///< of all slots, up to where another buffer may start
  std::vector<Episode> episodes; ///< by first entry
  /// Lives through the step: shares with nobody.
  bool persistent = false;
};

/// An episode of a program's buffer.
struct Span {
  int64_t buffer; ///< among the lives
  const Episode *episode;
};

/// What accesses of one place touch: a slot of a buffer.
struct Place {
  exec::BufferOp buffer; ///< null: of a name that no buffer of the program has
  int64_t slot = 0;
  int64_t bytes = 0; ///< of the slot
  exec::BufferKind kind{};
  bool persistent = false;
};

/// A program with its accesses, clocks and lifetimes.
class ProgramLife {
public:
  /// Emits an error and fails where an action does not fit its segment.
  static mlir::FailureOr<ProgramLife> compute(exec::ProgramOp program, AccessAnalysis &analysis);

  Timeline timeline;
  std::vector<llvm::ArrayRef<Access>> accesses; ///< by entry, of the analysis
  std::vector<Place> places;                    ///< that accesses name
  /// Buffers that take bytes of a memory, in their order.
  std::vector<BufferLife> lives;
  /// Their episodes, by first entry, then in the order of buffers.
  std::vector<Span> spans;

private:
  void listSpans();
};

/// The lives of a module's programs, each computed when it is asked for. Offsets are no part of them.
class LifeAnalysis {
public:
  explicit LifeAnalysis(mlir::Operation *module) : accesses(mlir::cast<mlir::ModuleOp>(module)) {}
  /// Emits an error and fails as `ProgramLife::compute`.
  mlir::FailureOr<const ProgramLife *> of(exec::ProgramOp program);

  AccessAnalysis accesses;

private:
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ProgramLife>> lives;
};

/// Two episodes of two buffers that may not share bytes, none if they may:
/// neither is complete before the other starts. Linear in the episodes.
std::optional<std::pair<const Episode *, const Episode *>> findClash(const BufferLife &a,
                                                                     const BufferLife &b);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_LIFETIMES_H
