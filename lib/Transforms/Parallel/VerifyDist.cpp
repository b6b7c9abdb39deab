//===- VerifyDist.cpp - what holds after stage 4 --------------------------===//

#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYDIST
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct VerifyDistPass : dsopt::impl::VerifyDistBase<VerifyDistPass> {
  void runOnOperation() override;

private:
  LogicalResult verifyStages(MutableArrayRef<graph::Block> blocks);
  LogicalResult verifyFunction(func::FuncOp function, int64_t block);

  DenseMap<StringAttr, dist::BucketOp> bucketOf;
};
} // namespace

LogicalResult VerifyDistPass::verifyStages(MutableArrayRef<graph::Block> blocks) {
  int64_t last = 0;
  for (graph::Block &block : blocks) {
    int64_t here = -1;
    for (func::FuncOp function : block.functions()) {
      auto stage = function->getAttrOfType<IntegerAttr>(dist::kStageAttr);
      if (!stage)
        return function.emitError("has no pipeline stage, expected the attribute ") << dist::kStageAttr;
      if (here >= 0 && here != stage.getInt()) {
        InFlightDiagnostic diag = function.emitError("is on stage ")
                                  << stage.getInt() << ", expected the stage of its block's other phases, "
                                  << here;
        diag.attachNote(block.functions().front().getLoc()) << "the other phase is here";
        return diag;
      }
      here = stage.getInt();
    }
    if (here != last && here != last + 1)
      return block.functions().front().emitError("is on stage ")
             << here << ", expected " << last << " or " << last + 1 << ": stages are runs of blocks";
    last = here;
  }
  return success();
}

LogicalResult VerifyDistPass::verifyFunction(func::FuncOp function, int64_t block) {
  SymbolTable symbols(getOperation());
  llvm::MapVector<StringAttr, dist::GatherOp> open;
  llvm::DenseSet<StringAttr> gathered, reduced;
  for (Operation &op : function.getBody().front()) {
    if (auto gather = dyn_cast<dist::GatherOp>(op)) {
      open[gather.getBucketAttr().getAttr()] = gather;
      gathered.insert(gather.getBucketAttr().getAttr());
    } else if (auto release = dyn_cast<dist::ReleaseOp>(op)) {
      if (!open.erase(release.getBucketAttr().getAttr()))
        return release.emitOpError("releases ") << release.getBucketAttr() << ", which is not gathered here";
    } else if (auto reduce = dyn_cast<dist::ReduceOp>(op)) {
      reduced.insert(reduce.getBucketAttr().getAttr());
    } else if (auto read = dyn_cast<graph::ReadOp>(op)) {
      dist::BucketOp bucket = bucketOf.lookup(read.getStateAttr().getAttr());
      if (!bucket)
        return read.emitOpError("reads ") << read.getStateAttr() << ", which no bucket holds";
      if (!open.count(bucket.getSymNameAttr())) {
        InFlightDiagnostic diag = read.emitOpError("reads ") << read.getStateAttr() << " while @"
                                                             << bucket.getSymName() << " is not gathered";
        diag.attachNote(bucket.getLoc()) << "the bucket is here";
        return diag;
      }
      if (!llvm::is_contained(bucket.getBlocks(), block)) {
        InFlightDiagnostic diag = read.emitOpError("is in block ")
                                  << block << ", which its bucket does not list";
        diag.attachNote(bucket.getLoc()) << "the bucket is here";
        return diag;
      }
    }
  }
  if (!open.empty())
    return open.front().second.emitOpError("is never released");
  for (StringAttr name : graph::accumulatedStates(function)) {
    auto state = symbols.lookup<graph::StateOp>(name);
    dist::BucketOp bucket = bucketOf.lookup(state.getParameterAttr().getAttr());
    if (!bucket || !reduced.contains(bucket.getSymNameAttr()))
      return function.emitError("accumulates @") << name.getValue() << ", which is never reduced";
  }
  return success();
}

void VerifyDistPass::runOnOperation() {
  for (auto bucket : getOperation().getOps<dist::BucketOp>())
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
      auto [entry, inserted] = bucketOf.try_emplace(range.getParameter().getAttr(), bucket);
      if (inserted)
        continue;
      InFlightDiagnostic diag = bucket.emitOpError("holds ")
                                << range.getParameter() << ", which lies in another too";
      diag.attachNote(entry->second.getLoc()) << "the other is here";
      return signalPassFailure();
    }
  auto blocks = graph::collectBlocks(getOperation());
  if (failed(blocks) || failed(verifyStages(*blocks)))
    return signalPassFailure();
  for (auto [number, block] : llvm::enumerate(*blocks))
    for (func::FuncOp function : block.functions())
      if (failed(verifyFunction(function, number)))
        return signalPassFailure();
  bucketOf.clear();
}
