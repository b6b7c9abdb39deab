//===- Steps.h - runs, inputs and transfers of a position in order -*- C++ -*-===//
//
// From the order of block phases: where micro-batches are read in, where values
// enter and leave the stage, how many copies of each value are alive, and for how
// long each sliced bucket is needed whole.
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

/// For each value that the steps touch, the most micro-batches of it alive.
llvm::DenseMap<int64_t, int64_t> countSlots(const MicroBatch &graph, llvm::ArrayRef<Step> steps);

/// A bucket is needed whole from the `first` to the `last` of the position's runs.
struct Window {
  int64_t bucket, first, last;
};
/// The windows of all gathers by their first run: a gather serves `microBatches` at once;
/// windows of a bucket that overlap or follow without a run between are one.
llvm::SmallVector<Window> listWindows(const MicroBatch &graph, llvm::ArrayRef<Step> steps,
                                      int64_t microBatches);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_STEPS_H
