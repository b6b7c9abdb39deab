//===- Steps.h - runs, inputs and transfers of a position in order -*- C++ -*-===//
//
// From the order of block phases: where micro-batches are read in, where values
// enter and leave the stage, and how many copies of each value are alive.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_ORDER_STEPS_H
#define DSOPT_LIB_TRANSFORMS_ORDER_STEPS_H

#include "MicroBatch.h"

namespace dsopt {

/// One thing a position does with one micro-batch.
struct Step {
  enum Kind { Input, Run, Send, Recv } kind;
  int64_t id; ///< Run: the run; else the value
  int64_t microBatch;
  int64_t peer = -1;  ///< Send, Recv: the other stage
  int64_t chunk = -1; ///< Send, Recv: what the value goes to
  bool up = false;    ///< Send, Recv: whether it comes from the chunk before
};

/// When the stages come to each chunk on each micro-batch, in forward and in backward, of one order of all.
class ChunkEntries {
public:
  ChunkEntries(const MicroBatch &graph, llvm::ArrayRef<llvm::SmallVector<PipelineSlot>> orders,
               llvm::ArrayRef<std::vector<int64_t>> starts);
  int64_t at(int64_t chunk, int64_t microBatch, bool up) const {
    auto entry = entries.find({chunk * 2 + up, microBatch});
    return entry == entries.end() ? INT64_MAX : entry->second;
  }

private:
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> entries; ///< by chunk and direction, micro-batch
};

/// The steps of a stage. Values that cross hop through neighbouring chunks, up
/// in forward and down in backward; on each boundary and micro-batch those that
/// the sender has from elsewhere come first, then those it computes, both in the
/// order of their definition, on both ends alike.
///
/// With one chunk a stage, all that goes from one stage to another crosses one
/// boundary. With more, values may be wanted in another order than they are
/// computed in: `entries` are given, and sends and receives of all stages are in one
/// order, that in which stages come to the chunks that values go to. What a transfer
/// waits for, a run or room in a buffer, then waits only for transfers that come
/// before it in that order, so that none waits for itself.
llvm::SmallVector<Step> listSteps(const MicroBatch &graph, int64_t stage, llvm::ArrayRef<PipelineSlot> order,
                                  const ChunkEntries *entries);

/// For each value the most micro-batches of it alive, 0 where no step touches it.
llvm::SmallVector<int64_t> countSlots(const MicroBatch &graph, llvm::ArrayRef<Step> steps);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_ORDER_STEPS_H
