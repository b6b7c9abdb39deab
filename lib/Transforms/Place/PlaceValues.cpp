//===- PlaceValues.cpp - products and what lies between them in shards ----===//

#include "ChosenCuts.h"
#include "CutRegion.h"
#include "RegionChoice.h"
#include "RegionCosts.h"
#include "ShardParts.h"
#include "ShardWriter.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Place/Passes.h"

#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "llvm/Support/FormatVariadic.h"

namespace dsopt {
#define GEN_PASS_DEF_PLACEVALUES
#include "dsopt/Transforms/Place/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// A region that may be cut, and what begins it.
struct Candidate {
  CutRegion region;
  graph::ReadOp parameter;
  const ChosenCut *asked = nullptr; ///< null: the compiler found it
};

/// A routine that is taken apart, out of its block, and its parts there.
struct Composite {
  Operation *op;
  SmallVector<Value> operands, results;
  SmallVector<Operation *> parts;
};

struct PlaceValues : public dsopt::impl::PlaceValuesBase<PlaceValues> {
  using PlaceValuesBase::PlaceValuesBase;
  void runOnOperation() override;

private:
  std::optional<CutRegion> cutFrom(Value value, int64_t dim, std::string &reason);
  LogicalResult cutAsAsked();
  LogicalResult cutAsAsked(graph::ParameterOp parameter, const ChosenCut &asked);
  LogicalResult checkAsked(const Candidate &candidate);
  std::string refuseAsked(const CutRegion &region);
  bool tryToCut(Operation *op);
  void tryParts(Operation *op);
  void takeApart(DecomposableOpInterface composite);
  void putTogether(Composite &composite);
  std::vector<CutRegion> chooseRegions();
  void sayUncut(graph::ReadOp read, const Twine &reason) { parameterAt(read).setUncut(reason.str()); }
  graph::ParameterOp parameterAt(graph::ReadOp read) {
    return symbols->lookup<graph::ParameterOp>(read.getState());
  }

  func::FuncOp forward;
  ChosenCuts chosen;
  std::vector<Candidate> candidates; ///< those that are asked for first
  std::vector<Composite> composites;
  std::string reason = "it has no product with a parameter"; ///< why the last one was not cut
  ParameterReads reads;
  std::optional<SymbolTable> symbols;
};
} // namespace

/// The read of a parameter, of which a value has the elements in some order, or slices that indices name;
/// null where it has others, or where those name what is along `dim`.
static graph::ReadOp parameterOf(Value value, std::optional<int64_t> dim = std::nullopt) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
      dim = dim ? std::optional(transpose.getPerm()[*dim]) : std::nullopt;
    } else if (auto gather = dyn_cast<graph::GatherOp>(op)) {
      int64_t axis = gather.getAxis(), count = cast<ShapedType>(gather.getIndices().getType()).getRank();
      if (!dim || (*dim >= axis && *dim < axis + count))
        return {};
      dim = *dim < axis ? *dim : *dim - count + 1;
    } else if (isa<graph::ReshapeOp>(op)) {
      dim = std::nullopt;
    } else if (!isa<graph::CastOp, graph::SliceOp, graph::ConcatOp>(op)) {
      return dyn_cast<graph::ReadOp>(op);
    }
    value = op->getOperand(0);
  }
  return {};
}

namespace {
/// Where a cut may begin.
struct Start {
  graph::ReadOp parameter;
  Value value;
  int64_t dim = 0;
};
} // namespace

/// At the parameter of a product that is one's alone, and the dimension of the result that its columns are.
static std::optional<Start> columnsOf(Operation *op) {
  auto loops = dyn_cast<shard::ShardingInterface>(op);
  if (!isa<ProductOpInterface>(op) || !loops || op->getNumOperands() < 2)
    return std::nullopt;
  SmallVector<AffineMap> maps = loops.getIndexingMaps();
  SmallVector<utils::IteratorType> types = loops.getLoopIteratorTypes();
  AffineMap result = maps[op->getNumOperands()];
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    for (auto [dim, expr] : llvm::enumerate(result.getResults())) {
      std::optional<unsigned> own = maps[number].getResultPosition(expr);
      graph::ReadOp read = own ? parameterOf(operand, *own) : graph::ReadOp();
      unsigned loop = cast<AffineDimExpr>(expr).getPosition();
      auto others = llvm::make_filter_range(llvm::seq(size_t(op->getNumOperands())),
                                            [number = number](size_t other) { return other != number; });
      if (read && types[loop] == utils::IteratorType::parallel &&
          llvm::none_of(others, [&](size_t other) { return maps[other].isFunctionOfDim(loop); }))
        return Start{read, op->getResult(0), (int64_t)dim};
    }
  return std::nullopt;
}

/// A table that a micro-batch takes more than this share of stays whole: more would travel than is saved.
constexpr int64_t kTakenShare = 4;

/// At a parameter of which an operation sees a dimension whole, but could make its results of shards.
static std::optional<Start> tableOf(Operation *op) {
  auto reduction = dyn_cast<ShardedReductionOpInterface>(op);
  if (!reduction)
    return std::nullopt;
  for (OpOperand &operand : op->getOpOperands())
    if (graph::ReadOp read = parameterOf(operand.get()))
      for (int64_t dim : llvm::seq(cast<RankedTensorType>(operand.get().getType()).getRank()))
        if (reduction.canReduceShards(operand.getOperandNumber(), dim))
          return Start{read, operand.get(), dim};
  return std::nullopt;
}

/// The region of a cut that begins with a value's dimension.
std::optional<CutRegion> PlaceValues::cutFrom(Value value, int64_t dim, std::string &reason) {
  SmallVector<int64_t> open{1};
  llvm::SmallDenseSet<int64_t> tried;
  while (!open.empty()) {
    int64_t parts = open.pop_back_val();
    if (!tried.insert(parts).second)
      continue;
    CutRegion region(shards, reads);
    if (region.grow(value, {dim, parts})) {
      if (region.hasEnds())
        return region;
      reason = "what is cut is never summed";
      continue;
    }
    reason = region.reason();
    llvm::append_range(open, region.wishes());
  }
  return std::nullopt;
}

/// What a routine multiplies inside has no loops of its own: its parts may have.
static bool hidesLoops(Operation *op) {
  return isa<ProductOpInterface>(op) && !isa<shard::ShardingInterface>(op);
}

static bool overlap(const CutRegion &a, const CutRegion &b) {
  bool isLess = a.operations().size() < b.operations().size();
  const CutRegion &small = isLess ? a : b, &large = isLess ? b : a;
  return llvm::any_of(small.operations(), [&](Operation *op) { return large.operations().contains(op); });
}

LogicalResult PlaceValues::cutAsAsked() {
  for (const auto &[name, asked] : chosen.all()) {
    auto parameter = symbols->lookup<graph::ParameterOp>(name);
    if (!asked.dim)
      parameter.setUncut(asked.by + " keeps it whole");
    else if (failed(cutAsAsked(parameter, asked)))
      return failure();
  }
  return success();
}

LogicalResult PlaceValues::cutAsAsked(graph::ParameterOp parameter, const ChosenCut &asked) {
  auto refuse = [&] {
    return getOperation().emitError()
           << asked.by << ": parameter '" << parameter.getModelName() << "' cannot be cut along dimension "
           << turnedDim(parameter, *asked.dim) << ": ";
  };
  SmallVector<graph::ReadOp> own = reads.lookup(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
  if (own.empty())
    return refuse() << "nothing reads it";
  // With another that was asked for before.
  for (const Candidate &candidate : candidates)
    if (std::optional<ShardCut> cut = candidate.region.cutOf(own.front()); cut && cut->dim == *asked.dim)
      return success();
  for (Operation &op : llvm::make_early_inc_range(forward.front()))
    if (auto composite = dyn_cast<DecomposableOpInterface>(op);
        composite && hidesLoops(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
          return llvm::is_contained(own, parameterOf(operand));
        }))
      takeApart(composite);
  std::optional<CutRegion> region = cutFrom(own.front(), *asked.dim, reason);
  if (!region)
    return refuse() << reason;
  for (const Candidate &other : candidates)
    if (overlap(other.region, *region))
      return refuse() << "what follows from " << other.asked->by << " for parameter '"
                      << parameterAt(other.parameter).getModelName() << "' cuts it otherwise";
  candidates.push_back({std::move(*region), own.front(), &asked});
  return checkAsked(candidates.back());
}

/// What else a region cuts may be asked to be whole, or cut otherwise.
LogicalResult PlaceValues::checkAsked(const Candidate &candidate) {
  for (Operation *op : candidate.region.operations())
    if (auto read = dyn_cast<graph::ReadOp>(op)) {
      graph::ParameterOp parameter = parameterAt(read);
      const ChosenCut *other = chosen.find(read.getState());
      int64_t dim = candidate.region.cutOf(read)->dim;
      if (other && other->dim != dim)
        return getOperation().emitError()
               << candidate.asked->by << " and " << other->by << " contradict each other: to cut '"
               << parameterAt(candidate.parameter).getModelName() << "' takes a cut of '"
               << parameter.getModelName() << "' along dimension " << turnedDim(parameter, dim);
    }
  return success();
}

/// Why a region is not tried against what was asked for, empty if it may be.
std::string PlaceValues::refuseAsked(const CutRegion &region) {
  for (Operation *op : region.operations())
    if (auto read = dyn_cast<graph::ReadOp>(op))
      if (const ChosenCut *asked = chosen.find(read.getState());
          asked && asked->dim != region.cutOf(read)->dim)
        return asked->dim ? asked->by + " cuts it otherwise" : asked->by + " keeps it whole";
  for (const Candidate &candidate : candidates)
    if (candidate.asked && overlap(candidate.region, region))
      return "it is cut otherwise by " + candidate.asked->by;
  return "";
}

/// Whether an operation begins a region, or is in one that it would begin.
bool PlaceValues::tryToCut(Operation *op) {
  std::optional<Start> start = columnsOf(op);
  bool isTable = !start && (start = tableOf(op));
  if (!start)
    return false;
  if (llvm::any_of(candidates, [&](const Candidate &candidate) {
        std::optional<ShardCut> cut = candidate.region.cutOf(start->value);
        return cut && cut->dim == start->dim;
      }))
    return true;
  if (isTable && graph::numElements(start->value.getType()) <
                     kTakenShare * graph::numElements(op->getResult(0).getType())) {
    sayUncut(start->parameter,
             "'" + op->getName().getStringRef() + "' takes more than a quarter of its elements");
    return false;
  }
  std::optional<CutRegion> region = cutFrom(start->value, start->dim, reason);
  if (region)
    if (reason = refuseAsked(*region); !reason.empty())
      region.reset();
  if (!region) {
    sayUncut(start->parameter, reason);
    return false;
  }
  candidates.push_back({std::move(*region), start->parameter});
  return true;
}

void PlaceValues::takeApart(DecomposableOpInterface composite) {
  Operation *op = composite, *before = op->getPrevNode();
  OpBuilder builder(op);
  SmallVector<Value> results = composite.decompose(builder);
  setBlocks(before, op, op->getAttr(graph::kBlockAttr));
  SmallVector<Operation *> parts;
  for (Operation *part = before ? before->getNextNode() : &op->getBlock()->front(); part != op;
       part = part->getNextNode())
    parts.push_back(part);
  op->replaceAllUsesWith(results);
  // What reads the operands no more is not asked.
  composites.push_back({op, SmallVector<Value>(op->getOperands()), results, parts});
  op->dropAllReferences();
  op->remove();
}

void PlaceValues::tryParts(Operation *op) {
  if (auto composite = dyn_cast<DecomposableOpInterface>(op)) {
    takeApart(composite);
    if (llvm::any_of(composites.back().parts, [&](Operation *part) { return tryToCut(part); }))
      return;
    putTogether(composites.back());
    composites.pop_back();
    return;
  }
  for (Value operand : op->getOperands())
    if (graph::ReadOp read = parameterOf(operand))
      sayUncut(read, "'" + op->getName().getStringRef() + "' says no loops that could be cut");
}

/// None of its parts is cut.
void PlaceValues::putTogether(Composite &composite) {
  Operation *op = composite.op;
  composite.parts.front()->getBlock()->getOperations().insert(
      std::next(composite.parts.back()->getIterator()), op);
  for (auto [operand, value] : llvm::zip_equal(op->getOpOperands(), composite.operands))
    operand.set(value);
  for (auto [result, part] : llvm::zip_equal(op->getResults(), composite.results))
    part.replaceAllUsesWith(result);
  for (Operation *part : llvm::reverse(composite.parts))
    part->erase();
}

static std::string inMicroseconds(int64_t picoseconds) {
  return llvm::formatv("{0:F3} us", picoseconds / 1e6).str();
}

/// Those that are asked for, and of the others those that pay most together.
std::vector<CutRegion> PlaceValues::chooseRegions() {
  RegionCosts costs(forward, *symbols, shards);
  CutProblem problem;
  SmallVector<Candidate *> free;
  int64_t asked = 0;
  llvm::SmallDenseSet<unsigned> paid;
  std::vector<CutRegion> regions;
  for (Candidate &candidate : candidates) {
    CutGain gain = costs.gainOf(candidate.region);
    if (!candidate.asked) {
      problem.gains.push_back(gain);
      free.push_back(&candidate);
      continue;
    }
    asked += gain.saved - gain.sums;
    paid.insert(gain.shared.begin(), gain.shared.end());
    regions.push_back(std::move(candidate.region));
  }
  problem.sharedCosts.assign(costs.shared().begin(), costs.shared().end());
  for (unsigned sum : paid) {
    asked -= problem.sharedCosts[sum];
    problem.sharedCosts[sum] = 0;
  }
  problem.excludes.resize(free.size());
  for (unsigned a = 0; a < free.size(); ++a)
    for (unsigned b = a + 1; b < free.size(); ++b)
      if (overlap(free[a]->region, free[b]->region)) {
        problem.excludes[a].push_back(b);
        problem.excludes[b].push_back(a);
      }
  CutChoice choice = chooseCuts(problem);
  // Shards that have nothing to do are no answer: where nothing pays, what costs least is cut.
  if (regions.empty() && !free.empty() && llvm::none_of(choice.taken, [](bool taken) { return taken; })) {
    SmallVector<int64_t> alone = llvm::map_to_vector(problem.gains, [&](const CutGain &gain) {
      int64_t sums = gain.sums;
      for (unsigned sum : gain.shared)
        sums += problem.sharedCosts[sum];
      return gain.saved - sums;
    });
    auto least = llvm::max_element(alone);
    choice.taken[least - alone.begin()] = true;
    choice.gain = *least;
  }
  for (unsigned number = 0; number < free.size(); ++number) {
    if (choice.taken[number]) {
      regions.push_back(std::move(free[number]->region));
      continue;
    }
    const CutGain &gain = problem.gains[number];
    int64_t sums = gain.sums;
    for (unsigned sum : gain.shared)
      sums += problem.sharedCosts[sum];
    reason = sums < gain.saved ? "another cut of what it leads to saves more"
                               : "costs more than it saves: sums of " + inMicroseconds(sums) + ", " +
                                     inMicroseconds(gain.saved) + " saved; -shard cuts it all the same";
    parameterAt(free[number]->parameter).setUncut(reason);
  }
  // The last first, which may read what others become.
  for (Composite &composite : llvm::reverse(composites))
    if (llvm::any_of(composite.parts, [&](Operation *part) {
          return llvm::any_of(regions,
                              [&](const CutRegion &region) { return region.operations().contains(part); });
        }))
      composite.op->erase();
    else
      putTogether(composite);
  Builder builder(&getContext());
  auto keep = [&](StringRef name, int64_t gain) {
    getOperation()->setAttr(name,
                            builder.getI64IntegerAttr(std::max<int64_t>(0, costs.whole() - asked - gain)));
  };
  keep(graph::kShardCostAttr, choice.gain);
  keep(graph::kShardBoundAttr, choice.bound);
  return regions;
}

void PlaceValues::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "tp", ranks, /*unset=*/0);
  giveOption(module, "tensor_shards", shards, /*unset=*/0);
  int64_t degree = options::tp(module);
  shards = options::tensor_shards(module).value_or(degree);
  if (failed(chosen.read(module)))
    return signalPassFailure();
  if (shards < 2)
    return;
  FailureOr<func::FuncOp> found = forwardOf(module, "place-values", "tensor", shards, degree);
  if (failed(found))
    return signalPassFailure();
  forward = *found;
  symbols.emplace(module);
  for (auto read : forward.getOps<graph::ReadOp>())
    reads[read.getStateAttr()].push_back(read);
  if (failed(cutAsAsked())) {
    for (Composite &composite : composites)
      composite.op->destroy();
    return signalPassFailure();
  }
  if (!chosen.isComplete())
    // What one is made of may be put beside it on the way.
    for (Operation &op : llvm::make_early_inc_range(forward.front()))
      if (!tryToCut(&op) && hidesLoops(&op))
        tryParts(&op);
  std::vector<CutRegion> regions = chooseRegions();
  // A row of a later region may have been tried as columns.
  for (const CutRegion &region : regions)
    for (Operation *op : region.operations())
      if (auto read = dyn_cast<graph::ReadOp>(op))
        parameterAt(read).removeUncutAttr();
  if (regions.empty() && degree > 1) {
    forward.emitError("has nothing that ")
        << int64_t(shards) << " tensor shards could cut (-tp, -tensor-shards): " << reason;
    return signalPassFailure();
  }
  // In the order in which they begin: what two of them share stands before the first that reads it.
  auto begin = [](const CutRegion &region) {
    return *llvm::min_element(region.operations(),
                              [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  };
  llvm::sort(regions,
             [&](const CutRegion &a, const CutRegion &b) { return begin(a)->isBeforeInBlock(begin(b)); });
  ShardWriter writer(module, shards, degree);
  for (const CutRegion &region : regions)
    writer.write(region);
}
