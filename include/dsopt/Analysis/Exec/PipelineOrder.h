//===- PipelineOrder.h - the order of block phases at a position -*- C++ -*-===//
//
// All that pipeline schedules differ in. A schedule is a function from a stage's
// shape to the order in which it runs (block, phase, micro-batch); transfers,
// gathers, reductions, waits and memory follow from that order. A plugin may
// register one of its own, which -schedule=NAME then takes; it is checked before
// programs are built.
//
// Blocks are cut into chunks, runs of neighbouring blocks, and a stage has one of
// them unless its schedule says otherwise: with several, each stage has parts of the
// model from several depths, and waits less for the others.
//
// Built in: gpipe (all forwards first), 1f1b, and interleaved{chunks=C}, 1F1B with C
// chunks a stage, which with C > 1 takes a rank's micro-batches by as many as there are
// stages (a multiple of -pp) and C times -pp blocks or more.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_ANALYSIS_EXEC_PIPELINEORDER_H
#define DSOPT_ANALYSIS_EXEC_PIPELINEORDER_H

#include "dsopt/Interfaces/Enums.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>
#include <vector>

namespace dsopt {

/// One phase of one block on one micro-batch.
struct PipelineSlot {
  int64_t block;
  Phase phase; ///< F, B or W
  int64_t microBatch;
};

/// Neighbouring blocks, half-open.
struct Chunk {
  int64_t first, last;
};

/// What a schedule may look at.
struct StageShape {
  int64_t stage, stages, microBatches;
  llvm::SmallVector<Chunk, 1> chunks;   ///< that the stage has, ascending
  llvm::ArrayRef<int64_t> options = {}; ///< the schedule's own, as it has registered them
};

/// Micro-batches are positions in a rank's run order: F and B, W ascend in them,
/// since gradients are added in that order (DESIGN 2.1 rule 4).
using PipelineOrder = std::function<llvm::SmallVector<PipelineSlot>(const StageShape &)>;

/// A number that a schedule may be given: -schedule=NAME{option=N}.
struct ScheduleOption {
  std::string name;
  int64_t byDefault;
};

/// The stage of each chunk of the model, in the order of blocks.
using ChunkMap = std::function<llvm::SmallVector<int64_t>(int64_t stages, llvm::ArrayRef<int64_t> options)>;

/// A schedule: what is optional says what most of them have no need of.
struct PipelineSchedule {
  PipelineOrder order;
  std::vector<ScheduleOption> options = {};
  /// Empty: each stage has one chunk.
  ChunkMap chunks = {};
  /// What it cannot do, for a message; empty if nothing. Micro-batches are 0 where they are not known yet.
  std::function<std::string(int64_t stages, int64_t microBatches, llvm::ArrayRef<int64_t> options)> refuse =
      {};
};

/// Makes a schedule known by name; a later one of the same name replaces it.
void registerPipelineSchedule(llvm::StringRef name, PipelineSchedule schedule);
void registerPipelineOrder(llvm::StringRef name, PipelineOrder order,
                           std::vector<ScheduleOption> options = {});
/// The schedule that `NAME` or `NAME{option=N,...}` asks for, with its options, which its functions need not
/// be given again. Its order is empty if there is none: `problem` (may be null) says why.
PipelineSchedule getPipelineSchedule(llvm::StringRef schedule, std::string *problem = nullptr);
PipelineOrder getPipelineOrder(llvm::StringRef schedule, std::string *problem = nullptr);
/// The names of all, in alphabetical order.
std::vector<std::string> pipelineOrderNames();

/// Appends forward, or backward, of all blocks of a chunk or a stage on one micro-batch.
void appendForward(const Chunk &chunk, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);
void appendBackward(const Chunk &chunk, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);
void appendForward(const StageShape &shape, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);
void appendBackward(const StageShape &shape, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);

/// What is wrong with the order of a stage, naming the slot at fault; empty if nothing is. Each phase of each
/// block runs once on each micro-batch, ascending in micro-batches. On a micro-batch F goes up through the
/// blocks, B follows all of them and goes down, and W follows its block's B.
std::string checkOrder(const StageShape &shape, llvm::ArrayRef<PipelineSlot> slots);

/// When the slots of each stage begin if all take equally long and wait for F of the block before theirs, or
/// B of the block behind. Where stages would wait for each other for ever, `problem` says which.
std::vector<std::vector<int64_t>> startTimes(llvm::ArrayRef<StageShape> shapes,
                                             llvm::ArrayRef<llvm::SmallVector<PipelineSlot>> orders,
                                             std::string &problem);

} // namespace dsopt

#endif // DSOPT_ANALYSIS_EXEC_PIPELINEORDER_H
