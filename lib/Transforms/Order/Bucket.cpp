//===- Bucket.cpp - the buffers of a bucket in a program ------------------===//

#include "dsopt/Transforms/Order/Bucket.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

Bucket::Bucket(dist::BucketOp op)
    : op(op), ranks(op.getRanks()), zero(ranks == 1 ? 0 : op.getZero()), slice(op.getSlice()),
      padded(op.getPadded()), elementBytes(graph::elementBytes(op.getType())), frozen(op.getFrozen()),
      sliced(op.isSliced()) {
  for (auto range : op.getRanges().getAsRange<dist::RangeAttr>())
    payload += range.getElements();
}

std::optional<int64_t> Bucket::useOf(int64_t block) const {
  ArrayRef<int64_t> blocks = dist::BucketOp(op).getBlocks();
  const auto *use = llvm::find(blocks, block);
  if (use == blocks.end())
    return std::nullopt;
  return use - blocks.begin();
}

void PlacedBucket::place() {
  stages.clear();
  for (int64_t stage : useStages)
    if (stage >= 0)
      stages.push_back(stage);
  if (stages.empty())
    return;
  owner = stages.front();
  llvm::sort(stages);
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
}

FlatSymbolRefAttr BucketBuffers::declare(const Bucket &bucket, const Twine &suffix, Type type, bool whole,
                                         BufferKind kind, std::optional<BufferRole> role, int64_t use,
                                         StringRef state) {
  int64_t payload = bucket.payload * graph::elementBytes(type);
  ProgramBuilder::BufferTraits traits;
  traits.persistent =
      kind == BufferKind::Optimizer || role == BufferRole::Stored || role == BufferRole::Pending;
  traits.state = state;
  traits.payload = whole ? payload : (payload + bucket.ranks - 1) / bucket.ranks;
  traits.role = role;
  traits.of = bucket.name();
  traits.use = use;
  return out.buffer(bucket.name() + "." + suffix,
                    MemRefType::get({whole ? bucket.padded : bucket.slice}, type), kind, traits);
}

FlatSymbolRefAttr BucketBuffers::parameters(const Bucket &bucket, bool owned) {
  FlatSymbolRefAttr &buffer = known(bucket, Parameters);
  if (!buffer)
    buffer = declare(bucket, "param", dist::BucketOp(bucket.op).getType(), bucket.wholeParameters(),
                     owned ? BufferKind::Parameters : BufferKind::Tied, BufferRole::Stored);
  return buffer;
}

FlatSymbolRefAttr BucketBuffers::wholeParameters(const Bucket &bucket, bool owned) {
  if (bucket.wholeParameters())
    return parameters(bucket, owned);
  FlatSymbolRefAttr &buffer = known(bucket, WholeParameters);
  if (!buffer)
    buffer = declare(bucket, "full", dist::BucketOp(bucket.op).getType(), /*whole=*/true, BufferKind::Buffers,
                     BufferRole::Gathered);
  return buffer;
}

FlatSymbolRefAttr BucketBuffers::optimizerState(const Bucket &bucket, dist::StateAttr state, bool whole) {
  return declare(bucket, state.getRole(), state.getType(), whole || bucket.wholeStates(),
                 BufferKind::Optimizer, BufferRole::State, /*use=*/-1, state.getRole());
}

FlatSymbolRefAttr BucketBuffers::wholeState(const Bucket &bucket, StringRef role, int64_t elements,
                                            int64_t payload) {
  Type type = Float32Type::get(out.context);
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.payload = bytesOf(payload, type);
  traits.role = BufferRole::Kept;
  traits.of = bucket.name();
  traits.state = role;
  return out.buffer(bucket.name() + "." + role, MemRefType::get({elements}, type), BufferKind::Optimizer,
                    traits);
}

FlatSymbolRefAttr BucketBuffers::master(const Bucket &bucket, Type type) {
  return declare(bucket, "master", type, bucket.wholeStates(), BufferKind::Optimizer, BufferRole::Master);
}

FlatSymbolRefAttr BucketBuffers::gradient(const Bucket &bucket, int64_t use) {
  FlatSymbolRefAttr &buffer = known(bucket, Gradient, use);
  if (!buffer)
    buffer = declare(bucket, "grad." + Twine(use), bucket.gradientType(), bucket.wholeGradients(),
                     use == 0 ? BufferKind::Gradients : BufferKind::Tied, BufferRole::Accumulator, use);
  return buffer;
}

FlatSymbolRefAttr BucketBuffers::pendingGradient(const Bucket &bucket) {
  return declare(bucket, "pending", bucket.gradientType(), bucket.wholeStates(), BufferKind::Gradients,
                 BufferRole::Pending);
}

RefAttr BucketBuffers::gradientSlice(const Bucket &bucket, int64_t use) {
  RefAttr whole = out.ref(gradient(bucket, use));
  return bucket.wholeGradients() ? bucket.ownPart(whole, bucket.gradientSliceBytes()) : whole;
}

FlatSymbolRefAttr BucketBuffers::passingGradient(const Bucket &bucket, int64_t use, int64_t depth) {
  FlatSymbolRefAttr &buffer = known(bucket, PassingGradient, use, depth);
  if (!buffer)
    buffer = declare(bucket, "whole." + Twine(use) + "." + Twine(depth), bucket.gradientType(),
                     /*whole=*/true, depth == 0 ? BufferKind::Buffers : BufferKind::Reduction);
  return buffer;
}

FlatSymbolRefAttr BucketBuffers::tiedGradient(const Bucket &bucket, int64_t use, bool whole) {
  return declare(bucket, "tied." + Twine(use), bucket.gradientType(), whole, BufferKind::Tied);
}

bool BucketBuffers::holds(const Bucket &bucket) {
  return out.find(BufferRole::Stored, bucket.name()) != nullptr;
}

bool BucketBuffers::accumulates(const Bucket &bucket, int64_t use) {
  return out.find(BufferRole::Accumulator, bucket.name(), use) != nullptr;
}
