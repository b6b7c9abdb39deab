//===- Simulation.h - all positions' streams played against each other -*- C++ -*-===//
//
// A second interpreter of schedules: what one rank of each position does, with a
// cost for each action in place of execution. Streams run in order, transfers
// are rendezvous without buffering, collectives wait for the positions of all
// members. What cannot go on is a deadlock: the outcome does not depend on the costs.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_SIMULATION_H
#define DSOPT_ANALYSIS_EXEC_SIMULATION_H

#include "dsopt/Dialect/Exec/Members.h"
#include "dsopt/Dialect/Exec/Streams.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace dsopt {

class Simulation {
public:
  /// Plays the programs (in order of position) with the given cost of each action.
  Simulation(llvm::ArrayRef<exec::ProgramOp> programs, llvm::function_ref<double(mlir::Operation *)> cost);

  /// When the last action ends.
  double end() const { return latest; }
  /// The sum of the costs of what a position computes.
  double busy(int64_t position) const { return work[position]; }
  /// How long a wait holds its stream up.
  double heldBy(mlir::Operation *wait) const { return held.lookup(wait); }
  /// Actions and waits that wait for each other in a circle, each for the next;
  /// empty if all ends.
  llvm::SmallVector<mlir::Operation *> deadlock();

private:
  struct Item {
    mlir::Operation *op;
    int64_t action; ///< its number, of a wait that of the action it waits for
    bool isWait, isRendezvous;
  };
  struct Lane {
    int64_t position;
    std::vector<Item> items; ///< actions and waits of one stream
    size_t next = 0;
    double time = 0;
    bool arrived = false; ///< at a rendezvous: the head waits for its partner
  };
  /// The lanes at the same rendezvous as the head of this one, itself included; those of all positions that
  /// take part, or none yet.
  llvm::SmallVector<int64_t> partners(int64_t id);
  void advance(int64_t id, llvm::function_ref<double(mlir::Operation *)> cost);
  bool meet(int64_t id, llvm::function_ref<double(mlir::Operation *)> cost);
  void finish(int64_t id, double time);
  mlir::Operation *head(int64_t id) const { return lanes[id].items[lanes[id].next].op; }
  /// The lane that the stuck head of this one waits for, -1 if none is left.
  int64_t blocker(int64_t id);

  exec::Members members;
  exec::Streams streams;
  std::vector<Lane> lanes; ///< by position, then by stream
  llvm::SmallVector<double> work;
  std::vector<double> ends; ///< of actions, by number; before that none
  llvm::DenseMap<int64_t, llvm::SmallVector<int64_t, 2>> waiting;
  llvm::DenseMap<mlir::Operation *, double> held; ///< by waits that do
  std::vector<int64_t> ready;
  double latest = 0;
};

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_SIMULATION_H
