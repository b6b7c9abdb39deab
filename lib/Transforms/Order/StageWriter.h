//===- StageWriter.h - a micro-batch's function as one stage's schedule -*- C++ -*-===//
//
// Turns a stage's steps into its program: each action is that of one micro-batch. The
// gathers and reductions of dist stand around the runs of each as they do in the function.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_ORDER_STAGEWRITER_H
#define DSOPT_LIB_TRANSFORMS_ORDER_STAGEWRITER_H

#include "Steps.h"

namespace dsopt {

class StageWriter {
public:
  StageWriter(mlir::ModuleOp module, const MicroBatch &graph, int64_t ranks, int64_t microBatches,
              int64_t stage);

  /// Writes the whole program. `entries` as for `listSteps`.
  void write(llvm::ArrayRef<PipelineSlot> order, const ChunkEntries *entries);

private:
  /// What lives at the stage between steps.
  void declareState();
  void writeTransfer(const Step &step);
  void writeRun(const Step &step);
  void writeCollective(const Step &step);
  /// The gathers that a run is the first to need, and the ends of those that it is the last to need.
  void writeGathers(const Step &step);
  void writeReleases(const Step &step);
  void writeReductions(const Step &step);
  /// What the function returns: the losses, which all agree on, and contributions to statistics.
  void writeReturn();

  /// The buffers that a run is given on a micro-batch.
  mlir::ArrayAttr buffersOf(const Step &step);
  exec::RefAttr valueRef(int64_t value, int64_t microBatch);
  int64_t slotsOf(int64_t value) const;
  exec::RefAttr statistics();
  bool isOwned(const PlacedBucket &bucket) const { return bucket.owner == stage; }

  const MicroBatch &graph;
  int64_t ranks; ///< that have a slice of buckets
  int64_t microBatches, stage;
  int64_t stagingBytes; ///< of each rank, at most
  ProgramBuilder out;
  BucketBuffers buckets;
  llvm::SmallVector<int64_t> slots; ///< of values
  /// The buffers of values, and what does not change from one micro-batch to the next of runs' buffers.
  std::vector<mlir::FlatSymbolRefAttr> values;
  struct RunBuffers {
    llvm::SmallVector<mlir::Attribute> refs;  ///< null: a value's
    llvm::SmallVector<int64_t> values;        ///< that are missing in `refs`, in order
    int64_t period = 0;                       ///< after which the same buffers come again; 0: not made yet
    llvm::SmallVector<mlir::ArrayAttr> lists; ///< by micro-batch modulo `period`
    exec::RefAttr temp;
    exec::RunOp first;                               ///< null: not written yet
    llvm::SmallVector<exec::ReduceOp, 1> reductions; ///< the first ones, of what it completes
  };
  RunBuffers &buffersOf(int64_t run);
  std::vector<RunBuffers> runs;
  /// The gathers that a run needs, by run; of each the runs that need it on each micro-batch and are to come.
  std::vector<llvm::SmallVector<int64_t>> gathersOf;
  std::vector<int64_t> usersOf;
  std::vector<exec::GatherOp> gathers; ///< the first of each; null: not written yet
  struct OpenGather {
    exec::GatherOp op;
    int64_t users;
  };
  llvm::DenseMap<std::pair<int64_t, int64_t>, OpenGather> open; ///< by gather and micro-batch
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_ORDER_STAGEWRITER_H
