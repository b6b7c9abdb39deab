//===- PlaceCollectives.cpp - gathers, releases and reductions of blocks --===//

#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_PLACECOLLECTIVES
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct PlaceCollectivesPass : dsopt::impl::PlaceCollectivesBase<PlaceCollectivesPass> {
  void runOnOperation() override;
};
} // namespace

void PlaceCollectivesPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  SymbolTable symbols(module);
  DenseMap<StringAttr, dist::BucketOp> bucketOf;
  for (auto bucket : module.getOps<dist::BucketOp>())
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>())
      bucketOf[range.getParameter().getAttr()] = bucket;

  for (auto [number, block] : llvm::enumerate(*blocks))
    for (func::FuncOp function : block.functions()) {
      llvm::SetVector<dist::BucketOp> read, reduced;
      for (StringAttr name : graph::readParameters(function, symbols)) {
        dist::BucketOp bucket = bucketOf.lookup(name);
        if (!bucket) {
          function.emitError("reads parameter @") << name.getValue() << ", which no bucket holds";
          return signalPassFailure();
        }
        read.insert(bucket);
      }
      for (StringAttr name : graph::accumulatedStates(function)) {
        auto state = symbols.lookup<graph::StateOp>(name);
        dist::BucketOp bucket = bucketOf.lookup(state.getParameterAttr().getAttr());
        if (!bucket) {
          function.emitError("accumulates the gradient of ")
              << state.getParameterAttr() << ", which no bucket holds";
          return signalPassFailure();
        }
        reduced.insert(bucket);
      }
      Location loc = function.getLoc();
      OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
      for (dist::BucketOp bucket : read)
        dist::GatherOp::create(builder, loc, bucket.getSymName());
      builder.setInsertionPoint(function.getBody().front().getTerminator());
      for (dist::BucketOp bucket : reduced) {
        int64_t use = llvm::find(bucket.getBlocks(), (int64_t)number) - bucket.getBlocks().begin();
        dist::ReduceOp::create(builder, loc, bucket.getSymName(), use);
      }
      for (dist::BucketOp bucket : read)
        dist::ReleaseOp::create(builder, loc, bucket.getSymName());
    }
}
