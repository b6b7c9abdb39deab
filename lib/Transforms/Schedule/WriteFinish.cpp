//===- WriteFinish.cpp - from the last gradient to the new parameters -----===//
//
// As soon as a bucket's gradient is complete its norm is taken; without clipping
// it is updated there and then, and the gradient's bytes are free. At the end the
// gradients of parameters shared between stages go to their owner, all ranks
// agree, what is left is updated, new parameters go where they are needed.
// Messages of shared parameters are in the order of (bucket, use) on every stream,
// so they cannot cross.
//
//===----------------------------------------------------------------------===//

#include "PositionWriter.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

void PositionWriter::writeTiedGradients(BucketInfo &bucket) {
  for (int64_t use = 1, uses = bucket.useStages.size(); use < uses; ++use) {
    if (!bucket.accumulated[use])
      continue;
    int64_t from = bucket.useStages[use];
    std::string tag = (bucket.name() + ".grad." + Twine(use)).str();
    if (from != bucket.owner && from == stage)
      out.emit<SendOp>(gradientSlice(bucket, use), bucket.gradientSliceBytes(), bucket.owner, tag, "tied",
                       Stream::Send);
    if (bucket.owner != stage)
      continue;
    RefAttr source;
    if (from == stage) {
      source = gradientSlice(bucket, use);
    } else {
      source =
          out.ref(bucketBuffer(bucket, "tied." + Twine(use), bucket.gradientType(), /*whole=*/false, "tied"));
      out.emit<RecvOp>(source, bucket.gradientSliceBytes(), from, tag, "tied", Stream::Recv);
    }
    out.emit<AddOp>(gradientSlice(bucket, 0), source, bucket.slice, bucket.gradientType(), Stream::Compute);
  }
}

void PositionWriter::writeWholeGradient(BucketInfo &bucket) {
  if (bucket.wholeStates() && bucket.ranks > 1)
    out.emit<GatherOp>(gradientSlice(bucket, 0), out.ref(gradient(bucket, 0)), bucket.gradientSliceBytes(),
                       "all_gather", out.nextOrder(), Stream::Comm);
}

void PositionWriter::writeNorm(BucketInfo &bucket) {
  int64_t owned = llvm::count_if(
      graph.buckets, [&](const BucketInfo &other) { return !other.frozen && other.owner == stage; });
  auto type = MemRefType::get({kNormWords}, IntegerType::get(out.context, 64));
  RefAttr record = out.ref(out.buffer("norms", type, "buffers", {owned, false}), norms.size());
  norms.push_back(record);
  out.emit<NormOp>(gradientSlice(bucket, 0), bucket.name(), record, Stream::Compute);
}

void PositionWriter::completeBucket(BucketInfo &bucket) {
  // What other stages add to or read is finished at the end, in one order.
  if (bucket.frozen || bucket.owner != stage || bucket.stages.size() > 1)
    return;
  if (bucket.ranks == 1)
    return finishBucket(bucket);
  // Its reduction is in flight: the next blocks' runs need not wait for it.
  if (!bucket.shared())
    writeWholeGradient(bucket);
  trailing.push_back(&bucket);
}

void PositionWriter::finishTrailing() {
  for (BucketInfo *bucket : trailing)
    finishBucket(*bucket);
  trailing.clear();
}

void PositionWriter::finishBucket(BucketInfo &bucket) {
  if (bucket.shared()) {
    writeTiedGradients(bucket);
    writeWholeGradient(bucket);
  }
  writeNorm(bucket);
  finished.insert(&bucket);
  if (batch.clip)
    return;
  writeUpdate(bucket);
  writeNewParameters(bucket, bucket.owner);
}

void PositionWriter::writeAgree() {
  SmallVector<Attribute> losses;
  if (graph.values[graph.loss].stage == stage)
    for (int64_t p = 0; p < batch.microBatches; ++p)
      losses.push_back(valueRef(graph.loss, p));
  out.emit<AgreeOp>(ArrayAttr::get(out.context, norms), ArrayAttr::get(out.context, losses), out.nextOrder(),
                    Stream::Comm);
}

RefAttr PositionWriter::statistics() {
  auto type =
      MemRefType::get({batch.microBatches * graph.statisticBytes[stage]}, IntegerType::get(out.context, 8));
  return out.ref(out.buffer("statistics", type, "activations"));
}

void PositionWriter::gatherStatistics() {
  int64_t bytes = batch.microBatches * graph.statisticBytes[stage];
  if (!bytes || batch.ranks == 1)
    return;
  auto type = MemRefType::get({batch.ranks * bytes}, IntegerType::get(out.context, 8));
  out.emit<GatherOp>(statistics(), out.ref(out.buffer("statistics.all", type, "activations")), bytes,
                     "all_gather", out.nextOrder(), Stream::Comm);
}

void PositionWriter::foldStatistics() {
  int64_t bytes = graph.statisticBytes[stage];
  if (!bytes)
    return;
  auto type = MemRefType::get({batch.ranks * batch.microBatches * bytes}, IntegerType::get(out.context, 8));
  RefAttr all = batch.ranks == 1 ? statistics() : out.ref(out.buffer("statistics.all", type, "activations"));
  SmallVector<Attribute> targets;
  SmallVector<int64_t> places, elements;
  SmallVector<double> momenta;
  for (const StatisticInfo &statistic : graph.statistics) {
    if (graph.values[statistic.value].stage != stage)
      continue;
    targets.push_back(
        out.ref(parameters(graph.buckets[statistic.target.bucket]), 0, statistic.target.offset));
    places.push_back(graph.values[statistic.value].statistic);
    elements.push_back(statistic.elements);
    momenta.push_back(statistic.momentum);
  }
  out.emit<FoldOp>(all, ArrayAttr::get(out.context, targets), places, elements,
                   Builder(out.context).getF64ArrayAttr(momenta), bytes, Stream::Compute);
}

void PositionWriter::sendStatistics() {
  for (const StatisticInfo &statistic : graph.statistics) {
    BucketInfo &bucket = graph.buckets[statistic.target.bucket];
    if (bucket.stages.size() > 1 && isHere(bucket))
      writeNewParameters(bucket, graph.values[statistic.value].stage);
  }
}

void PositionWriter::writeUpdate(BucketInfo &bucket) {
  // At stages 1 and 2 the parameters are whole and the optimizer's state is not;
  // at stage 1 the gradient is whole as well.
  bool sliced = !bucket.wholeStates();
  SmallVector<Attribute> refs;
  refs.push_back(
      out.ref(parameters(bucket), 0, 0, sliced && bucket.wholeParameters() ? bucket.sliceBytes() : 0));
  refs.push_back(out.ref(gradient(bucket, 0), 0, 0,
                         sliced && bucket.wholeGradients() ? bucket.gradientSliceBytes() : 0));
  if (auto states = bucket.op.getStates())
    for (auto name : states->getAsRange<StringAttr>())
      refs.push_back(out.ref(optimizerState(bucket, name.getValue())));
  out.emit<UpdateOp>(bucket.updateKernel.getValue(), bucket.name(), ArrayAttr::get(out.context, refs),
                     sliced ? bucket.slice : bucket.padded, sliced, Stream::Compute);
}

void PositionWriter::writeNewParameters(BucketInfo &bucket, int64_t from) {
  int64_t part = bucket.wholeParameters() && bucket.ranks > 1 ? bucket.sliceBytes() : 0;
  RefAttr slice = out.ref(parameters(bucket), 0, 0, part), whole = out.ref(parameters(bucket));
  std::string tag = (bucket.name() + ".param").str();
  auto gather = [&](StringRef traffic) {
    out.emit<GatherOp>(slice, whole, bucket.sliceBytes(), traffic, out.nextOrder(), Stream::Comm);
  };
  if (from == stage) {
    for (int64_t other : bucket.stages)
      if (other != stage)
        out.emit<SendOp>(slice, bucket.sliceBytes(), other, tag, "tied", Stream::Send);
    if (bucket.ranks > 1 && bucket.wholeParameters() && !bucket.wholeStates())
      gather("all_gather");
    return;
  }
  out.emit<RecvOp>(slice, bucket.sliceBytes(), from, tag, "tied", Stream::Recv);
  if (bucket.ranks > 1 && bucket.wholeParameters())
    gather("tied");
}

void PositionWriter::writeFinish() {
  finishTrailing();
  SmallVector<BucketInfo *> rest, updates;
  for (BucketInfo &bucket : graph.buckets)
    if (!bucket.frozen && isHere(bucket)) {
      if (!finished.contains(&bucket))
        rest.push_back(&bucket);
      if (batch.clip || !finished.contains(&bucket))
        updates.push_back(&bucket);
    }
  for (BucketInfo *bucket : rest)
    writeTiedGradients(*bucket);
  for (BucketInfo *bucket : rest)
    if (bucket->owner == stage) {
      writeWholeGradient(*bucket);
      writeNorm(*bucket);
    }
  gatherStatistics();
  writeAgree();
  foldStatistics();
  sendStatistics();
  for (BucketInfo *bucket : updates)
    if (bucket->owner == stage)
      writeUpdate(*bucket);
  for (BucketInfo *bucket : updates)
    writeNewParameters(*bucket, bucket->owner);
}
