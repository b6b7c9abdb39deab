//===- PartitionZero.cpp - parameters and their state into sliced buckets -===//

#include "BucketLimits.h"
#include "ParameterUses.h"
#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"
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
/// The parameters, or their masters, that a rule of whole matrices updates.
llvm::DenseSet<Attribute> findMatrices(SymbolTable &symbols) {
  llvm::DenseSet<Attribute> matrices;
  if (auto update = symbols.lookup<func::FuncOp>("update"))
    for (Operation &op : update.front())
      if (op.hasAttr(graph::kMatrixFunctionAttr))
        for (Value operand : op.getOperands())
          if (auto read = operand.getDefiningOp<graph::ReadOp>())
            matrices.insert(read.getStateAttr().getAttr());
  return matrices;
}

/// A bucket while it is filled.
struct Bucket {
  SmallVector<int64_t> blocks;
  SmallVector<graph::ParameterOp> parameters;
  int64_t elements = 0; ///< of its parameters
  int64_t zero = 0;
  bool frozen = false;
  Type element, gradient; ///< null gradient: f32
};

struct PartitionZeroPass : dsopt::impl::PartitionZeroBase<PartitionZeroPass> {
  using PartitionZeroBase::PartitionZeroBase;
  void runOnOperation() override;
};
} // namespace

void PartitionZeroPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  auto axes = dist::getDataAxes(module.getContext());
  int64_t ranks = dist::getGrid(module).count(axes.getParts());
  int64_t zero = takeOption(module, "zero", stage, /*unset=*/-1, 0);
  int64_t whole = takeOption(module, "param_persistence_threshold", persistenceThreshold, /*unset=*/-1, 0);
  takeOption(module, "reduce_bucket_size", reduceBucketSize, /*unset=*/0, 0);
  takeOption(module, "gather_bucket_size", gatherBucketSize, /*unset=*/0, 0);
  if (zero > 3) {
    module.emitError("cannot partition by ZeRO stage ") << zero << ": expected a stage of 0 to 3";
    return signalPassFailure();
  }
  // What is alone has everything, but for what it fetches.
  if (ranks == 1 && options::offload_params(module) == "none")
    zero = 0;
  // Behind the freeze each rank has its own gradient whole, and updates by whole momenta or its slice of
  // them.
  if (options::freeze_step(module).value_or(0) > 0)
    zero = options::onebit_gather(module) == "parameters" ? std::min<int64_t>(zero, 1) : 0;

  BucketLimits limits(module, ranks, zero);
  SymbolTable symbols(module);
  auto readers = findReaders(module, *blocks, symbols);
  llvm::DenseSet<StringAttr> early = findEarly(*blocks, symbols);
  llvm::DenseSet<Attribute> matrices = findMatrices(symbols);
  llvm::MapVector<StringAttr, SmallVector<Attribute>> states;
  llvm::DenseMap<StringAttr, Type> gradients; // that are no f32
  llvm::DenseMap<StringAttr, TypeAttr> masters;
  for (auto state : module.getOps<graph::StateOp>()) {
    StringAttr parameter = state.getParameterAttr().getAttr();
    Type element = getElementTypeOrSelf(state.getType());
    if (matrices.contains(state.getSymNameAttr()))
      matrices.insert(parameter);
    if (state.getRole() == graph::Role::Master)
      masters[parameter] = TypeAttr::get(element);
    else if (state.getRole() == graph::Role::Optimizer)
      states[parameter].push_back(dist::StateAttr::get(module.getContext(), *state.getName(), element));
    else if (!element.isF32())
      gradients[parameter] = element;
  }
  llvm::MapVector<StringAttr, Bucket> buckets;
  llvm::DenseMap<StringAttr, int64_t> parts; ///< of a block's buckets: the last one's number
  Builder attributes(module.getContext());
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    auto reader = readers.find(parameter.getSymNameAttr());
    if (reader == readers.end())
      continue;
    Type element = cast<ShapedType>(graph::storedType(parameter)).getElementType();
    if (!element.isF32() && !graph::isNarrowFloat(element) && !parameter.getFrozen()) {
      parameter.emitError("parameter has elements of type ")
          << element << ", only f32, bf16 and f16 are trained yet";
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
    int64_t elements = graph::numElements(parameter.getType());
    // Small ones stay whole on every rank between steps, as under stage 2.
    bool persists = zero == 3 && !isStatistic && elements <= whole;
    if (persists && !shared)
      name += ".whole";
    // Sums of one bucket are complete at one time.
    if (!shared && early.contains(parameter.getSymNameAttr()))
      name += ".loss";
    // And one rule updates it.
    if (matrices.contains(parameter.getSymNameAttr()))
      name += ".matrices";
    if (parameter->hasAttr(graph::kBranchAttr))
      name += ".branch";
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
    // No collective moves more elements than it may.
    limits.note(parameter, elements);
    int64_t &part = parts[attributes.getStringAttr(name)];
    auto partName = [&] {
      return attributes.getStringAttr(part == 0 ? Twine(name) : Twine(name) + "." + Twine(part));
    };
    if (auto other = buckets.find(partName());
        other != buckets.end() && other->second.elements + elements > limits.of(parameter.getFrozen()))
      ++part;
    Bucket &bucket = buckets[partName()];
    bucket.blocks = reader->second;
    bucket.element = element;
    bucket.gradient = gradient;
    bucket.frozen = parameter.getFrozen();
    // Statistics are folded at the end of a step.
    bucket.zero = isStatistic ? 0 : persists ? 2 : zero;
    bucket.elements += elements;
    bucket.parameters.push_back(parameter);
  }
  limits.warn();

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
        builder.getI64IntegerAttr(end), builder.getI64IntegerAttr(llvm::alignTo(end, ranks * dist::kGranule)),
        axes, builder.getI64IntegerAttr(bucket.zero),
        dist::TierAttr::get(module.getContext(), dist::Tier::Device),
        bucket.frozen ? builder.getUnitAttr() : UnitAttr(),
        bucket.gradient ? TypeAttr::get(bucket.gradient) : TypeAttr(),
        bucket.frozen ? TypeAttr() : masters.lookup(first.getSymNameAttr()), stateNames,
        dist::TierAttr::get(module.getContext(), dist::Tier::Device));
    symbols.insert(op);
  }
}
