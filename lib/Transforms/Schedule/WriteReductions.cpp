//===- WriteReductions.cpp - gradients along the canonical tree -----------===//
//
// DESIGN 2.1 rule 4. A rank's shards are leaves of a binary tree; their sums lie
// on a stack of whole gradients, and two of the same level are added at once, as
// a binary counter carries. What is left at the end is added from the top, which
// carries odd ones up. Then the ranks' parts are added by one reduction.
//
//===----------------------------------------------------------------------===//

#include "PositionWriter.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

FlatSymbolRefAttr PositionWriter::gradient(BucketInfo &bucket, int64_t use) {
  return bucketBuffer(bucket, "grad." + Twine(use), bucket.gradientType(), bucket.wholeGradients(),
                      use == 0 ? "gradients" : "tied");
}

RefAttr PositionWriter::gradientSlice(BucketInfo &bucket, int64_t use) {
  bool part = bucket.wholeGradients() && bucket.ranks > 1;
  return out.ref(gradient(bucket, use), 0, 0, part ? bucket.gradientSliceBytes() : 0);
}

FlatSymbolRefAttr PositionWriter::wholeGradient(BucketInfo &bucket, int64_t use, int64_t depth,
                                                int64_t index) {
  // The bottom of the stack is the state itself where that is whole and not yet
  // in use for an earlier index.
  if (depth == 0 && bucket.wholeGradients() && (batch.local || index == 0))
    return gradient(bucket, use);
  return bucketBuffer(bucket, "whole." + Twine(use) + "." + Twine(depth), bucket.gradientType(),
                      /*whole=*/true, depth == 0 ? "buffers" : "reduction");
}

FlatSymbolRefAttr PositionWriter::runGradient(BucketInfo &bucket, int64_t use, int64_t p) {
  int64_t id = &bucket - graph.buckets.data();
  return wholeGradient(bucket, use, trees[{id, use}].size(), batch.indexOf(p));
}

void PositionWriter::finishGradient(int64_t id, int64_t use, int64_t p) {
  incomplete.erase({id, use});
  BucketInfo &bucket = graph.buckets[id];
  int64_t index = batch.indexOf(p), shard = batch.shardOf(p);
  if (batch.local && index + 1 < batch.perShard())
    return;
  // Adds the top of the stack to what lies under it.
  SmallVector<int64_t> &levels = trees[{id, use}];
  auto carry = [&] {
    levels.pop_back();
    int64_t depth = levels.size();
    out.emit<AddOp>(out.ref(wholeGradient(bucket, use, depth - 1, index)),
                    out.ref(wholeGradient(bucket, use, depth, index)), bucket.padded, bucket.gradientType(),
                    Stream::Compute);
    ++levels.back();
  };
  levels.push_back(0);
  while (levels.size() > 1 && levels[levels.size() - 2] == levels.back())
    carry();
  if (shard + 1 < batch.shardsPerRank())
    return;
  while (levels.size() > 1)
    carry();
  levels.clear();
  bool adds = !batch.local && index > 0;
  FlatSymbolRefAttr sum = wholeGradient(bucket, use, 0, index);
  if (bucket.ranks > 1)
    out.emit<ReduceOp>(out.ref(sum), gradientSlice(bucket, use), bucket.slice, bucket.gradientType(), adds,
                       out.nextOrder(), Stream::Comm);
  else if (adds)
    out.emit<AddOp>(out.ref(gradient(bucket, use)), out.ref(sum), bucket.padded, bucket.gradientType(),
                    Stream::Compute);
}
