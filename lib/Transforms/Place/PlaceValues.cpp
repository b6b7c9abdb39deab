//===- PlaceValues.cpp - products and what lies between them in shards ----===//

#include "CutRegion.h"
#include "ShardWriter.h"
#include "dsopt/Dialect/Graph/Statistics.h"
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
  std::optional<CutRegion> cutFrom(Value product, int64_t columns, std::string &reason);
  std::string refuse(const CutRegion &region);

  func::FuncOp forward;
  llvm::DenseSet<Operation *> taken; ///< by regions that are found
  /// Reads of each parameter.
  llvm::DenseMap<Attribute, SmallVector<graph::ReadOp>> reads;
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
    } else if (!isa<graph::CastOp>(op)) {
      return dyn_cast<graph::ReadOp>(op);
    }
    value = op->getOperand(0);
  }
  return {};
}

/// Why a region that loops would permit is not cut, empty if it may be.
std::string PlaceValues::refuse(const CutRegion &region) {
  if (!region.hasSums())
    return "what is cut is never summed";
  for (Operation *op : region.operations()) {
    if (taken.contains(op))
      return "it is cut otherwise";
    auto read = dyn_cast<graph::ReadOp>(op);
    if (!read)
      continue;
    for (graph::ReadOp other : reads[read.getStateAttr()])
      if (region.cutOf(other) != region.cutOf(read))
        return ("parameter '" + read.getState() + "' is read whole elsewhere").str();
  }
  for (const graph::Statistic &statistic : graph::statisticsOf(forward)) {
    Value value = forward.front().getTerminator()->getOperand(statistic.result);
    for (graph::ReadOp read : reads[statistic.parameter])
      if (region.cutOf(read) != region.cutOf(value))
        return ("running statistic '" + read.getState() + "' is read and made in two ways").str();
  }
  return "";
}

/// The parameter of a product that is one's alone, and the dimension of the result that its columns are.
struct Columns {
  graph::ReadOp parameter;
  int64_t dim = 0;
};
static std::optional<Columns> columnsOf(Operation *op) {
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
        return Columns{read, (int64_t)dim};
    }
  return std::nullopt;
}

/// The region of a cut of a product's columns.
std::optional<CutRegion> PlaceValues::cutFrom(Value product, int64_t columns, std::string &reason) {
  SmallVector<int64_t> open{1};
  llvm::SmallDenseSet<int64_t> tried;
  while (!open.empty()) {
    int64_t parts = open.pop_back_val();
    if (!tried.insert(parts).second)
      continue;
    CutRegion region(shards);
    if (region.grow(product, {columns, parts})) {
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
  std::vector<CutRegion> regions;
  std::string reason = "it has no product with a parameter";
  SymbolTable symbols(module);
  for (Operation &product : forward.front()) {
    std::optional<Columns> columns = taken.contains(&product) ? std::nullopt : columnsOf(&product);
    if (!columns) {
      // What a routine multiplies inside has no loops of its own.
      for (Value operand : product.getOperands())
        if (graph::ReadOp read = parameterOf(operand);
            read && isa<ProductOpInterface>(product) && !isa<shard::ShardingInterface>(product))
          symbols.lookup<graph::ParameterOp>(read.getState())
              .setUncut(("'" + product.getName().getStringRef() + "' says no loops that could be cut").str());
      continue;
    }
    if (std::optional<CutRegion> region = cutFrom(product.getResult(0), columns->dim, reason)) {
      taken.insert(region->operations().begin(), region->operations().end());
      regions.push_back(std::move(*region));
    } else {
      symbols.lookup<graph::ParameterOp>(columns->parameter.getState()).setUncut(reason);
    }
  }
  // A row of a later region may have been tried as columns.
  for (const CutRegion &region : regions)
    for (Operation *op : region.operations())
      if (auto read = dyn_cast<graph::ReadOp>(op))
        symbols.lookup<graph::ParameterOp>(read.getState()).removeUncutAttr();
  if (regions.empty() && degree > 1) {
    forward.emitError("has nothing that ")
        << int64_t(shards) << " tensor shards could cut (-tp, -tensor-shards): " << reason;
    return signalPassFailure();
  }
  ShardWriter writer(module, shards, degree);
  for (const CutRegion &region : regions)
    writer.write(region);
}
