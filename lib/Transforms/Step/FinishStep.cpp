//===- FinishStep.cpp - from the last gradient to the new parameters ------===//
//
// As soon as a bucket's gradient is complete its norm is taken; without clipping
// and loss scale it is updated there and then, and the gradient's bytes are free.
// At the end the gradients of parameters shared between stages go to their owner,
// all ranks agree, what is left is updated, new parameters go where they are needed.
// Where updates lag a step behind, what is updated with is the gradient that the step
// before has left, and the new one takes its place.
//
//===----------------------------------------------------------------------===//

#include "StepFinisher.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Step/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_FINISHSTEP
#include "dsopt/Transforms/Step/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

llvm::MapVector<Operation *, SmallVector<const PlacedBucket *>> StepFinisher::findCompletion() {
  llvm::DenseMap<Attribute, const PlacedBucket *> holders; ///< by buffer
  for (const PlacedBucket &bucket : step.buckets) {
    if (bucket.frozen || !bucket.isAt(stage))
      continue;
    for (BufferRole role : {BufferRole::Stored, BufferRole::Gathered})
      if (BufferOp buffer = out.find(role, bucket.name()))
        holders[FlatSymbolRefAttr::get(buffer.getSymNameAttr())] = &bucket;
    for (auto [use, accumulated] : llvm::enumerate(bucket.accumulated))
      if (accumulated && bucket.useStages[use] == stage)
        holders[buffers.gradient(bucket, use)] = &bucket;
  }
  // A run's gradient may lie elsewhere until it is reduced or added: that comes behind the run.
  llvm::DenseMap<Attribute, SmallVector<const PlacedBucket *>> lists; ///< by the buffers of runs
  llvm::DenseMap<const PlacedBucket *, Operation *> last;
  Operation *run = nullptr;
  for (Operation &op : schedule.getBody().front()) {
    auto touch = [&](Attribute buffer) {
      if (const PlacedBucket *bucket = holders.lookup(buffer))
        last[bucket] = run;
    };
    if (auto reduce = dyn_cast<ReduceOp>(op))
      touch(reduce.getTarget().getBuffer());
    else if (auto add = dyn_cast<AddOp>(op))
      touch(add.getTarget().getBuffer());
    else if (auto runOp = dyn_cast<RunOp>(op)) {
      run = runOp;
      auto [list, isNew] = lists.try_emplace(runOp.getBuffers());
      if (isNew)
        for (auto ref : runOp.getBuffers().getAsRange<RefAttr>())
          if (const PlacedBucket *bucket = holders.lookup(ref.getBuffer()))
            list->second.push_back(bucket);
      for (const PlacedBucket *bucket : list->second)
        last[bucket] = run;
    }
  }
  llvm::DenseMap<Operation *, SmallVector<const PlacedBucket *>> complete;
  for (const PlacedBucket &bucket : step.buckets)
    if (Operation *run = last.lookup(&bucket))
      complete[run].push_back(&bucket);
  llvm::MapVector<Operation *, SmallVector<const PlacedBucket *>> ordered;
  for (Operation &op : schedule.getBody().front())
    if (auto buckets = complete.find(&op); buckets != complete.end())
      ordered.insert({&op, buckets->second});
  return ordered;
}

void StepFinisher::completeBucket(const PlacedBucket &bucket) {
  // What other stages add to or read is finished at the end, in one order.
  if (bucket.owner != stage || bucket.stages.size() > 1)
    return;
  if (bucket.ranks == 1)
    return finishBucket(bucket);
  // Its reduction is in flight: the next blocks' runs need not wait for it.
  if (!bucket.shared())
    writeWholeGradient(bucket);
  trailing.push_back(&bucket);
}

void StepFinisher::finishTrailing() {
  for (const PlacedBucket *bucket : trailing)
    finishBucket(*bucket);
  trailing.clear();
}

void StepFinisher::finishBucket(const PlacedBucket &bucket) {
  if (bucket.shared()) {
    writeTiedGradients(bucket);
    writeWholeGradient(bucket);
  }
  writeNorm(bucket);
  finished.insert(&bucket);
  if (step.updatesLast)
    return;
  writeUpdates(&bucket);
  writeNewParameters(bucket, bucket.owner);
}

void StepFinisher::finish() {
  AgreeOp agree;
  FoldOp fold;
  GatherOp statistics;
  for (Operation &op : schedule.getBody().front())
    if (isa<AgreeOp>(op))
      agree = cast<AgreeOp>(op);
    else if (isa<FoldOp>(op))
      fold = cast<FoldOp>(op);
  if (fold)
    for (auto gather : schedule.getBody().front().getOps<GatherOp>())
      if (gather.getTarget() == fold.getStatistics())
        statistics = gather;
  out.buffer(kScalarsBuffer, MemRefType::get({kScalars * countTables()}, Float32Type::get(out.context)),
             BufferKind::Buffers, {1, true, -1, {}, BufferRole::Scalars});
  for (auto &[run, buckets] : findCompletion()) {
    Operation *next = run->getNextNode();
    while (isa<ReduceOp, AddOp>(next))
      next = next->getNextNode();
    out.insertBefore(next);
    finishTrailing();
    for (const PlacedBucket *bucket : buckets)
      completeBucket(*bucket);
  }
  // Before what all agree on: contributions to statistics are gathered first.
  out.insertBefore(statistics ? statistics.getOperation() : agree.getOperation());
  finishTrailing();
  SmallVector<const PlacedBucket *> rest, updates;
  for (const PlacedBucket &bucket : step.buckets)
    if (!bucket.frozen && bucket.isAt(stage)) {
      if (!finished.contains(&bucket))
        rest.push_back(&bucket);
      if (step.updatesLast || !finished.contains(&bucket))
        updates.push_back(&bucket);
    }
  for (const PlacedBucket *bucket : rest)
    writeTiedGradients(*bucket);
  for (const PlacedBucket *bucket : rest)
    if (bucket->owner == stage) {
      writeWholeGradient(*bucket);
      writeNorm(*bucket);
    }
  agree.setNormsAttr(ArrayAttr::get(out.context, norms));
  // What was agreed on a step ago is done before the next agreement.
  if (step.lags)
    writeUpdates(updates);
  out.insertAfter(&schedule.getBody().front().back());
  for (auto [bucket, from] : step.statistics)
    if (step.buckets[bucket].isAt(stage))
      writeNewParameters(step.buckets[bucket], from);
  if (!step.lags)
    writeUpdates(updates);
  for (const PlacedBucket *bucket : updates)
    writeNewParameters(*bucket, bucket->owner);
  renumberCollectives(schedule);
}

bool dsopt::updatesNeedAgreement(ModuleOp module) {
  return getOption(module, "clip", 0) != 0 || options::precision(module) == "fp16";
}

LogicalResult dsopt::finishStep(ModuleOp module) {
  for (const SmallVector<ProgramOp> &programs : getProgramLists(module)) {
    if (ProgramOp(programs.front()).getKind() == ProgramKind::Evaluation)
      continue;
    for (ProgramOp program : programs)
      if (ScheduleOp schedule = getSchedule(program);
          !schedule || !llvm::hasSingleElement(schedule.getBody().front().getOps<AgreeOp>()))
        return program.emitOpError("has no schedule that ends in one agreement");
    FailureOr<StepBuckets> step = readStepBuckets(module, programs);
    if (failed(step))
      return failure();
    for (ProgramOp program : programs)
      StepFinisher(program, *step).finish();
  }
  keepOptions(module);
  return success();
}

namespace {
struct FinishStep : dsopt::impl::FinishStepBase<FinishStep> {
  void runOnOperation() override {
    if (failed(finishStep(getOperation())))
      return signalPassFailure();
    if (auto update = getOperation().lookupSymbol<func::FuncOp>(graph::kUpdateFunction))
      update.erase();
  }
};
} // namespace
