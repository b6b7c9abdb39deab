//===- WriteFinish.cpp - from the last gradient to the new parameters -----===//
//
// Gradients of shared parameters go to their owner, all ranks agree, owners
// update, new parameters go where they are needed. Messages of shared parameters
// are in the order of (bucket, use) on every stream, so they cannot cross.
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
      out.emit<SendOp>(gradientSlice(bucket, use), bucket.sliceBytes(), bucket.owner, tag, "tied",
                       Stream::Send);
    if (bucket.owner != stage)
      continue;
    RefAttr source;
    if (from == stage) {
      source = gradientSlice(bucket, use);
    } else {
      source = out.ref(out.buffer(bucket.name() + ".tied." + Twine(use), flat(bucket, false), "tied",
                                  {1, false, payload(bucket, false)}));
      out.emit<RecvOp>(source, bucket.sliceBytes(), from, tag, "tied", Stream::Recv);
    }
    out.emit<AddOp>(gradientSlice(bucket, 0), source, bucket.slice, bucket.op.getType(), Stream::Compute);
  }
}

void PositionWriter::writeAgree() {
  SmallVector<Attribute> gradients, names, losses;
  for (BucketInfo &bucket : graph.buckets) {
    if (bucket.frozen || bucket.owner != stage)
      continue;
    gradients.push_back(gradientSlice(bucket, 0));
    names.push_back(FlatSymbolRefAttr::get(bucket.op.getSymNameAttr()));
  }
  if (graph.values[graph.loss].stage == stage)
    for (int64_t p = 0; p < batch.microBatches; ++p)
      losses.push_back(valueRef(graph.loss, p));
  auto array = [&](ArrayRef<Attribute> list) { return ArrayAttr::get(out.context, list); };
  out.emit<AgreeOp>(array(gradients), array(names), array(losses), out.nextOrder(), Stream::Comm);
}

void PositionWriter::writeUpdate(BucketInfo &bucket) {
  // At stages 1 and 2 the parameters are whole and the optimizer's state is not;
  // at stage 1 the gradient is whole as well.
  bool sliced = !bucket.wholeStates();
  int64_t part = bucket.sliceBytes();
  SmallVector<Attribute> refs;
  refs.push_back(out.ref(parameters(bucket), 0, 0, sliced && bucket.wholeParameters() ? part : 0));
  refs.push_back(out.ref(gradient(bucket, 0), 0, 0, sliced && bucket.wholeGradients() ? part : 0));
  if (auto states = bucket.op.getStates())
    for (auto name : states->getAsRange<StringAttr>())
      refs.push_back(out.ref(out.buffer(bucket.name() + "." + name.getValue(), flat(bucket, !sliced),
                                        "optimizer", {1, true, payload(bucket, !sliced)})));
  out.emit<UpdateOp>(graph.updateKernel.getValue(), bucket.name(), ArrayAttr::get(out.context, refs),
                     sliced ? bucket.slice : bucket.padded, sliced, Stream::Compute);
}

void PositionWriter::writeNewParameters(BucketInfo &bucket) {
  int64_t part = bucket.wholeParameters() && bucket.ranks > 1 ? bucket.sliceBytes() : 0;
  RefAttr slice = out.ref(parameters(bucket), 0, 0, part), whole = out.ref(parameters(bucket));
  std::string tag = (bucket.name() + ".param").str();
  auto gather = [&](StringRef traffic) {
    out.emit<GatherOp>(slice, whole, bucket.sliceBytes(), traffic, out.nextOrder(), Stream::Comm);
  };
  if (bucket.owner == stage) {
    for (int64_t other : bucket.stages)
      if (other != stage)
        out.emit<SendOp>(slice, bucket.sliceBytes(), other, tag, "tied", Stream::Send);
    if (bucket.ranks > 1 && bucket.wholeParameters() && !bucket.wholeStates())
      gather("all_gather");
    return;
  }
  out.emit<RecvOp>(slice, bucket.sliceBytes(), bucket.owner, tag, "tied", Stream::Recv);
  if (bucket.ranks > 1 && bucket.wholeParameters())
    gather("tied");
}

void PositionWriter::writeFinish() {
  SmallVector<BucketInfo *> trained;
  for (BucketInfo &bucket : graph.buckets)
    if (!bucket.frozen && isHere(bucket))
      trained.push_back(&bucket);
  for (BucketInfo *bucket : trained)
    writeTiedGradients(*bucket);
  for (BucketInfo *bucket : trained)
    if (bucket->owner == stage && bucket->wholeStates() && bucket->ranks > 1)
      out.emit<GatherOp>(gradientSlice(*bucket, 0), out.ref(gradient(*bucket, 0)), bucket->sliceBytes(),
                         "all_gather", out.nextOrder(), Stream::Comm);
  writeAgree();
  for (BucketInfo *bucket : trained)
    if (bucket->owner == stage)
      writeUpdate(*bucket);
  for (BucketInfo *bucket : trained)
    writeNewParameters(*bucket);
}
