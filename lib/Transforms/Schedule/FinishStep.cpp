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

#include "Bucket.h"
#include "LocalSteps.h"
#include "Scheduling.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Schedule/Passes.h"

#include "llvm/ADT/MapVector.h"

#include <set>

namespace dsopt {
#define GEN_PASS_DEF_FINISHSTEP
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Numbers in a table of scalars.
static constexpr int64_t kScalars = 16;

namespace {
/// What the programs of a step share.
struct StepBuckets {
  std::vector<PlacedBucket> buckets;
  llvm::DenseMap<Attribute, SymbolRefAttr> kernels; ///< of updates, by bucket
  /// Of updates that see norms of whole parameters, or whole matrices, the kernels before them, by bucket.
  llvm::DenseMap<Attribute, SymbolRefAttr> directions;
  /// What is computed of a whole matrix between the two, by parameter.
  struct Matrix {
    FlatSymbolRefAttr segment;
    int64_t scratch;
  };
  llvm::DenseMap<Attribute, Matrix> matrices;
  bool seesMatrices(const PlacedBucket &bucket) const {
    auto ranges = dist::BucketOp(bucket.op).getRanges().getAsRange<dist::RangeAttr>();
    return matrices.contains((*ranges.begin()).getParameter());
  }
  int64_t scalarGroups = 1; ///< distinct (lr_scale, decay_scale) of trained parameters
  bool isForDevice = false;
  bool updatesLast = false;       ///< nothing is updated before the norms of all gradients are taken
  bool delays = false;            ///< some steps leave gradients to the next one
  bool lags = false;              ///< these do
  bool gathersParameters = false; ///< behind the freeze, of which ranks have slices of all but the momentum
  bool frozen = false; ///< ranks have their own gradients, and update by what they exchange of them
  ProgramKind kind = ProgramKind::Step;
  /// Of ranks that meet, the kernels of the step that each makes before, by bucket.
  llvm::DenseMap<Attribute, SymbolRefAttr> locals;
  /// Running statistics that several positions hold, with the one that folds them.
  SmallVector<std::pair<int64_t, int64_t>> statistics;
};

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
  void writeMatrixUpdate(const PlacedBucket &bucket);
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
  for (const PlacedBucket *bucket : own)
    if (step.seesMatrices(*bucket))
      writeMatrixUpdate(*bucket);
  llvm::erase_if(own, [&](const PlacedBucket *bucket) { return step.seesMatrices(*bucket); });
  if (!own.empty() && kernelOf(step.directions, own.front())) {
    for (const PlacedBucket *bucket : own)
      bytes += dist::BucketOp(bucket->op).getRanges().size() * kTrustWords * sizeof(int64_t);
    auto words = [&](int64_t ranks) {
      return MemRefType::get({ranks * bytes / (int64_t)sizeof(int64_t)}, IntegerType::get(out.context, 64));
    };
    record = records = out.ref(out.buffer("norms.own", words(1), BufferKind::Buffers));
    int64_t at = 0;
    for (const PlacedBucket *bucket : own) {
      UpdateOp direction = writeUpdate(*bucket, kernelOf(step.directions, bucket));
      direction.setDirection(true);
      direction.setRecordAttr(out.ref(record.getBuffer(), 0, at));
      at += dist::BucketOp(bucket->op).getRanges().size() * kTrustWords * sizeof(int64_t);
    }
    const PlacedBucket &first = *own.front();
    if (first.ranks > 1 && !first.wholeStates()) {
      records = out.ref(out.buffer("norms.all", words(first.ranks), BufferKind::Buffers));
      out.emit<GatherOp>(record, records, bytes, TypeAttr(), Traffic::AllGather, out.nextOrder(),
                         first.group(), kCommStream);
    }
  }
  for (const PlacedBucket *bucket : own) {
    if (SymbolRefAttr local = kernelOf(step.locals, bucket))
      writeUpdate(*bucket, local).setDirection(true);
    UpdateOp update = writeUpdate(*bucket, kernelOf(step.kernels, bucket));
    if (records)
      update.setRecordAttr(records);
    if (step.lags)
      keepGradient(*bucket);
  }
}

/// Where an update sees whole matrices, all ranks gather the direction whole (as many bytes as a gather of
/// fp32 parameters); each makes what the step goes along of the matrices that its slice has a part of.
void StepFinisher::writeMatrixUpdate(const PlacedBucket &bucket) {
  auto name = dist::BucketOp(bucket.op).getSymNameAttr();
  UpdateOp direction = writeUpdate(bucket, step.directions.lookup(name));
  direction.setDirection(true);
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
  for (auto range : dist::BucketOp(bucket.op).getRanges().getAsRange<dist::RangeAttr>()) {
    auto [segment, scratch] = step.matrices.lookup(range.getParameter());
    int64_t at = bytesOf(range.getOffset(), bucket.gradientType());
    auto type = MemRefType::get({scratch}, IntegerType::get(out.context, 8));
    RefAttr temp =
        scratch ? out.ref(out.buffer("temp." + Twine(scratch), type, BufferKind::Buffers)) : RefAttr();
    out.emit<TransformOp>(segment.getValue(), bucket.name(),
                          ArrayAttr::get(out.context, {out.ref(whole, 0, at), out.ref(made, 0, at)}),
                          range.getElements(), range.getOffset(), direction.getSliced(), temp,
                          kComputeStream);
  }
  UpdateOp update = writeUpdate(bucket, step.kernels.lookup(name));
  update.setUnpadded(true);
  SmallVector<Attribute> refs(update.getBuffers().begin(), update.getBuffers().end());
  refs[kUpdateGradient] = out.ref(made, 0, 0, isSliced ? bucket.gradientSliceBytes() : 0);
  update.setBuffersAttr(ArrayAttr::get(out.context, refs));
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
    bool seesNorms = step.directions.contains(op.getSymNameAttr()) && !step.seesMatrices(bucket);
    if (seesNorms && bucket.owner == stage && op.getStateTier() == dist::Tier::Device)
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
  out.buffer("scalars", MemRefType::get({kScalars * countTables()}, Float32Type::get(out.context)),
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
  return getOption(module, "clip", 0) != 0 || getOption(module, "precision", StringRef("fp32")) == "fp16";
}

/// Which kernel of @update changes each bucket, by what the kernels read.
static LogicalResult readKernels(ModuleOp module, StepBuckets &step) {
  SymbolTable symbols(module);
  struct Kernels {
    SymbolRefAttr update, direction, local;
  };
  llvm::DenseMap<Attribute, Kernels> kernels; ///< by parameter that they, or whose state they, read
  if (auto update = symbols.lookup<func::FuncOp>("update"))
    update.walk([&](Operation *op) {
      auto kernel = op->getAttrOfType<SymbolRefAttr>(graph::kKernelAttr);
      auto direction = op->getAttrOfType<SymbolRefAttr>(graph::kDirectionKernelAttr);
      SymbolRefAttr local;
      // What the freeze changes is where the step goes; by which of the two kernels, where there are two.
      if (kernel && step.frozen)
        (direction ? direction : kernel) =
            op->getAttrOfType<SymbolRefAttr>(step.kind == ProgramKind::LocalStep  ? graph::kLocalKernelAttr
                                             : step.kind == ProgramKind::JoinStep ? graph::kJoinKernelAttr
                                                                                  : graph::kFrozenKernelAttr);
      if (step.kind == ProgramKind::JoinStep)
        local = op->getAttrOfType<SymbolRefAttr>(graph::kLocalDirectionKernelAttr);
      auto matrix = op->getAttrOfType<FlatSymbolRefAttr>(graph::kMatrixFunctionAttr);
      for (Value operand : op->getOperands())
        if (auto read = operand.getDefiningOp<graph::ReadOp>(); kernel && read) {
          auto state = symbols.lookup<graph::StateOp>(read.getStateAttr().getAttr());
          FlatSymbolRefAttr parameter = state ? state.getParameterAttr() : read.getStateAttr();
          kernels[parameter] = {kernel, direction, local};
          if (!matrix)
            continue;
          Operation *segment = symbols.lookup(matrix.getAttr());
          auto scratch = segment ? segment->getAttrOfType<IntegerAttr>(kTempAttr) : IntegerAttr();
          step.matrices[parameter] = {matrix, scratch ? scratch.getInt() : 0};
        }
    });
  for (PlacedBucket &bucket : step.buckets) {
    if (bucket.frozen)
      continue;
    SymbolRefAttr &known = step.kernels[bucket.op.getSymNameAttr()];
    for (auto range : bucket.op.getRanges().getAsRange<dist::RangeAttr>()) {
      auto [kernel, direction, local] = kernels.lookup(range.getParameter());
      if (!kernel)
        return bucket.op.emitOpError("holds ")
               << range.getParameter() << ", which no operation of @update with a kernel reads";
      if (known && known != kernel)
        return bucket.op.emitOpError("holds parameters that ")
               << known << " and " << kernel << " update, expected one kernel";
      known = kernel;
      if (direction)
        step.directions[bucket.op.getSymNameAttr()] = direction;
      if (local)
        step.locals[bucket.op.getSymNameAttr()] = local;
    }
  }
  return success();
}

static FailureOr<StepBuckets> readBuckets(ModuleOp module, ArrayRef<ProgramOp> programs) {
  StepBuckets step;
  step.isForDevice = isForDevice(module);
  step.delays = getOption(module, "delayed_update", 0) != 0;
  step.lags = kindOf(programs.front()) == ProgramKind::DelayedStep;
  step.kind = kindOf(programs.front());
  step.frozen = hasOwnGradients(step.kind);
  step.gathersParameters = gathersParameters(module);
  std::set<std::pair<double, double>> groups;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    if (parameter.getFrozen())
      continue;
    auto factor = [&](StringRef name) {
      auto scale = parameter->getAttrOfType<FloatAttr>(name);
      return scale ? scale.getValueAsDouble() : 1.0;
    };
    groups.insert({factor(graph::kLrScaleAttr), factor(graph::kDecayScaleAttr)});
  }
  step.scalarGroups = std::max<int64_t>(groups.size(), 1);
  for (auto op : module.getOps<dist::BucketOp>()) {
    PlacedBucket bucket(op);
    bucket.useStages.assign(op.getBlocks().size(), -1);
    bucket.accumulated.assign(op.getBlocks().size(), false);
    step.buckets.push_back(std::move(bucket));
  }
  for (ProgramOp program : programs) {
    ProgramBuilder out(program);
    BucketBuffers buffers(out);
    llvm::DenseMap<Attribute, int64_t> holders; ///< of parameters, by buffer
    for (auto [index, bucket] : llvm::enumerate(step.buckets))
      if (BufferOp buffer = out.find(BufferRole::Stored, bucket.name()))
        holders[FlatSymbolRefAttr::get(buffer.getSymNameAttr())] = index;
    for (PlacedBucket &bucket : step.buckets)
      for (auto [use, block] : llvm::enumerate(bucket.op.getBlocks()))
        if (program.hasBlock(block) && buffers.holds(bucket)) {
          bucket.useStages[use] = program.getPosition();
          bucket.accumulated[use] = buffers.accumulates(bucket, use);
        }
    for (auto fold : getSchedule(program).getBody().front().getOps<FoldOp>())
      for (auto target : fold.getTargets().getAsRange<RefAttr>()) {
        auto holder = holders.find(target.getBuffer());
        if (holder == holders.end())
          return fold.emitOpError("changes ") << target.getBuffer() << ", expected a bucket's parameters",
                 failure();
        step.statistics.push_back({holder->second, (int64_t)program.getPosition()});
      }
  }
  for (PlacedBucket &bucket : step.buckets) {
    bucket.place();
    if (step.frozen && !bucket.frozen && !bucket.wholeStates() && !step.gathersParameters)
      return bucket.op.emitOpError("is cut by stage ")
                 << bucket.zero << ", expected 0: where the variance freezes, every rank has all of it",
             failure();
  }
  llvm::erase_if(step.statistics, [&](auto entry) { return step.buckets[entry.first].stages.size() < 2; });
  if (failed(readKernels(module, step)))
    return failure();
  // What is exchanged of gradients outlives the step: all of them are finite before.
  step.updatesLast = (!step.lags && updatesNeedAgreement(module)) || !step.directions.empty() || step.frozen;
  return step;
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
    FailureOr<StepBuckets> step = readBuckets(module, programs);
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
