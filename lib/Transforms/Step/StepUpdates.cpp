//===- StepUpdates.cpp - norms, and updates by what they see of a parameter -===//

#include "StepFinisher.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Transforms/Order/Communicators.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

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

void StepFinisher::gatherOver(ArrayRef<AxisPart> axes, RefAttr own, RefAttr all, int64_t bytes) {
  auto module = schedule->getParentOfType<ModuleOp>();
  // What is over tensor ranks alone comes behind the sums of values.
  bool isTensor = axes.size() == 1 && axes[0].axis == Axis::tp;
  if (isTensor)
    declareTensorStream(module);
  out.emit<GatherOp>(own, all, bytes, TypeAttr(), Traffic::AllGather, out.nextOrder(),
                     declareCommunicator(module, dist::AxesAttr::get(out.context, axes)),
                     isTensor ? kTensorStream : kCommStream);
}

/// The directions of buckets that the same ranks have other parts of, and where the records of all of these
/// are then: those of slices, and those of tensor shards.
RefAttr StepFinisher::writeDirections(ArrayRef<const PlacedBucket *> buckets, StringRef suffix,
                                      llvm::DenseMap<const PlacedBucket *, UpdateOp> &directions) {
  auto bytesOf = [](const PlacedBucket *bucket) {
    return dist::BucketOp(bucket->op).getRanges().size() * kTrustWords * sizeof(int64_t);
  };
  int64_t bytes = 0;
  for (const PlacedBucket *bucket : buckets)
    bytes += bytesOf(bucket);
  auto words = [&](int64_t ranks) {
    return MemRefType::get({ranks * bytes / (int64_t)sizeof(int64_t)}, IntegerType::get(out.context, 64));
  };
  RefAttr record = out.ref(out.buffer(("norms.own" + suffix).str(), words(1), BufferKind::Buffers));
  int64_t at = 0;
  for (const PlacedBucket *bucket : buckets) {
    UpdateOp &direction = directions[bucket] = writeDirection(*bucket);
    direction.setRecordAttr(out.ref(record.getBuffer(), 0, at));
    at += bytesOf(bucket);
  }
  const PlacedBucket &first = *buckets.front();
  SmallVector<AxisPart> holders;
  if (!first.wholeStates())
    llvm::append_range(holders, dist::BucketOp(first.op).getAxes().getParts());
  if (dist::AxesAttr distinct = dist::BucketOp(first.op).getDistinctAttr())
    llvm::append_range(holders, distinct.getParts());
  int64_t ranks = dist::getGrid(first.op).count(holders);
  if (ranks == 1)
    return record;
  RefAttr records = out.ref(out.buffer(("norms.all" + suffix).str(), words(ranks), BufferKind::Buffers));
  gatherOver(holders, record, records, bytes);
  return records;
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
  auto seesMatricesAlone = [&](const PlacedBucket *bucket) {
    return step.seesMatrices(*bucket) && !step.seesNorms(*bucket);
  };
  for (const PlacedBucket *bucket : own)
    if (seesMatricesAlone(bucket))
      writeMatrixUpdate(*bucket, writeDirection(*bucket));
  llvm::erase_if(own, seesMatricesAlone);
  llvm::DenseMap<const PlacedBucket *, UpdateOp> directions;
  llvm::DenseMap<const PlacedBucket *, RefAttr> records;
  for (StringRef suffix : {"", ".shards"}) {
    SmallVector<const PlacedBucket *> alike;
    for (const PlacedBucket *bucket : own)
      if (step.seesNorms(*bucket) && dist::BucketOp(bucket->op).getDistinct().has_value() == !suffix.empty())
        alike.push_back(bucket);
    if (alike.empty())
      continue;
    RefAttr all = writeDirections(alike, suffix, directions);
    for (const PlacedBucket *bucket : alike)
      records[bucket] = all;
  }
  for (const PlacedBucket *bucket : own) {
    if (SymbolRefAttr local = kernelOf(step.locals, bucket))
      writeUpdate(*bucket, local).setDirection(true);
    UpdateOp update = step.seesMatrices(*bucket) ? writeMatrixUpdate(*bucket, directions.lookup(bucket))
                                                 : writeUpdate(*bucket, kernelOf(step.kernels, bucket));
    if (RefAttr all = records.lookup(bucket))
      update.setRecordAttr(all);
    if (step.lags)
      keepGradient(*bucket);
  }
}

StepFinisher::Matrices StepFinisher::matricesOf(const PlacedBucket &bucket) const {
  Matrices matrices;
  for (auto range : dist::BucketOp(bucket.op).getRanges().getAsRange<dist::RangeAttr>())
    matrices[step.matrixOf(range)->whole].push_back(range);
  return matrices;
}

/// From slices first; of tensor shards then `holders` whole buckets lie in the order of their ranks.
RefAttr StepFinisher::gatherDirection(const PlacedBucket &bucket, RefAttr own, int64_t holders) {
  auto place = [&](StringRef suffix, int64_t buckets) {
    auto type = MemRefType::get({buckets * bucket.padded}, bucket.gradientType());
    return out.ref(out.buffer(bucket.name() + suffix, type, BufferKind::Buffers));
  };
  RefAttr whole = out.ref(own.getBuffer());
  if (bucket.ranks > 1 && !bucket.wholeStates()) {
    if (!bucket.wholeGradients())
      whole = place(".direction", 1);
    out.emit<GatherOp>(own, whole, bucket.gradientSliceBytes(), TypeAttr(), Traffic::AllGather,
                       out.nextOrder(), bucket.group(), kCommStream);
  }
  if (holders == 1)
    return whole;
  RefAttr all = place(".directions", holders);
  gatherOver(dist::BucketOp(bucket.op).getDistinct()->getParts(), whole, all,
             bytesOf(bucket.padded, bucket.gradientType()));
  return all;
}

/// Where an update sees whole matrices, all ranks gather the direction whole (as many bytes as a gather of
/// fp32 parameters); each makes what the step goes along of the matrices that its slice has a part of, of
/// tensor shards those of all ranks along tp.
UpdateOp StepFinisher::writeMatrixUpdate(const PlacedBucket &bucket, UpdateOp direction) {
  dist::BucketOp op = bucket.op;
  dist::AxesAttr distinct = op.getDistinctAttr();
  int64_t holders = distinct ? dist::getGrid(op).count(distinct.getParts()) : 1;
  int64_t bucketBytes = bytesOf(bucket.padded, bucket.gradientType());
  RefAttr whole = gatherDirection(bucket, cast<RefAttr>(direction.getBuffers()[kUpdateGradient]), holders);
  auto type = MemRefType::get({holders * bucket.padded}, bucket.gradientType());
  RefAttr made = out.ref(out.buffer(bucket.name() + ".matrices", type, BufferKind::Buffers));
  Matrices matrices = matricesOf(bucket);
  WholeStates states = placeWholeStates(matrices, bucket);
  for (const auto &[parameter, ranges] : matrices) {
    const StepBuckets::Matrix &matrix = *step.matrixOf(ranges.front());
    int64_t scratch = matrix.scratch;
    auto type = MemRefType::get({scratch}, IntegerType::get(out.context, 8));
    RefAttr temp =
        scratch ? out.ref(out.buffer("temp." + Twine(scratch), type, BufferKind::Buffers)) : RefAttr();
    SmallVector<Attribute> refs, results;
    for (int64_t holder = 0; holder < holders; ++holder)
      for (dist::RangeAttr range : ranges) {
        int64_t at = holder * bucketBytes + bytesOf(range.getOffset(), bucket.gradientType());
        refs.push_back(shifted(whole, at));
        results.push_back(shifted(made, at));
      }
    // All tables have what a rule takes of whole parameters: that of the first group.
    if (!matrix.states.empty())
      refs.push_back(out.ref(FlatSymbolRefAttr::get(out.context, kScalarsBuffer)));
    for (auto [role, elements] : matrix.states) {
      auto &[buffer, end] = states[role];
      refs.push_back(out.ref(buffer, 0, bytesOf(end, Float32Type::get(out.context))));
      end += llvm::alignTo(elements, dist::kGranule);
    }
    llvm::append_range(refs, results);
    int64_t from = ranges.front().getOffset(), end = ranges.back().getOffset() + ranges.back().getElements();
    out.emit<TransformOp>(matrix.segment.getValue(), bucket.name(), ArrayAttr::get(out.context, refs),
                          end - from, from, direction.getSliced(), temp, kComputeStream);
  }
  UpdateOp update = writeUpdate(bucket, step.kernels.lookup(op.getSymNameAttr()));
  update.setUnpadded(true);
  SmallVector<Attribute> refs(update.getBuffers().begin(), update.getBuffers().end());
  AxisSteps steps{};
  if (direction.getSliced())
    steps = bucket.ownPart(made, bucket.gradientSliceBytes()).getSteps();
  if (holders > 1)
    for (auto [own, more] :
         llvm::zip_equal(steps, dist::getGrid(op).stepsAlong(distinct.getParts(), bucketBytes)))
      own += more;
  refs[kUpdateGradient] = RefAttr::get(out.context, made.getBuffer(), 0, 0, steps);
  update.setBuffersAttr(ArrayAttr::get(out.context, refs));
  return update;
}

StepFinisher::WholeStates StepFinisher::placeWholeStates(const Matrices &matrices,
                                                         const PlacedBucket &bucket) {
  llvm::MapVector<StringAttr, std::pair<int64_t, int64_t>> sizes; ///< padded, and without
  for (const auto &[parameter, ranges] : matrices)
    for (auto [role, elements] : step.matrixOf(ranges.front())->states) {
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
  RefAttr parameters = out.ref(buffers.parameters(bucket));
  refs.push_back(sliced && bucket.wholeParameters() ? bucket.ownPart(parameters, bucket.sliceBytes())
                                                    : parameters);
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
      RefAttr kept = out.ref(buffers.optimizerState(bucket, state, isWhole));
      refs.push_back(isWhole && sliced
                         ? bucket.ownPart(kept, bucket.slice * graph::elementBytes(state.getType()))
                         : kept);
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
