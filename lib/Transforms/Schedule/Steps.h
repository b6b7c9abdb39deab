//===- Steps.h - runs, inputs and transfers of a position in order -*- C++ -*-===//
//
// From the order of block phases: where micro-batches are read in, where values
// enter and leave the stage, and how many copies of each value are alive.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_STEPS_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_STEPS_H

#include "MicroBatch.h"

namespace dsopt {

/// One thing a position does with one micro-batch.
struct Step {
  enum Kind { Input, Run, Send, Recv } kind;
  int64_t id; ///< Run: the run; else the value
  int64_t microBatch;
  int64_t peer = -1; ///< Send, Recv: the neighbour
};

/// The steps of a stage. Values that cross hop through neighbouring stages, up
/// in forward and down in backward; on each boundary and micro-batch those that
/// the sender has from elsewhere come first, then those it computes, both in the
/// order of their definition, on both ends alike.
llvm::SmallVector<Step> listSteps(const MicroBatch &graph, int64_t stage, llvm::ArrayRef<PipelineSlot> order);

/// For each value the most micro-batches of it alive, 0 where no step touches it.
llvm::SmallVector<int64_t> countSlots(const MicroBatch &graph, llvm::ArrayRef<Step> steps);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_STEPS_H
