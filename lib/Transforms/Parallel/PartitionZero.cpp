//===- PartitionZero.cpp - parameters and their state into sliced buckets -===//

#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Parallel/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace dsopt {
#define GEN_PASS_DEF_PARTITIONZERO
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// A bucket while it is filled.
struct Bucket {
  SmallVector<int64_t> blocks;
  SmallVector<graph::ParameterOp> parameters;
  bool frozen = false;
  bool statistics = false; ///< folded at the end of a step: whole on every rank
  Type element, gradient;  ///< null gradient: f32
};

struct PartitionZeroPass : dsopt::impl::PartitionZeroBase<PartitionZeroPass> {
  using PartitionZeroBase::PartitionZeroBase;
  void runOnOperation() override;
};
} // namespace

/// Which blocks read each parameter, ascending.
static llvm::MapVector<StringAttr, SmallVector<int64_t>> findReaders(ArrayRef<graph::Block> blocks,
                                                                     SymbolTable &symbols) {
  llvm::MapVector<StringAttr, SmallVector<int64_t>> readers;
  for (auto [number, block] : llvm::enumerate(blocks))
    for (func::FuncOp function : block.functions())
      for (StringAttr name : graph::readParameters(function, symbols))
        if (auto &list = readers[name]; list.empty() || list.back() != (int64_t)number)
          list.push_back(number);
  return readers;
}

/// Statistics that nothing reads, which are overwritten before, belong to the block that makes their new
/// value.
static void addUnread(ModuleOp module, SymbolTable &symbols,
                      llvm::MapVector<StringAttr, SmallVector<int64_t>> &readers) {
  for (auto function : module.getOps<func::FuncOp>())
    for (const graph::Statistic &statistic : graph::statisticsOf(function)) {
      Operation *terminator = function.getBody().front().getTerminator();
      auto run = terminator->getOperand(statistic.result).getDefiningOp<graph::RunOp>();
      auto block = run ? symbols.lookup<func::FuncOp>(run.getCallee()) : func::FuncOp();
      auto number = block ? block->getAttrOfType<IntegerAttr>(graph::kBlockAttr) : IntegerAttr();
      if (number && !readers.count(statistic.parameter.getAttr()))
        readers[statistic.parameter.getAttr()] = {number.getInt()};
    }
}

/// Parameters whose gradient is complete at the end of phase F (the loss's own weight).
static llvm::DenseSet<StringAttr> findEarly(ArrayRef<graph::Block> blocks, SymbolTable &symbols) {
  llvm::DenseSet<StringAttr> early;
  for (const graph::Block &block : blocks)
    for (func::FuncOp function : block.functions())
      if (graph::getPhase(function) == Phase::F)
        for (StringAttr state : graph::accumulatedStates(function))
          early.insert(symbols.lookup<graph::StateOp>(state).getParameterAttr().getAttr());
  return early;
}

void PartitionZeroPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  int64_t dp = takeOption(module, "dp", ranks, /*unset=*/0, 1);
  int64_t zero = takeOption(module, "zero", stage, /*unset=*/-1, 0);
  if (dp < 1 || zero > 3) {
    module.emitError("cannot partition by ZeRO stage ")
        << zero << " over " << dp << " ranks: expected a stage of 0 to 3 and a rank or more";
    return signalPassFailure();
  }
  // What is alone has everything, but for what it fetches.
  if (dp == 1 && getOption(module, "offload_params", StringRef("none")) == "none")
    zero = 0;

  SymbolTable symbols(module);
  auto readers = findReaders(*blocks, symbols);
  addUnread(module, symbols, readers);
  llvm::DenseSet<StringAttr> early = findEarly(*blocks, symbols);
  llvm::MapVector<StringAttr, SmallVector<Attribute>> states;
  llvm::DenseMap<StringAttr, Type> gradients; // that are no f32
  llvm::DenseMap<StringAttr, TypeAttr> masters;
  for (auto state : module.getOps<graph::StateOp>()) {
    StringAttr parameter = state.getParameterAttr().getAttr();
    Type element = getElementTypeOrSelf(state.getType());
    if (state.getRole() == graph::Role::Master)
      masters[parameter] = TypeAttr::get(element);
    else if (state.getRole() == graph::Role::Optimizer)
      states[parameter].push_back(dist::StateAttr::get(module.getContext(), *state.getName(), element));
    else if (!element.isF32())
      gradients[parameter] = element;
  }
  llvm::MapVector<StringAttr, Bucket> buckets;
  Builder attributes(module.getContext());
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    auto reader = readers.find(parameter.getSymNameAttr());
    if (reader == readers.end())
      continue;
    Type element = cast<ShapedType>(graph::storedType(parameter)).getElementType();
    if (!element.isF32() && !element.isBF16() && !parameter.getFrozen()) {
      parameter.emitError("parameter has elements of type ")
          << element << ", only f32 and bf16 are trained yet";
      return signalPassFailure();
    }
    bool shared = reader->second.size() > 1;
    SmallString<32> name;
    if (shared)
      (llvm::Twine(parameter.getFrozen() ? "frozen." : "tied.") + parameter.getSymName()).toVector(name);
    else
      (llvm::Twine("b") + llvm::Twine(reader->second.front())).toVector(name);
    if (parameter.getFrozen() && !shared)
      name += ".frozen";
    bool isStatistic = parameter->hasAttr(graph::kStatisticAttr);
    if (isStatistic)
      name += ".statistics";
    // Sums of one bucket are complete at one time.
    if (!shared && early.contains(parameter.getSymNameAttr()))
      name += ".loss";
    if (parameter.getFrozen() && !element.isF32()) {
      name += '.';
      llvm::raw_svector_ostream(name) << element;
    }
    // A bucket is of one type, and so are its gradients.
    Type gradient = gradients.lookup(parameter.getSymNameAttr());
    auto differs = [&](const Bucket &other) {
      return other.element && (other.element != element || other.gradient != gradient);
    };
    for (auto other = buckets.find(attributes.getStringAttr(name));
         other != buckets.end() && differs(other->second);
         other = buckets.find(attributes.getStringAttr(name))) {
      name += '.';
      llvm::raw_svector_ostream(name) << element;
    }
    Bucket &bucket = buckets[attributes.getStringAttr(name)];
    bucket.blocks = reader->second;
    bucket.element = element;
    bucket.gradient = gradient;
    bucket.frozen = parameter.getFrozen();
    bucket.statistics = isStatistic;
    bucket.parameters.push_back(parameter);
  }

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (Operation &op : *module.getBody())
    if (isa<graph::ParameterOp, graph::StateOp>(op))
      builder.setInsertionPointAfter(&op);
  for (auto &[wanted, bucket] : buckets) {
    // A parameter may have the bucket's name already.
    StringAttr name = wanted;
    while (symbols.lookup(name))
      name = builder.getStringAttr(name.getValue() + ".bucket");
    SmallVector<Attribute> ranges;
    int64_t end = 0;
    for (graph::ParameterOp parameter : bucket.parameters) {
      int64_t elements = graph::numElements(parameter.getType());
      ranges.push_back(
          dist::RangeAttr::get(module.getContext(), FlatSymbolRefAttr::get(parameter), end, elements));
      end = llvm::alignTo(end + elements, dist::kGranule);
    }
    graph::ParameterOp first = bucket.parameters.front();
    auto roles = states.find(first.getSymNameAttr());
    ArrayAttr stateNames;
    if (!bucket.frozen && roles != states.end())
      stateNames = builder.getArrayAttr(roles->second);
    auto op = dist::BucketOp::create(
        builder, first.getLoc(), name, TypeAttr::get(bucket.element),
        builder.getDenseI64ArrayAttr(bucket.blocks), builder.getArrayAttr(ranges),
        builder.getI64IntegerAttr(end), builder.getI64IntegerAttr(llvm::alignTo(end, dp * dist::kGranule)),
        builder.getStrArrayAttr({"dp"}), builder.getI64IntegerAttr(bucket.statistics ? 0 : zero),
        dist::TierAttr::get(module.getContext(), dist::Tier::Device),
        bucket.frozen ? builder.getUnitAttr() : UnitAttr(),
        bucket.gradient ? TypeAttr::get(bucket.gradient) : TypeAttr(),
        bucket.frozen ? TypeAttr() : masters.lookup(first.getSymNameAttr()), stateNames,
        dist::TierAttr::get(module.getContext(), dist::Tier::Device));
    symbols.insert(op);
  }
}
