//===- Variants.cpp - one program for several sizes of a dimension --------===//

#include "dsopt/Pipeline/Variants.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Blocks.h"
#include "dsopt/Interfaces/Options.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/OperationSupport.h"

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
      if (auto stage = block.functions().front()->getAttrOfType<IntegerAttr>(dist::kStageAttr);
          stage && stage.getInt() != last) {
        starts.push_back(number);
        last = stage.getInt();
      }
  NamedAttrList options(module->getAttrOfType<DictionaryAttr>(kOptionsAttr));
  options.set("stage_starts", builder.getDenseI64ArrayAttr(starts));
  return options.getDictionary(module.getContext());
}

/// Whether both modules declare the same operations of a kind, by symbol.
template <typename OpTy> static LogicalResult verifySame(ModuleOp module, ModuleOp other, int64_t size) {
  auto own = module.getOps<OpTy>(), theirs = other.getOps<OpTy>();
  auto a = own.begin(), b = theirs.begin();
  for (; a != own.end() && b != theirs.end(); ++a, ++b)
    if (!OperationEquivalence::isEquivalentTo(*a, *b, OperationEquivalence::IgnoreLocations))
      break;
  if (a == own.end() && b == theirs.end())
    return success();
  Operation *at = a != own.end() ? (*a).getOperation() : (*b).getOperation();
  return module.emitError("the model is cut into other blocks where the dimension is ")
         << size << " (at @" << SymbolTable::getSymbolName(at).getValue()
         << "), expected the same parameters in each block for all of its values; give one value";
}

LogicalResult mergeVariant(ModuleOp module, ModuleOp other, int64_t size) {
  if (failed(verifySame<dist::BucketOp>(module, other, size)) ||
      failed(verifySame<graph::StateOp>(module, other, size)))
    return failure();
  Builder builder(module.getContext());
  llvm::SmallVector<Operation *> moved;
  llvm::DenseMap<StringAttr, StringAttr> names;
  SymbolTable symbols(module);
  for (Operation &op : *other.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    bool updates = function && function.getName().split('.').first == "update";
    if ((!function && !isa<memref::GlobalOp>(op)) || updates)
      continue;
    StringAttr name = SymbolTable::getSymbolName(&op);
    names[name] = builder.getStringAttr(graph::freeSymbol(symbols, name.getValue() + "." + Twine(size)));
    moved.push_back(&op);
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FlatSymbolRefAttr symbol) -> std::optional<Attribute> {
    auto found = names.find(symbol.getAttr());
    return found == names.end() ? symbol : FlatSymbolRefAttr::get(found->second);
  });
  for (Operation *op : moved) {
    replacer.recursivelyReplaceElementsIn(op);
    SymbolTable::setSymbolName(op, names.lookup(SymbolTable::getSymbolName(op)));
    op->remove();
    module.push_back(op);
    if (StringRef name = SymbolTable::getSymbolName(op).getValue();
        name.starts_with("micro_batch.") || name.starts_with("evaluate."))
      op->setAttr(exec::kVariantAttr, builder.getI64IntegerAttr(size));
  }
  return success();
}

} // namespace dsopt
