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

void nestVariant(ModuleOp module, OwningOpRef<ModuleOp> other, int64_t size) {
  (*other)->setAttr(exec::kVariantAttr, Builder(module.getContext()).getI64IntegerAttr(size));
  module.push_back(other.release());
}

} // namespace dsopt
