//===- FinishStep.cpp - from the last gradient to the new parameters ------===//
//
// As soon as a bucket's gradient is complete its norm is taken; without clipping
// and loss scale it is updated there and then, and the gradient's bytes are free.
// At the end the gradients of parameters shared between stages go to their owner,
// all ranks agree, what is left is updated, new parameters go where they are needed.
// Where updates lag a step behind, what is updated with is the gradient that the step
// before has left, and the new one takes its place.
//
// Messages of shared parameters are in the order of (bucket, use) on every stream,
// so they cannot cross.
//
//===----------------------------------------------------------------------===//

#include "StepBuckets.h"
#include "dsopt/Analysis/Exec/LaterSteps.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Step/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_FINISHSTEP
#include "dsopt/Transforms/Step/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Numbers in a table of scalars.
static constexpr int64_t kScalars = 16;
static constexpr llvm::StringLiteral kScalarsBuffer = "scalars";

namespace {
/// Finishes one program.
class StepFinisher {
public:
  StepFinisher(ProgramOp program, const StepBuckets &step)
      : step(step), stage(program.getPosition()), out(program), buffers(out), schedule(getSchedule(program)) {
  }
  void finish();

private:
  /// The buckets that are complete behind a run: the last to read their parameters or to add to their
  /// gradients.
  llvm::MapVector<Operation *, SmallVector<const PlacedBucket *>> findCompletion();
  /// After the last run that touches the bucket.
  void completeBucket(const PlacedBucket &bucket);
  /// Norms, and updates that need no agreement, of complete buckets whose reductions trailed.
  void finishTrailing();
  void finishBucket(const PlacedBucket &bucket);
  void writeTiedGradients(const PlacedBucket &bucket);
  void writeWholeGradient(const PlacedBucket &bucket);
  void writeNorm(const PlacedBucket &bucket);
  /// Those of the buckets that are this position's own.
  void writeUpdates(ArrayRef<const PlacedBucket *> buckets);
  UpdateOp writeUpdate(const PlacedBucket &bucket, SymbolRefAttr kernel);
  UpdateOp writeDirection(const PlacedBucket &bucket);
  /// By role, the bucket's buffer of what is kept of whole parameters, and the first element not given away.
  using WholeStates = llvm::DenseMap<StringAttr, std::pair<FlatSymbolRefAttr, int64_t>>;
  WholeStates placeWholeStates(const PlacedBucket &bucket);
  UpdateOp writeMatrixUpdate(const PlacedBucket &bucket, UpdateOp direction);
  /// Sets aside the gradient that the next step updates with.
  void keepGradient(const PlacedBucket &bucket);
  /// What this rank has of the sum over ranks, or of its own: a slice, or with the variance frozen all of it.
  RefAttr ownGradient(const PlacedBucket &bucket, int64_t use) {
    return step.frozen ? out.ref(buffers.gradient(bucket, use)) : buffers.gradientSlice(bucket, use);
  }
  /// The gradient as the bucket's update takes it.
  RefAttr updateGradient(const PlacedBucket &bucket) {
    bool part = !bucket.wholeStates() && bucket.wholeGradients();
    return out.ref(buffers.gradient(bucket, 0), 0, 0, part ? bucket.gradientSliceBytes() : 0);
  }
  /// Tables of scalars: of each group, and of what a device updates by norms of parameters each part's.
  int64_t countTables() const;
  /// From the stage that has changed them to others that use them.
  void writeNewParameters(const PlacedBucket &bucket, int64_t from);

  const StepBuckets &step;
  int64_t stage;
  ProgramBuilder out;
  BucketBuffers buffers;
  ScheduleOp schedule;
  SmallVector<const PlacedBucket *> trailing;
  SmallVector<Attribute> norms;                        ///< records written so far
  llvm::SmallPtrSet<const PlacedBucket *, 8> finished; ///< with norm, and updated if that needs no agreement
};
} // namespace

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

void StepFinisher::writeTiedGradients(const PlacedBucket &bucket) {
  for (int64_t use = 1, uses = bucket.useStages.size(); use < uses; ++use) {
    if (!bucket.accumulated[use])
      continue;
    int64_t from = bucket.useStages[use];
    std::string tag = (bucket.name() + ".grad." + Twine(use)).str();
    int64_t elements = step.frozen ? bucket.padded : bucket.slice;
    int64_t bytes = bytesOf(elements, bucket.gradientType());
    if (from != bucket.owner && from == stage)
      out.emit<SendOp>(ownGradient(bucket, use), bytes, bucket.owner, tag, IntegerAttr(), Traffic::Tied,
                       kPipeline, kSendStream);
    if (bucket.owner != stage)
      continue;
    RefAttr source;
    if (from == stage) {
      source = ownGradient(bucket, use);
    } else {
      source = out.ref(buffers.tiedGradient(bucket, use, /*whole=*/step.frozen));
      out.emit<RecvOp>(source, bytes, from, tag, IntegerAttr(), Traffic::Tied, kPipeline, kRecvStream);
    }
    out.emit<AddOp>(ownGradient(bucket, 0), source, elements, bucket.gradientType(), kComputeStream);
  }
}

void StepFinisher::writeWholeGradient(const PlacedBucket &bucket) {
  if (bucket.wholeStates() && bucket.ranks > 1 && !step.frozen)
    out.emit<GatherOp>(buffers.gradientSlice(bucket, 0), out.ref(buffers.gradient(bucket, 0)),
                       bucket.gradientSliceBytes(), TypeAttr(), Traffic::AllGather, out.nextOrder(),
                       bucket.group(), kCommStream);
}

void StepFinisher::writeNorm(const PlacedBucket &bucket) {
  int64_t owned = llvm::count_if(
      step.buckets, [&](const PlacedBucket &other) { return !other.frozen && other.owner == stage; });
  auto type = MemRefType::get({kNormWords}, IntegerType::get(out.context, 64));
  RefAttr record = out.ref(out.buffer("norms", type, BufferKind::Buffers, {owned, false}), norms.size());
  norms.push_back(record);
  out.emit<NormOp>(ownGradient(bucket, 0), bucket.name(), record, kComputeStream, /*whole=*/step.frozen);
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

/// Where updates see norms of whole parameters, which may lie in several buckets and on all ranks, all
/// directions come first, and their records are gathered.
void StepFinisher::writeUpdates(ArrayRef<const PlacedBucket *> buckets) {
  SmallVector<const PlacedBucket *> own;
  llvm::copy_if(buckets, std::back_inserter(own),
                [&](const PlacedBucket *bucket) { return bucket->owner == stage; });
  auto kernelOf = [](auto &kernels, const PlacedBucket *bucket) {
    return kernels.lookup(dist::BucketOp(bucket->op).getSymNameAttr());
  };
  RefAttr record, records;
  SmallVector<UpdateOp> directions;
  int64_t bytes = 0;
  auto seesMatricesAlone = [&](const PlacedBucket *bucket) {
    return step.seesMatrices(*bucket) && !step.seesNorms(*bucket);
  };
  for (const PlacedBucket *bucket : own)
    if (seesMatricesAlone(bucket))
      writeMatrixUpdate(*bucket, writeDirection(*bucket));
  llvm::erase_if(own, seesMatricesAlone);
  if (!own.empty() && step.seesNorms(*own.front())) {
    for (const PlacedBucket *bucket : own)
      bytes += dist::BucketOp(bucket->op).getRanges().size() * kTrustWords * sizeof(int64_t);
    auto words = [&](int64_t ranks) {
      return MemRefType::get({ranks * bytes / (int64_t)sizeof(int64_t)}, IntegerType::get(out.context, 64));
    };
    record = records = out.ref(out.buffer("norms.own", words(1), BufferKind::Buffers));
    int64_t at = 0;
    for (const PlacedBucket *bucket : own) {
      directions.push_back(writeDirection(*bucket));
      directions.back().setRecordAttr(out.ref(record.getBuffer(), 0, at));
      at += dist::BucketOp(bucket->op).getRanges().size() * kTrustWords * sizeof(int64_t);
    }
    const PlacedBucket &first = *own.front();
    if (first.ranks > 1 && !first.wholeStates()) {
      records = out.ref(out.buffer("norms.all", words(first.ranks), BufferKind::Buffers));
      out.emit<GatherOp>(record, records, bytes, TypeAttr(), Traffic::AllGather, out.nextOrder(),
                         first.group(), kCommStream);
    }
  }
  for (auto [index, bucket] : llvm::enumerate(own)) {
    if (SymbolRefAttr local = kernelOf(step.locals, bucket))
      writeUpdate(*bucket, local).setDirection(true);
    UpdateOp update = step.seesMatrices(*bucket) ? writeMatrixUpdate(*bucket, directions[index])
                                                 : writeUpdate(*bucket, kernelOf(step.kernels, bucket));
    if (records)
      update.setRecordAttr(records);
    if (step.lags)
      keepGradient(*bucket);
  }
}

/// Where an update sees whole matrices, all ranks gather the direction whole (as many bytes as a gather of
/// fp32 parameters); each makes what the step goes along of the matrices that its slice has a part of.
UpdateOp StepFinisher::writeMatrixUpdate(const PlacedBucket &bucket, UpdateOp direction) {
  auto slice = cast<RefAttr>(direction.getBuffers()[kUpdateGradient]);
  auto type = MemRefType::get({bucket.padded}, bucket.gradientType());
  bool isSliced = bucket.ranks > 1 && !bucket.wholeStates();
  FlatSymbolRefAttr whole = isSliced && !bucket.wholeGradients()
                                ? out.buffer(bucket.name() + ".direction", type, BufferKind::Buffers)
                                : slice.getBuffer();
  if (isSliced)
    out.emit<GatherOp>(slice, out.ref(whole), bucket.gradientSliceBytes(), TypeAttr(), Traffic::AllGather,
                       out.nextOrder(), bucket.group(), kCommStream);
  FlatSymbolRefAttr made = out.buffer(bucket.name() + ".matrices", type, BufferKind::Buffers);
  WholeStates states = placeWholeStates(bucket);
  for (auto range : dist::BucketOp(bucket.op).getRanges().getAsRange<dist::RangeAttr>()) {
    const StepBuckets::Matrix &matrix = *step.matrixOf(range);
    int64_t scratch = matrix.scratch;
    int64_t at = bytesOf(range.getOffset(), bucket.gradientType());
    auto type = MemRefType::get({scratch}, IntegerType::get(out.context, 8));
    RefAttr temp =
        scratch ? out.ref(out.buffer("temp." + Twine(scratch), type, BufferKind::Buffers)) : RefAttr();
    SmallVector<Attribute> refs{out.ref(whole, 0, at)};
    // All tables have what a rule takes of whole parameters: that of the first group.
    if (!matrix.states.empty())
      refs.push_back(out.ref(FlatSymbolRefAttr::get(out.context, kScalarsBuffer)));
    for (auto [role, elements] : matrix.states) {
      auto &[buffer, end] = states[role];
      refs.push_back(out.ref(buffer, 0, bytesOf(end, Float32Type::get(out.context))));
      end += llvm::alignTo(elements, dist::kGranule);
    }
    refs.push_back(out.ref(made, 0, at));
    out.emit<TransformOp>(matrix.segment.getValue(), bucket.name(), ArrayAttr::get(out.context, refs),
                          range.getElements(), range.getOffset(), direction.getSliced(), temp,
                          kComputeStream);
  }
  UpdateOp update = writeUpdate(bucket, step.kernels.lookup(dist::BucketOp(bucket.op).getSymNameAttr()));
  update.setUnpadded(true);
  SmallVector<Attribute> refs(update.getBuffers().begin(), update.getBuffers().end());
  refs[kUpdateGradient] = out.ref(made, 0, 0, isSliced ? bucket.gradientSliceBytes() : 0);
  update.setBuffersAttr(ArrayAttr::get(out.context, refs));
  return update;
}

StepFinisher::WholeStates StepFinisher::placeWholeStates(const PlacedBucket &bucket) {
  llvm::MapVector<StringAttr, std::pair<int64_t, int64_t>> sizes; ///< padded, and without
  for (auto range : dist::BucketOp(bucket.op).getRanges().getAsRange<dist::RangeAttr>())
    for (auto [role, elements] : step.matrixOf(range)->states) {
      sizes[role].first += llvm::alignTo(elements, dist::kGranule);
      sizes[role].second += elements;
    }
  WholeStates states;
  for (auto [role, size] : sizes)
    states[role] = {buffers.wholeState(bucket, role.getValue(), size.first, size.second), 0};
  return states;
}

UpdateOp StepFinisher::writeDirection(const PlacedBucket &bucket) {
  UpdateOp direction =
      writeUpdate(bucket, step.directions.lookup(dist::BucketOp(bucket.op).getSymNameAttr()));
  direction.setDirection(true);
  return direction;
}

UpdateOp StepFinisher::writeUpdate(const PlacedBucket &bucket, SymbolRefAttr kernel) {
  // At stages 1 and 2 the parameters are whole and the optimizer's state is not;
  // at stage 1 the gradient is whole as well.
  bool sliced = !bucket.wholeStates();
  SmallVector<Attribute> refs;
  refs.push_back(out.ref(buffers.parameters(bucket), 0, 0,
                         sliced && bucket.wholeParameters() ? bucket.sliceBytes() : 0));
  if (step.delays)
    buffers.pendingGradient(bucket);
  refs.push_back(step.lags ? out.ref(buffers.pendingGradient(bucket)) : updateGradient(bucket));
  dist::BucketOp op = bucket.op;
  if (auto master = op.getMaster())
    refs.push_back(out.ref(buffers.master(bucket, *master)));
  if (auto states = op.getStates())
    for (auto [index, state] : llvm::enumerate(states->getAsRange<dist::StateAttr>())) {
      // The momentum, of which ranks exchange the whole and update by their slice.
      bool isWhole = step.gathersParameters && index == 0;
      refs.push_back(out.ref(buffers.optimizerState(bucket, state, isWhole), 0, 0,
                             isWhole && sliced ? bucket.slice * graph::elementBytes(state.getType()) : 0));
    }
  return out.emit<UpdateOp>(kernel, bucket.name(), ArrayAttr::get(out.context, refs),
                            sliced ? bucket.slice : bucket.padded, sliced, kComputeStream);
}

int64_t StepFinisher::countTables() const {
  int64_t tables = 0;
  if (!step.isForDevice)
    return step.scalarGroups;
  for (const PlacedBucket &bucket : step.buckets) {
    dist::BucketOp op = bucket.op;
    if (step.seesNorms(bucket) && bucket.owner == stage && op.getStateTier() == dist::Tier::Device)
      tables += op.getRanges().size();
  }
  // It also adds a parameter's record there.
  constexpr int64_t kScratch = kTrustWords * sizeof(int64_t) / (kScalars * sizeof(float));
  return step.scalarGroups + tables + (tables ? kScratch : 0);
}

void StepFinisher::keepGradient(const PlacedBucket &bucket) {
  int64_t elements = bucket.wholeStates() ? bucket.padded : bucket.slice;
  out.emit<CopyOp>(updateGradient(bucket), out.ref(buffers.pendingGradient(bucket)),
                   bytesOf(elements, bucket.gradientType()), kDownloadStream);
}

void StepFinisher::writeNewParameters(const PlacedBucket &bucket, int64_t from) {
  // Where ranks are apart none has another one's parameters.
  bool isApart = step.kind == ProgramKind::LocalStep || step.kind == ProgramKind::JoinStep;
  int64_t part = bucket.wholeParameters() && bucket.ranks > 1 && !isApart ? bucket.sliceBytes() : 0;
  int64_t bytes = isApart ? bucket.sliceBytes() * bucket.ranks : bucket.sliceBytes();
  FlatSymbolRefAttr parameters = buffers.parameters(bucket, bucket.owner == stage);
  RefAttr slice = out.ref(parameters, 0, 0, part), whole = out.ref(parameters);
  std::string tag = (bucket.name() + ".param").str();
  auto gather = [&](Traffic traffic) {
    out.emit<GatherOp>(slice, whole, bucket.sliceBytes(), TypeAttr(), traffic, out.nextOrder(),
                       bucket.group(), kCommStream);
  };
  if (from == stage) {
    for (int64_t other : bucket.stages)
      if (other != stage)
        out.emit<SendOp>(slice, bytes, other, tag, IntegerAttr(), Traffic::Tied, kPipeline, kSendStream);
    if (bucket.ranks > 1 && bucket.wholeParameters() && !bucket.wholeStates())
      gather(Traffic::AllGather);
    return;
  }
  out.emit<RecvOp>(slice, bytes, from, tag, IntegerAttr(), Traffic::Tied, kPipeline, kRecvStream);
  if (bucket.ranks > 1 && bucket.wholeParameters() && !isApart)
    gather(Traffic::Tied);
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
  SmallVector<int64_t> sizes = getVariants(module);
  sizes.insert(sizes.begin(), 0);
  constexpr size_t count = std::size(kStepKinds);
  for (size_t list = 0, lists = count * sizes.size(); list < lists; ++list) {
    SmallVector<ProgramOp> programs = getPrograms(module, kStepKinds[list % count], sizes[list / count]);
    if (programs.empty())
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
    if (auto update = getOperation().lookupSymbol<func::FuncOp>("update"))
      update.erase();
  }
};
} // namespace
