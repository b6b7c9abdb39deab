//===- PipelineOrder.h - the order of block phases at a position -*- C++ -*-===//
//
// All that pipeline schedules differ in. A schedule is a function from a stage's
// shape to the order in which it runs (block, phase, micro-batch); transfers,
// gathers, reductions, waits and memory follow from that order. A plugin may
// register one of its own, which -schedule=NAME then takes; it is checked before
// programs are built.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_SCHEDULE_PIPELINEORDER_H
#define DSOPT_TRANSFORMS_SCHEDULE_PIPELINEORDER_H

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

/// What a schedule may look at.
struct StageShape {
  int64_t stage, stages, microBatches;
  int64_t firstBlock, lastBlock;        ///< half-open
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

/// Makes a schedule known by name; a later one of the same name replaces it.
void registerPipelineOrder(llvm::StringRef name, PipelineOrder order,
                           std::vector<ScheduleOption> options = {});
/// The schedule that `NAME` or `NAME{option=N,...}` asks for, with its options. Empty if there is none:
/// `problem` (may be null) says why.
PipelineOrder getPipelineOrder(llvm::StringRef schedule, std::string *problem = nullptr);
/// The names of all, in alphabetical order.
std::vector<std::string> pipelineOrderNames();

/// Appends forward, or backward, of all blocks of a stage on one micro-batch.
void appendForward(const StageShape &shape, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);
void appendBackward(const StageShape &shape, int64_t microBatch, llvm::SmallVectorImpl<PipelineSlot> &slots);

/// What is wrong with the order of a stage, naming the slot at fault; empty if nothing is. Each phase of each
/// block runs once on each micro-batch, ascending in micro-batches. On a micro-batch F goes up through the
/// blocks, B follows all of them and goes down, and W follows its block's B.
std::string checkOrder(const StageShape &shape, llvm::ArrayRef<PipelineSlot> slots);

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_SCHEDULE_PIPELINEORDER_H
