//===- MicroBatch.h - one micro-batch as runs, values and buckets -*- C++ -*-===//
//
// What order-pipeline reads from the module: the runs of @micro_batch or @evaluate with
// the buckets their segments touch, the values between them with the chunks they
// cross, the buckets with their stages and their gradient accumulators.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_ORDER_MICROBATCH_H
#define DSOPT_LIB_TRANSFORMS_ORDER_MICROBATCH_H

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "dsopt/Transforms/Order/Bucket.h"

namespace dsopt {

/// A tensor between runs: a graph input, the seed, or a run's result.
struct ValueInfo {
  std::string name; ///< of its buffer
  mlir::MemRefType type;
  int64_t run = -1;   ///< that defines it, -1 for the function's arguments
  int64_t stage = -1; ///< that defines it, -1 for the function's arguments
  int64_t chunk = -1; ///< that defines it, -1 for the function's arguments
  std::string input;  ///< the graph input's name
  bool seed = false, context = false;
  bool agreed = false;    ///< the loss, or a part of a metric: of each micro-batch at the step's end
  int64_t statistic = -1; ///< bytes before it among its stage's statistics; -1: it is none
  int64_t padded = 0;     ///< elements of its buffer, where ranks that add it need more than it has
  int64_t received = 0;   ///< of these, what ranks send for it: no padding
  /// The chunks from which it is sent to the next one up, or down.
  llvm::SmallVector<int64_t, 1> up, down;
  bool crosses(int64_t chunk, bool goesUp) const { return llvm::is_contained(goesUp ? up : down, chunk); }
  int64_t elements() const { return padded ? padded : type.getNumElements(); }
};

/// A parameter's or gradient's place: a bucket, its use, bytes from the start.
struct BucketArgument {
  int64_t bucket = 0, use = 0, offset = 0;
};

/// What a run is given: a value, or a parameter of a gather.
struct RunOperand {
  int64_t value = -1; ///< -1: `parameter`
  BucketArgument parameter;
};

/// A use of a bucket whose gradient is complete on its rank; `reduce` adds those of several.
struct Completion {
  int64_t bucket = 0, use = 0;
  dist::ReduceOp reduce; ///< there if there are several
};

/// A run, or a collective on values among the runs, of the block and phase of the run that makes what it
/// takes.
struct RunInfo {
  mlir::func::FuncOp segment; ///< null: `collective`
  dist::ValueCollectiveOpInterface collective;
  int64_t block = 0, stage = 0, chunk = 0;
  Phase phase = Phase::F;
  llvm::SmallVector<RunOperand> operands;
  llvm::SmallVector<int64_t> inputs, results; ///< values; `inputs` are those of `operands`
  /// Parameters that it reads where they are, and gradients that it adds to.
  llvm::SmallVector<BucketArgument> parameters, gradients;
  /// Gradients whose sum on this rank is complete behind it.
  llvm::SmallVector<Completion> completes;
  llvm::SmallVector<mlir::StringAttr> caches, constants;
  int64_t temp = 0;
};

/// A dist.gather: its bucket is whole from the `first` to the `last` run, of one stage.
struct GatherInfo {
  int64_t bucket = 0, stage = -1, first = -1, last = -1;
  mlir::TypeAttr wire; ///< null: the bucket's type
};

/// Neighbouring blocks of one stage.
struct ChunkInfo {
  int64_t stage = -1;
  Chunk blocks{INT64_MAX, 0};
};

/// What a micro-batch contributes to a running statistic.
struct StatisticInfo {
  int64_t value = 0; ///< value
  BucketArgument target;
  int64_t elements = 0;
  double momentum = 0;
};

/// A part of a metric.
struct MeasureInfo {
  int64_t value = 0;               ///< value
  int64_t place = 0, elements = 0; ///< among those of all metrics
};

struct MicroBatch {
  mlir::func::FuncOp function;
  mlir::IntegerAttr variant; ///< size of the module's dimension, where it is not the module's own
  bool evaluates = false;    ///< nothing is accumulated or updated; every bucket is as good as frozen
  std::vector<ValueInfo> values;
  std::vector<RunInfo> runs;
  std::vector<PlacedBucket> buckets;
  std::vector<GatherInfo> gathers;
  int64_t stages = 1;
  std::vector<ChunkInfo> chunks;              ///< in the order of blocks
  int64_t loss = -1;                          ///< value; -1: there are outputs instead
  std::vector<int64_t> outputs;               ///< values
  std::vector<StatisticInfo> statistics;      ///< in order of results
  std::vector<MeasureInfo> measures;          ///< in order of results
  llvm::SmallVector<mlir::Attribute> metrics; ///< of exec.metrics
  llvm::SmallVector<int64_t> statisticBytes;  ///< of one micro-batch, by stage

  /// The chunk that has a block; -1: none.
  int64_t chunkOf(int64_t block) const;
  llvm::SmallVector<Chunk, 1> chunksAt(int64_t stage) const;
};

/// Reads `function`, @micro_batch or @evaluate. Emits an error and fails where it is not what
/// order-pipeline expects.
mlir::FailureOr<MicroBatch> readMicroBatch(mlir::func::FuncOp function);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_ORDER_MICROBATCH_H
