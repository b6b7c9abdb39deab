//===- PlaceValues.cpp - products and what lies between them in shards ----===//

#include "CutRegion.h"
#include "ShardWriter.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Place/Passes.h"

#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

namespace dsopt {
#define GEN_PASS_DEF_PLACEVALUES
#include "dsopt/Transforms/Place/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct PlaceValues : public dsopt::impl::PlaceValuesBase<PlaceValues> {
  using PlaceValuesBase::PlaceValuesBase;
  void runOnOperation() override;

private:
  std::optional<CutRegion> cutFrom(Value value, int64_t dim, std::string &reason);
  std::string refuse(const CutRegion &region);
  bool tryToCut(Operation *op);
  void tryParts(Operation *op);
  void sayUncut(graph::ReadOp read, const Twine &reason);

  func::FuncOp forward;
  llvm::DenseSet<Operation *> taken; ///< by regions that are found
  std::vector<CutRegion> regions;
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

/// Why a region that loops would permit is not cut, empty if it may be.
std::string PlaceValues::refuse(const CutRegion &region) {
  if (!region.hasEnds())
    return "what is cut is never summed";
  return llvm::any_of(region.operations(), [&](Operation *op) { return taken.contains(op); })
             ? "it is cut otherwise"
             : "";
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
      reason = refuse(region);
      if (reason.empty())
        return region;
      continue;
    }
    reason = region.reason();
    llvm::append_range(open, region.wishes());
  }
  return std::nullopt;
}

void PlaceValues::sayUncut(graph::ReadOp read, const Twine &reason) {
  symbols->lookup<graph::ParameterOp>(read.getState()).setUncut(reason.str());
}

bool PlaceValues::tryToCut(Operation *op) {
  std::optional<Start> start = columnsOf(op);
  bool isTable = !start && (start = tableOf(op));
  if (!start)
    return false;
  if (isTable && graph::numElements(start->value.getType()) <
                     kTakenShare * graph::numElements(op->getResult(0).getType())) {
    sayUncut(start->parameter,
             "'" + op->getName().getStringRef() + "' takes more than a quarter of its elements");
    return false;
  }
  std::optional<CutRegion> region = cutFrom(start->value, start->dim, reason);
  if (!region) {
    sayUncut(start->parameter, reason);
    return false;
  }
  taken.insert(region->operations().begin(), region->operations().end());
  regions.push_back(std::move(*region));
  return true;
}

/// What a routine multiplies inside has no loops of its own: its parts may have.
void PlaceValues::tryParts(Operation *op) {
  auto composite = dyn_cast<DecomposableOpInterface>(op);
  if (!composite) {
    for (Value operand : op->getOperands())
      if (graph::ReadOp read = parameterOf(operand))
        sayUncut(read, "'" + op->getName().getStringRef() + "' says no loops that could be cut");
    return;
  }
  Operation *before = op->getPrevNode();
  OpBuilder builder(op);
  SmallVector<Value> results = composite.decompose(builder);
  SmallVector<Operation *> parts;
  for (Operation *part = before ? before->getNextNode() : &op->getBlock()->front(); part != op;
       part = part->getNextNode())
    parts.push_back(part);
  for (Operation *part : parts)
    if (Attribute block = op->getAttr(graph::kBlockAttr))
      part->setAttr(graph::kBlockAttr, block);
  op->replaceAllUsesWith(results);
  // What reads the operands no more is not asked.
  SmallVector<Value> operands(op->getOperands());
  for (OpOperand &operand : op->getOpOperands())
    operand.drop();
  if (llvm::any_of(parts, [&](Operation *part) { return tryToCut(part); }))
    return op->erase();
  for (auto [operand, value] : llvm::zip_equal(op->getOpOperands(), operands))
    operand.set(value);
  for (auto [result, part] : llvm::zip_equal(op->getResults(), results))
    part.replaceAllUsesWith(result);
  for (Operation *part : llvm::reverse(parts))
    part->erase();
}

void PlaceValues::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "tp", ranks, /*unset=*/0);
  giveOption(module, "tensor_shards", shards, /*unset=*/0);
  int64_t degree = options::tp(module);
  shards = options::tensor_shards(module).value_or(degree);
  if (shards < 2)
    return;
  if (shards % degree) {
    module.emitError("has ") << int64_t(shards) << " tensor shards for " << degree
                             << " ranks, expected a multiple";
    return signalPassFailure();
  }
  forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  if (!forward || !forward.getBody().hasOneBlock()) {
    module.emitError("place-values expects a function @forward with one body");
    return signalPassFailure();
  }
  for (auto read : forward.getOps<graph::ReadOp>())
    reads[read.getStateAttr()].push_back(read);
  symbols.emplace(module);
  // What one is made of may be put beside it on the way.
  for (Operation &op : llvm::make_early_inc_range(forward.front()))
    if (!taken.contains(&op) && !tryToCut(&op) && isa<ProductOpInterface>(op) &&
        !isa<shard::ShardingInterface>(op))
      tryParts(&op);
  // A row of a later region may have been tried as columns.
  for (const CutRegion &region : regions)
    for (Operation *op : region.operations())
      if (auto read = dyn_cast<graph::ReadOp>(op))
        symbols->lookup<graph::ParameterOp>(read.getState()).removeUncutAttr();
  if (regions.empty() && degree > 1) {
    forward.emitError("has nothing that ")
        << int64_t(shards) << " tensor shards could cut (-tp, -tensor-shards): " << reason;
    return signalPassFailure();
  }
  ShardWriter writer(module, shards, degree);
  for (const CutRegion &region : regions)
    writer.write(region);
}
