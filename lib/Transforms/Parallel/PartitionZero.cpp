//===- PartitionZero.cpp - parameters and their state into sliced buckets -===//

#include "BucketLimits.h"
#include "ParameterUses.h"
#include "dsopt/Dialect/Graph/NarrowFloat.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Parallel/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

#include <deque>
#include <map>

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
  if (auto update = symbols.lookup<func::FuncOp>(graph::kUpdateFunction))
    for (Operation &op : update.front())
      if (graph::getFunctions(&op).matrix)
        for (Value operand : op.getOperands())
          if (auto read = operand.getDefiningOp<graph::ReadOp>())
            matrices.insert(read.getStateAttr().getAttr());
  return matrices;
}

/// What parameters of one bucket have in common.
struct Group {
  StringAttr shared;              ///< the parameter, where several blocks read it
  SmallVector<int64_t, 1> blocks; ///< that read it
  bool frozen, isStatistic;
  bool persists;             ///< a small one stays whole on every rank between steps, as under stage 2
  bool isEarly;              ///< sums of one bucket are complete at one time
  bool isMatrix, isOfBranch; ///< and one rule updates it, or nobody
  bool isShard;              ///< ranks along tp have others, or the same
  Type element, gradient;    ///< null gradient: f32

  auto facts() const {
    return std::tie(shared, blocks, frozen, isStatistic, persists, isEarly, isMatrix, isOfBranch, isShard,
                    element, gradient);
  }
  bool operator==(const Group &other) const { return facts() == other.facts(); }
  /// What its first bucket is called, if no other is: for people.
  std::string wantedName() const;
};

/// A bucket while it is filled.
struct Bucket {
  StringAttr name;
  const Group *group;
  SmallVector<graph::ParameterOp> parameters;
  int64_t elements = 0; ///< of its parameters
};

/// Buckets in the order of their first parameters.
class Buckets {
public:
  Buckets(MLIRContext *context, const BucketLimits &limits) : context(context), limits(limits) {}
  void add(const Group &group, graph::ParameterOp parameter);
  ArrayRef<Bucket> all() const { return buckets; }

private:
  /// A group, its name, and the last of its buckets.
  struct Known {
    Group group;
    std::string name;
    int64_t parts = 0;
    size_t last = 0;
    StringAttr whole = {}; ///< the last parameter, where updates see its shards together
  };
  MLIRContext *context;
  const BucketLimits &limits;
  std::deque<Known> groups;
  std::map<std::pair<const void *, int64_t>, SmallVector<Known *>> byUse; ///< shared, else first block
  llvm::StringSet<> names;
  std::vector<Bucket> buckets;
};

struct PartitionZeroPass : dsopt::impl::PartitionZeroBase<PartitionZeroPass> {
  using PartitionZeroBase::PartitionZeroBase;
  void runOnOperation() override;
};
} // namespace

std::string Group::wantedName() const {
  std::string name;
  llvm::raw_string_ostream out(name);
  if (shared)
    out << (frozen ? "frozen." : "tied.") << shared.getValue();
  else
    out << "b" << blocks.front() << (frozen ? ".frozen" : "");
  for (auto [holds, word] : {std::pair(isStatistic, ".statistics"),
                             {persists && !shared, ".whole"},
                             {isEarly, ".loss"},
                             {isMatrix, ".matrices"},
                             {isOfBranch, ".branch"},
                             {isShard && !shared, ".shards"}})
    out << (holds ? word : "");
  if (frozen && !element.isF32())
    out << "." << element;
  return name;
}

void Buckets::add(const Group &group, graph::ParameterOp parameter) {
  SmallVector<Known *> &candidates = byUse[{group.shared.getAsOpaquePointer(), group.blocks.front()}];
  auto at = llvm::find_if(candidates, [&](Known *known) { return known->group == group; });
  if (at == candidates.end()) {
    std::string name = group.wantedName();
    while (!names.insert(name).second)
      llvm::raw_string_ostream(name) << "." << group.element;
    groups.push_back({group, name});
    candidates.push_back(&groups.back());
    at = std::prev(candidates.end());
  }
  Known &known = **at;
  int64_t elements = graph::numElements(parameter.getType()), added = elements;
  // Updates see a matrix's shards together.
  bool together = group.isMatrix && group.isShard;
  if (together)
    added *= parameter.getPartRuns()->getStep() / parameter.getPartRuns()->getLength();
  // No collective moves more elements than it may.
  if (known.parts == 0 || (!(together && known.whole == graph::seenWhole(parameter)) &&
                           buckets[known.last].elements + added > limits.of(group.frozen))) {
    known.last = buckets.size();
    std::string name = known.name + (known.parts ? "." + std::to_string(known.parts) : "");
    ++known.parts;
    buckets.push_back({StringAttr::get(context, name), &known.group, {}, 0});
  }
  known.whole = together ? graph::seenWhole(parameter) : StringAttr();
  buckets[known.last].elements += elements;
  buckets[known.last].parameters.push_back(parameter);
}

/// What is not done with tensor shards yet.
static LogicalResult refuseShards(ModuleOp module, SymbolTable &symbols) {
  graph::ParameterOp shard;
  for (auto parameter : module.getOps<graph::ParameterOp>()) {
    auto whole = parameter.getPartOf() ? symbols.lookup<graph::ParameterOp>(*parameter.getPartOf()) : nullptr;
    if (whole && whole.getPartOf())
      return parameter.emitError("is part of @")
             << whole.getSymName() << ", which is part of @" << *whole.getPartOf()
             << ": expected tiles and shards of whole parameters alone";
    if (parameter.getPartRuns())
      shard = parameter;
  }
  if (!shard)
    return success();
  if (StringRef method = options::compress_gradients(module); method != "none")
    return shard.emitError("is a tensor shard, of which -compress-gradients=")
           << method << " makes no gradients yet: expected -tp=1 and no -tensor-shards";
  if (options::freeze_step(module).value_or(0) > 0)
    return shard.emitError("is a tensor shard, which -optimizer=")
           << options::optimizer(module)
           << " cannot compress behind its freeze yet: expected -tp=1 and no -tensor-shards";
  return success();
}

void PartitionZeroPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto blocks = graph::collectBlocks(module);
  if (failed(blocks))
    return signalPassFailure();
  auto axes = dist::getDataAxes(module.getContext());
  auto distinct = dist::AxesAttr::get(module.getContext(), {AxisPart{Axis::tp}});
  int64_t ranks = dist::getGrid(module).count(axes.getParts());
  giveOption(module, "zero", stage, /*unset=*/-1);
  int64_t zero = options::zero(module);
  giveOption(module, "param_persistence_threshold", persistenceThreshold, /*unset=*/-1);
  int64_t whole = options::param_persistence_threshold(module);
  giveOption(module, "reduce_bucket_size", reduceBucketSize, /*unset=*/0);
  giveOption(module, "gather_bucket_size", gatherBucketSize, /*unset=*/0);
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
  if (failed(refuseShards(module, symbols)))
    return signalPassFailure();
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
  Buckets buckets(module.getContext(), limits);
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
    StringAttr name = parameter.getSymNameAttr();
    bool isShared = reader->second.size() > 1, isStatistic = parameter.getStatistic();
    int64_t elements = graph::numElements(parameter.getType());
    Group group;
    group.isMatrix = matrices.contains(name);
    group.isShard = parameter.getPartRuns().has_value();
    if (isShared)
      group.shared = group.isMatrix ? graph::seenWhole(parameter) : name;
    group.blocks.assign(reader->second.begin(), reader->second.end());
    group.frozen = parameter.getFrozen();
    group.isStatistic = isStatistic;
    group.persists = zero == 3 && !isStatistic && elements <= whole;
    group.isEarly = !isShared && early.contains(name);
    group.isOfBranch = parameter.getBranch();
    group.element = element;
    group.gradient = gradients.lookup(name);
    limits.note(parameter, elements);
    buckets.add(group, parameter);
  }
  limits.warn();

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (Operation &op : *module.getBody())
    if (isa<graph::ParameterOp, graph::StateOp>(op))
      builder.setInsertionPointAfter(&op);
  for (const Bucket &bucket : buckets.all()) {
    const Group &group = *bucket.group;
    // A parameter may have the bucket's name already.
    StringAttr name = bucket.name;
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
    // Statistics are folded at the end of a step.
    int64_t bucketZero = group.isStatistic ? 0 : group.persists ? 2 : zero;
    auto roles = states.find(first.getSymNameAttr());
    ArrayAttr stateNames;
    if (!group.frozen && roles != states.end())
      stateNames = builder.getArrayAttr(roles->second);
    auto op = dist::BucketOp::create(
        builder, first.getLoc(), name, TypeAttr::get(group.element),
        builder.getDenseI64ArrayAttr(group.blocks), builder.getArrayAttr(ranges),
        builder.getI64IntegerAttr(end), builder.getI64IntegerAttr(llvm::alignTo(end, ranks * dist::kGranule)),
        axes, group.isShard ? distinct : nullptr, builder.getI64IntegerAttr(bucketZero),
        dist::TierAttr::get(module.getContext(), dist::Tier::Device),
        group.frozen ? builder.getUnitAttr() : UnitAttr(),
        group.gradient ? TypeAttr::get(group.gradient) : TypeAttr(),
        group.frozen ? TypeAttr() : masters.lookup(first.getSymNameAttr()), stateNames,
        dist::TierAttr::get(module.getContext(), dist::Tier::Device));
    symbols.insert(op);
  }
}
