//===- VerifyDist.cpp - what holds after stage 4 --------------------------===//

#include "ParameterUses.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_VERIFYDIST
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
class DistVerifier {
public:
  explicit DistVerifier(ModuleOp module) : module(module), symbols(module) {}
  LogicalResult verify();

private:
  LogicalResult verifyBuckets();
  LogicalResult verifyStages(MutableArrayRef<graph::Block> blocks);
  LogicalResult verifyReads(func::FuncOp function, int64_t block);
  LogicalResult verifyGather(dist::GatherOp gather);
  LogicalResult verifyRuns(func::FuncOp function);
  func::FuncOp calleeOf(graph::RunOp run) {
    return symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
  }

  ModuleOp module;
  SymbolTable symbols;
  DenseMap<StringAttr, dist::BucketOp> bucketOf;
};

struct VerifyDistPass : dsopt::impl::VerifyDistBase<VerifyDistPass> {
  void runOnOperation() override {
    if (failed(DistVerifier(getOperation()).verify()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

/// An error about a bucket, which lies elsewhere.
static InFlightDiagnostic noted(InFlightDiagnostic &&diag, dist::BucketOp bucket) {
  diag.attachNote(bucket.getLoc()) << "the bucket is here";
  return std::move(diag);
}

LogicalResult DistVerifier::verifyStages(MutableArrayRef<graph::Block> blocks) {
  int64_t last = 0;
  DenseMap<int64_t, int64_t> stages; ///< of chunks
  for (graph::Block &block : blocks) {
    int64_t here = -1, chunk = -1;
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
      int64_t own = *dist::getChunk(function);
      if (here >= 0 && chunk != own)
        return function.emitError("is of chunk ")
               << own << ", expected the chunk of its block's other phases, " << chunk;
      here = stage.getInt();
      chunk = own;
    }
    func::FuncOp first = block.functions().front();
    StringRef what = first->hasAttr(dist::kChunkAttr) ? "chunk" : "stage";
    if (chunk != last && chunk != last + 1)
      return first.emitError("is on ") << what << " " << chunk << ", expected " << last << " or " << last + 1
                                       << ": " << what << "s are runs of blocks";
    if (int64_t stage = stages.try_emplace(chunk, here).first->second; stage != here)
      return first.emitError("is on stage ")
             << here << ", but its chunk " << chunk << " is on stage " << stage << ", expected one";
    last = chunk;
  }
  for (WholeTiles tiles : findWholeTiles(module, blocks, symbols)) {
    func::FuncOp first = blocks[tiles.first].functions().front(),
                 end = blocks[tiles.last].functions().front();
    if (first->getAttr(dist::kStageAttr) == end->getAttr(dist::kStageAttr))
      continue;
    InFlightDiagnostic diag = end.emitError("is on stage ")
                              << end->getAttrOfType<IntegerAttr>(dist::kStageAttr).getInt()
                              << " and has a tile of @" << tiles.parameter.getValue()
                              << ", expected the stage of the first, as " << tiles.rule.getRuleName()
                              << " sees " << describe(tiles.rule.getScope());
    diag.attachNote(first.getLoc()) << "the first is here";
    return diag;
  }
  return success();
}

/// What a block reads by name is whole on this rank, and its bucket knows of the block.
LogicalResult DistVerifier::verifyReads(func::FuncOp function, int64_t block) {
  for (auto read : function.getBody().getOps<graph::ReadOp>()) {
    dist::BucketOp bucket = bucketOf.lookup(read.getStateAttr().getAttr());
    if (!bucket)
      return read.emitOpError("reads ") << read.getStateAttr() << ", which no bucket holds";
    if (bucket.isSliced())
      return noted(read.emitOpError("reads ")
                       << read.getStateAttr() << ", of which each of " << (int64_t)bucket.getRanks()
                       << " ranks holds a slice, expected a value of dist.gather as an argument",
                   bucket);
    if (!llvm::is_contained(bucket.getBlocks(), block))
      return noted(read.emitOpError("is in block ") << block << ", which its bucket does not list", bucket);
  }
  return success();
}

/// A gather serves runs of one stage, all of them in front of its release.
LogicalResult DistVerifier::verifyGather(dist::GatherOp gather) {
  dist::ReleaseOp release;
  for (Operation *user : gather->getUsers())
    if (auto found = dyn_cast<dist::ReleaseOp>(user)) {
      if (release && release != found) {
        if (found->isBeforeInBlock(release))
          std::swap(found, release);
        InFlightDiagnostic diag = found.emitOpError("releases @") << gather.getBucket() << " a second time";
        diag.attachNote(release.getLoc()) << "the first release is here";
        return diag;
      }
      release = found;
    }
  if (!release)
    return gather.emitOpError("is never released");
  auto bucket = symbols.lookup<dist::BucketOp>(gather.getBucketAttr().getAttr());
  if (!bucket.isSliced())
    return noted(gather.emitOpError("gathers what is whole on every rank"), bucket);
  IntegerAttr stage;
  for (Operation *user : gather->getUsers()) {
    if (user == release)
      continue;
    auto run = dyn_cast<graph::RunOp>(user);
    if (!run || release->isBeforeInBlock(run)) {
      InFlightDiagnostic diag = user->emitOpError("uses a value of a gather ")
                                << (run ? "behind its release" : "outside of a run");
      diag.attachNote(gather.getLoc()) << "the gather is here";
      return diag;
    }
    func::FuncOp callee = calleeOf(run);
    auto block = callee->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    auto here = callee->getAttrOfType<IntegerAttr>(dist::kStageAttr);
    if (!block || !llvm::is_contained(bucket.getBlocks(), block.getInt()))
      return noted(run.emitOpError("takes values of @")
                       << bucket.getSymName() << ", which does not list block " << block,
                   bucket);
    if (stage && stage != here)
      return gather.emitOpError("serves stages ")
             << stage.getInt() << " and " << here.getInt() << ", expected one: each stage gathers for itself";
    stage = here;
  }
  return success();
}

/// Each gradient that ranks have parts of is reduced once, behind the last run that adds to it.
LogicalResult DistVerifier::verifyRuns(func::FuncOp function) {
  struct Gradient {
    graph::RunOp run; ///< the first that adds to it
    dist::ReduceOp reduce;
  };
  llvm::MapVector<Attribute, Gradient> gradients; ///< by state, of several ranks
  for (Operation &op : function.getBody().getOps()) {
    if (auto gather = dyn_cast<dist::GatherOp>(op)) {
      if (failed(verifyGather(gather)))
        return failure();
    } else if (auto run = dyn_cast<graph::RunOp>(op)) {
      for (StringAttr name : graph::accumulatedStates(calleeOf(run))) {
        auto state = FlatSymbolRefAttr::get(name);
        if (dist::ReduceOp earlier = gradients.lookup(state).reduce) {
          InFlightDiagnostic diag = run.emitOpError("adds to ") << state << " behind its reduction";
          diag.attachNote(earlier.getLoc()) << "the reduction is here";
          return diag;
        }
        auto op = symbols.lookup<graph::StateOp>(name);
        dist::BucketOp bucket = op ? bucketOf.lookup(op.getParameterAttr().getAttr()) : dist::BucketOp();
        if (!bucket)
          return run.emitOpError("adds to ") << state << ", the gradient of what no bucket holds";
        if (bucket.getRanks() > 1)
          gradients.try_emplace(state, Gradient{run, {}});
      }
    } else if (auto reduce = dyn_cast<dist::ReduceOp>(op)) {
      for (Attribute state : reduce.getGradients()) {
        auto gradient = gradients.find(state);
        if (gradient == gradients.end() || gradient->second.reduce)
          return reduce.emitOpError("takes ") << state << ", which no run before it adds to";
        gradient->second.reduce = reduce;
      }
    }
  }
  for (auto &[state, gradient] : gradients)
    if (!gradient.reduce)
      return gradient.run.emitOpError("adds to ") << state << ", which is never reduced";
  return success();
}

/// In what parameters differ that one bucket may not hold; nothing where it may.
static StringRef differs(graph::ParameterOp one, graph::ParameterOp other) {
  if (!one || !other)
    return "";
  return one.getFrozen() != other.getFrozen()         ? "frozen"
         : one.getStatistic() != other.getStatistic() ? "statistic"
         : one.getBranch() != other.getBranch()       ? "branch"
         : getElementTypeOrSelf(graph::storedType(one)) != getElementTypeOrSelf(graph::storedType(other))
             ? "element type"
             : "";
}

LogicalResult DistVerifier::verifyBuckets() {
  for (auto bucket : module.getOps<dist::BucketOp>()) {
    graph::ParameterOp first;
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
      auto [entry, inserted] = bucketOf.try_emplace(range.getParameter().getAttr(), bucket);
      if (inserted) {
        auto parameter = symbols.lookup<graph::ParameterOp>(range.getParameter().getAttr());
        if (!first)
          first = parameter;
        if (parameter && parameter.getPartRuns().has_value() != bucket.getDistinct().has_value())
          return bucket.emitOpError("holds @")
                 << parameter.getSymName() << ", of which ranks along tp have "
                 << (parameter.getPartRuns() ? "shards: expected it to be distinct over [tp]"
                                             : "the same: expected it not to be distinct");
        if (StringRef fact = differs(first, parameter); !fact.empty())
          return bucket.emitOpError("holds @")
                 << first.getSymName() << " and @" << parameter.getSymName() << ", which differ in " << fact
                 << ": expected one bucket of each";
        continue;
      }
      InFlightDiagnostic diag = bucket.emitOpError("holds ")
                                << range.getParameter() << ", which lies in another too";
      diag.attachNote(entry->second.getLoc()) << "the other is here";
      return diag;
    }
  }
  return success();
}

LogicalResult DistVerifier::verify() {
  auto blocks = graph::collectBlocks(module);
  if (failed(verifyBuckets()) || failed(blocks) || failed(verifyStages(*blocks)))
    return failure();
  for (auto [number, block] : llvm::enumerate(*blocks))
    for (func::FuncOp function : block.functions())
      if (failed(verifyReads(function, number)))
        return failure();
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(verifyRuns(function)))
      return failure();
  return success();
}
