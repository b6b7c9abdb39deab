//===- PositionWriter.h - the schedule of one position ----------*- C++ -*-===//
//
// Turns a position's steps into its program: addresses of values, parameters and
// gradients, gathers in front of runs, the gradient tree behind them, and the end of
// the step. Split over WriteSteps.cpp, WriteReductions.cpp and WriteFinish.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_SCHEDULE_POSITIONWRITER_H
#define DSOPT_LIB_TRANSFORMS_SCHEDULE_POSITIONWRITER_H

#include "ProgramBuilder.h"
#include "Steps.h"

namespace dsopt {

/// How many micro-batches there are and how their gradients are added (DESIGN
/// 2.1 rule 4).
struct BatchShape {
  int64_t ranks = 1;        ///< dp
  int64_t microBatches = 1; ///< M, a rank
  int64_t shards = 1;       ///< V
  bool local = true;        ///< else sharded
  int64_t gatherWindow = 1;
  bool clip = false; ///< nothing is updated before the agreement
  int64_t shardsPerRank() const { return shards / ranks; }
  int64_t perShard() const { return microBatches / shardsPerRank(); }
  /// The shard, within the rank, and the index in it of position `p` of the run order.
  int64_t shardOf(int64_t p) const { return local ? p / perShard() : p % shardsPerRank(); }
  int64_t indexOf(int64_t p) const { return local ? p % perShard() : p / shardsPerRank(); }
};

class PositionWriter {
public:
  PositionWriter(mlir::ModuleOp module, MicroBatch &graph, const BatchShape &batch, int64_t stage)
      : graph(graph), batch(batch), stage(stage),
        out(module, stage, graph.stageBlocks[stage], graph.evaluates, graph.variant) {}

  /// Writes the whole program.
  llvm::LogicalResult write(llvm::ArrayRef<PipelineSlot> order);

private:
  // WriteSteps.cpp
  void declareState();
  void writeInput(const Step &step);
  llvm::LogicalResult writeRun(const Step &step);
  void writeTransfer(const Step &step);
  /// The gathers whose windows begin with the next run.
  void writeGathers();
  exec::RefAttr valueRef(int64_t value, int64_t microBatch);
  mlir::FlatSymbolRefAttr wholeParameters(BucketInfo &bucket);
  mlir::FlatSymbolRefAttr parameters(BucketInfo &bucket);
  mlir::FlatSymbolRefAttr optimizerState(BucketInfo &bucket, llvm::StringRef name);

  // WriteReductions.cpp
  /// The accumulator's state, and this rank's slice of it.
  mlir::FlatSymbolRefAttr gradient(BucketInfo &bucket, int64_t use);
  exec::RefAttr gradientSlice(BucketInfo &bucket, int64_t use);
  /// The whole gradient at `depth` of the tree's stack, for index `index`.
  mlir::FlatSymbolRefAttr wholeGradient(BucketInfo &bucket, int64_t use, int64_t depth, int64_t index);
  /// Where a run on micro-batch `p` puts a bucket's gradient.
  mlir::FlatSymbolRefAttr runGradient(BucketInfo &bucket, int64_t use, int64_t p);
  /// Continues the tree when the rank's part of the gradient of `p` is complete.
  void finishGradient(int64_t bucket, int64_t use, int64_t p);

  // WriteFinish.cpp
  /// After the last step that reads the bucket's parameters or adds to its gradients.
  void completeBucket(BucketInfo &bucket);
  /// Norms, and without clipping updates, of complete buckets whose reductions trailed.
  void finishTrailing();
  void finishBucket(BucketInfo &bucket);
  void writeTiedGradients(BucketInfo &bucket);
  void writeWholeGradient(BucketInfo &bucket);
  void writeNorm(BucketInfo &bucket);
  void writeAgree();
  /// The micro-batches' contributions to running statistics, of all ranks, and what they are folded into.
  exec::RefAttr statistics();
  void gatherStatistics();
  void foldStatistics();
  /// What is folded here and read by the evaluation of other stages.
  void sendStatistics();
  void writeUpdate(BucketInfo &bucket);
  /// From the stage that has changed them to others that use them.
  void writeNewParameters(BucketInfo &bucket, int64_t from);
  void writeFinish();

  /// The buffer BUCKET.SUFFIX of elements of a type: the whole bucket, or a slice of it.
  mlir::FlatSymbolRefAttr bucketBuffer(BucketInfo &bucket, const llvm::Twine &suffix, mlir::Type type,
                                       bool whole, llvm::StringRef kind, bool persistent = false) {
    int64_t payload = bucket.payload * graph::elementBytes(type);
    return out.buffer(bucket.name() + "." + suffix,
                      mlir::MemRefType::get({whole ? bucket.padded : bucket.slice}, type), kind,
                      {1, persistent, whole ? payload : (payload + bucket.ranks - 1) / bucket.ranks});
  }
  bool isHere(const BucketInfo &bucket) const { return llvm::is_contained(bucket.stages, stage); }

  MicroBatch &graph;
  const BatchShape &batch;
  int64_t stage;
  ProgramBuilder out;
  llvm::DenseMap<int64_t, int64_t> slots; ///< of values
  llvm::SmallVector<Window> windows;
  size_t nextWindow = 0;
  int64_t runs = 0; ///< written so far
  llvm::SmallVector<BucketInfo *> trailing;
  llvm::SmallVector<mlir::Attribute> norms;    ///< records written so far
  llvm::SmallPtrSet<BucketInfo *, 8> finished; ///< with norm, and without clipping updated
  /// Gradients (bucket, use) that runs have added to and whose sum is not taken yet: of which micro-batch.
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> incomplete;
  /// The tree's stack of partial sums: their levels, by (bucket, use).
  llvm::DenseMap<std::pair<int64_t, int64_t>, llvm::SmallVector<int64_t>> trees;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_SCHEDULE_POSITIONWRITER_H
