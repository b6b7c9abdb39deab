//===- PlaceValues.cpp - products and what lies between them in shards ----===//

#include "CutRegion.h"
#include "ShardWriter.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Place/Passes.h"

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
  std::optional<CutRegion> cutFrom(graph::MatMulOp product, std::string &reason);
  std::string refuse(const CutRegion &region);

  func::FuncOp forward;
  llvm::DenseSet<Operation *> taken; ///< by regions that are found
  /// Reads of each parameter.
  llvm::DenseMap<Attribute, SmallVector<graph::ReadOp>> reads;
};
} // namespace

/// Whether a value is a parameter, or its elements in another order.
static bool isParameter(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<graph::ReshapeOp, graph::TransposeOp, graph::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<graph::ReadOp>(op);
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
  return "";
}

/// The region of a cut of the product's columns.
std::optional<CutRegion> PlaceValues::cutFrom(graph::MatMulOp product, std::string &reason) {
  int64_t columns = cast<RankedTensorType>(product.getType()).getRank() - 1;
  SmallVector<int64_t> open{1};
  llvm::SmallDenseSet<int64_t> tried;
  while (!open.empty()) {
    int64_t parts = open.pop_back_val();
    if (!tried.insert(parts).second)
      continue;
    CutRegion region(shards);
    if (region.grow(product.getResult(), {columns, parts})) {
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
    module.emitError("has ") << shards << " tensor shards for " << degree << " ranks, expected a multiple";
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
  for (auto product : forward.getOps<graph::MatMulOp>()) {
    if (taken.contains(product) || !isParameter(product.getRhs()) || isParameter(product.getLhs()))
      continue;
    if (std::optional<CutRegion> region = cutFrom(product, reason)) {
      taken.insert(region->operations().begin(), region->operations().end());
      regions.push_back(std::move(*region));
    }
  }
  if (regions.empty() && degree > 1) {
    forward.emitError("has nothing that ") << shards << " tensor shards could cut: " << reason;
    return signalPassFailure();
  }
  ShardWriter writer(module, shards, degree);
  for (const CutRegion &region : regions)
    writer.write(region);
}
