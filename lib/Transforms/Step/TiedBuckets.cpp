//===- TiedBuckets.cpp - gradients and parameters of several stages -------===//
//
// Messages of shared parameters are in the order of (bucket, use) on every stream,
// so they cannot cross.
//
//===----------------------------------------------------------------------===//

#include "StepFinisher.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

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

void StepFinisher::writeNewParameters(const PlacedBucket &bucket, int64_t from) {
  // Where ranks are apart none has another one's parameters.
  bool isApart = step.kind == ProgramKind::LocalStep || step.kind == ProgramKind::JoinStep;
  int64_t bytes = isApart ? bucket.sliceBytes() * bucket.ranks : bucket.sliceBytes();
  FlatSymbolRefAttr parameters = buffers.parameters(bucket, bucket.owner == stage);
  RefAttr whole = out.ref(parameters);
  RefAttr slice = bucket.wholeParameters() && !isApart ? bucket.ownPart(whole, bucket.sliceBytes()) : whole;
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
