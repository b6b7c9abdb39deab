//===- Variants.cpp - one program for several sizes of a dimension --------===//

#include "dsopt/Pipeline/Variants.h"

#include "ShardingPlan.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Interfaces/Options.h"

using namespace mlir;

namespace dsopt {

DictionaryAttr setDimension(ModuleOp module, llvm::StringRef name, int64_t size) {
  Builder builder(module.getContext());
  module->setAttr(exec::kDimensionAttr,
                  builder.getDictionaryAttr({builder.getNamedAttr("name", builder.getStringAttr(name)),
                                             builder.getNamedAttr("size", builder.getI64IntegerAttr(size))}));
  // What balances the stages at one size may not at another, but parameters have one place.
  llvm::SmallVector<int64_t> starts;
  int64_t last = -1;
  auto blocks = graph::collectBlocks(module);
  if (succeeded(blocks))
    for (auto [number, block] : llvm::enumerate(*blocks))
      if (std::optional<int64_t> chunk = dist::getChunk(block.functions().front()); chunk && *chunk != last) {
        starts.push_back(number);
        last = *chunk;
      }
  NamedAttrList options(module->getAttrOfType<DictionaryAttr>(kOptionsAttr));
  // Nor do other sizes choose other cuts.
  if (std::optional<ShardingPlan> sharding = collectSharding(module); sharding && sharding->shards > 1) {
    llvm::SmallVector<Attribute> cuts;
    for (const ShardingPlan::Parameter &parameter : sharding->parameters)
      if (parameter.dim)
        cuts.push_back(
            builder.getStringAttr(parameter.whole.getSymName() + "=" + llvm::Twine(*parameter.dim)));
    options.set("shard_cuts", builder.getArrayAttr(cuts));
  }
  options.set("stage_starts", builder.getDenseI64ArrayAttr(starts));
  return options.getDictionary(module.getContext());
}

/// Whether two operations compute the same of values that may differ in shape.
static bool isSame(Operation *one, Operation *other) {
  if (one->getName() != other->getName() || one->getNumOperands() != other->getNumOperands() ||
      one->getNumResults() != other->getNumResults())
    return false;
  auto elements = [](Value value) { return getElementTypeOrSelf(value.getType()); };
  return llvm::equal(llvm::map_range(one->getOperands(), elements),
                     llvm::map_range(other->getOperands(), elements)) &&
         llvm::equal(llvm::map_range(one->getResults(), elements),
                     llvm::map_range(other->getResults(), elements));
}

static bool isSame(func::FuncOp one, func::FuncOp other) {
  SmallVector<Operation *> ops, others;
  one.walk([&](Operation *op) { ops.push_back(op); });
  other.walk([&](Operation *op) { others.push_back(op); });
  return ops.size() == others.size() && llvm::all_of(llvm::zip(ops, others), [](auto pair) {
           return isSame(std::get<0>(pair), std::get<1>(pair));
         });
}

llvm::LogicalResult verifySameFunctions(ModuleOp module, ModuleOp other, int64_t size) {
  SymbolTable functions(other);
  for (auto function : module.getOps<func::FuncOp>()) {
    auto twin = functions.lookup<func::FuncOp>(function.getSymName());
    if (!twin || !isSame(function, twin))
      return function.emitError("@") << function.getSymName() << " is formed otherwise for " << size
                                     << " rows: the bits of a row would depend on how many there are";
  }
  return success();
}

void nestVariant(ModuleOp module, OwningOpRef<ModuleOp> other, int64_t size) {
  (*other)->setAttr(exec::kVariantAttr, Builder(module.getContext()).getI64IntegerAttr(size));
  module.push_back(other.release());
}

} // namespace dsopt
