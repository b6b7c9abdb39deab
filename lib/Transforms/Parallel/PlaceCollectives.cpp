//===- PlaceCollectives.cpp - gathers, releases and reductions of blocks --===//

#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_PLACECOLLECTIVES
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// Parameters or gradients by their bucket, in the order of their first use.
using ByBucket = llvm::MapVector<dist::BucketOp, SmallVector<Attribute>>;

struct PlaceCollectivesPass : dsopt::impl::PlaceCollectivesBase<PlaceCollectivesPass> {
  void runOnOperation() override;

private:
  LogicalResult collectAccumulated(func::FuncOp function, SymbolTable &symbols);
  LogicalResult passGathered(func::FuncOp function, SymbolTable &symbols);
  void placeAround(func::FuncOp function, SymbolTable &symbols);

  DenseMap<StringAttr, dist::BucketOp> bucketOf;
  /// What each block function takes behind its other arguments, and accumulates over several ranks.
  llvm::DenseMap<StringAttr, ByBucket> gathered, accumulated;
};
} // namespace

LogicalResult PlaceCollectivesPass::collectAccumulated(func::FuncOp function, SymbolTable &symbols) {
  for (StringAttr name : graph::accumulatedStates(function)) {
    FlatSymbolRefAttr parameter = symbols.lookup<graph::StateOp>(name).getParameterAttr();
    dist::BucketOp bucket = bucketOf.lookup(parameter.getAttr());
    if (!bucket)
      return function.emitError("accumulates the gradient of ") << parameter << ", which no bucket holds";
    if (bucket.getRanks() > 1)
      accumulated[function.getSymNameAttr()][bucket].push_back(FlatSymbolRefAttr::get(name));
  }
  return success();
}

/// Parameters of which this rank holds a slice alone become arguments.
LogicalResult PlaceCollectivesPass::passGathered(func::FuncOp function, SymbolTable &symbols) {
  ByBucket &wanted = gathered[function.getSymNameAttr()];
  DenseMap<StringAttr, SmallVector<graph::ReadOp>> reads;
  for (StringAttr name : graph::readParameters(function, symbols)) {
    dist::BucketOp bucket = bucketOf.lookup(name);
    if (!bucket)
      return function.emitError("reads parameter @") << name.getValue() << ", which no bucket holds";
    if (bucket.isSliced())
      wanted[bucket].push_back(FlatSymbolRefAttr::get(name));
  }
  function.walk([&](graph::ReadOp read) { reads[read.getStateAttr().getAttr()].push_back(read); });
  for (auto &[bucket, parameters] : wanted)
    for (Attribute parameter : parameters) {
      ArrayRef<graph::ReadOp> places = reads[cast<FlatSymbolRefAttr>(parameter).getAttr()];
      unsigned index = function.getNumArguments();
      graph::ReadOp first = places.front();
      if (failed(function.insertArgument(index, first.getType(), DictionaryAttr(), first.getLoc())))
        return failure();
      for (graph::ReadOp read : places) {
        read.replaceAllUsesWith(function.getArgument(index));
        read.erase();
      }
    }
  return success();
}

/// Gathers before each run what it takes, and reduces gradients behind the last run that adds to them.
void PlaceCollectivesPass::placeAround(func::FuncOp function, SymbolTable &symbols) {
  OpBuilder builder(function.getContext());
  bool quantizes = options::gather_type(getOperation()) == "int8";
  struct Use {
    graph::RunOp last;
    llvm::SetVector<Attribute> gradients;
  };
  llvm::MapVector<std::pair<dist::BucketOp, int64_t>, Use> uses;
  for (auto run : llvm::to_vector(function.getBody().getOps<graph::RunOp>())) {
    auto callee = symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
    for (auto &[bucket, parameters] : gathered[callee.getSymNameAttr()]) {
      auto types = callee.getArgumentTypes().slice(run.getInputs().size(), parameters.size());
      builder.setInsertionPoint(run);
      auto wire = quantizes && bucket.getRanks() > 1 ? TypeAttr::get(builder.getI8Type()) : TypeAttr();
      auto gather = dist::GatherOp::create(builder, run.getLoc(), types, bucket.getSymName(),
                                           builder.getArrayAttr(parameters), bucket.getAxes(), wire);
      run.getInputsMutable().append(gather.getValues());
      builder.setInsertionPointAfter(run);
      dist::ReleaseOp::create(builder, run.getLoc(), gather.getValues());
    }
    auto number = callee->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    for (auto &[bucket, gradients] : accumulated[callee.getSymNameAttr()]) {
      Use &use = uses[{bucket, number.getInt()}];
      use.last = run;
      use.gradients.insert(gradients.begin(), gradients.end());
    }
  }
  auto order = *dist::symbolizeReductionOrder(options::reduction(getOperation()));
  bool inPairs = options::reduce_type(getOperation()) == "int4";
  bool compresses = options::compress_gradients(getOperation()) != "none";
  DenseMap<Operation *, Operation *> ends; ///< the last reduction behind a run
  for (auto &[key, use] : uses) {
    dist::BucketOp bucket = key.first;
    Operation *&end = ends.try_emplace(use.last, use.last).first->second;
    builder.setInsertionPointAfter(end);
    // What blocks share may lie on several stages, of which one has the state: it goes whole in all layouts.
    bool byMethod = inPairs || (compresses && bucket.getBlocks().size() == 1);
    int64_t index = llvm::find(bucket.getBlocks(), key.second) - bucket.getBlocks().begin();
    end =
        dist::ReduceOp::create(builder, use.last.getLoc(), bucket.getSymName(), index,
                               builder.getArrayAttr(use.gradients.getArrayRef()), bucket.getAxes(),
                               inPairs ? builder.getIntegerType(4) : bucket.getGradientType(),
                               byMethod ? ReductionMethod::AllToAll : ReductionMethod::ReduceScatter, order);
  }
}

void PlaceCollectivesPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  SymbolTable symbols(module);
  for (auto bucket : module.getOps<dist::BucketOp>())
    for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>())
      bucketOf[range.getParameter().getAttr()] = bucket;
  for (const graph::Block &block : *blocks)
    for (func::FuncOp function : block.functions())
      if (failed(passGathered(function, symbols)) || failed(collectAccumulated(function, symbols)))
        return signalPassFailure();
  for (auto function : module.getOps<func::FuncOp>())
    placeAround(function, symbols);
  bucketOf.clear();
  gathered.clear();
  accumulated.clear();
}
