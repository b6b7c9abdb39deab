//===- MergeVariants.cpp - one program for several sizes of a dimension ---===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Transforms/Memory/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/OperationSupport.h"

namespace dsopt {
#define GEN_PASS_DEF_MERGEVARIANTS
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

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

/// Moves blocks, kernels and runs of `other`, the model with the dimension at `size`, into
/// `module`, under names of their own.
static LogicalResult merge(ModuleOp module, ModuleOp other, int64_t size) {
  if (failed(verifySame<dist::BucketOp>(module, other, size)) ||
      failed(verifySame<graph::StateOp>(module, other, size)) ||
      failed(verifySame<graph::CacheOp>(module, other, size)))
    return failure();
  Builder builder(module.getContext());
  SmallVector<func::FuncOp> moved;
  DenseMap<StringAttr, StringAttr> names;
  SymbolTable symbols(module);
  for (auto function : other.getOps<func::FuncOp>()) {
    // Parameters are updated once.
    if (function->hasAttr(graph::kInPlaceAttr) || function->hasAttr(graph::kMatrixUpdateAttr) ||
        !function.getBody().getOps<graph::WriteOp>().empty())
      continue;
    StringAttr name = function.getSymNameAttr();
    names[name] = builder.getStringAttr(graph::freeSymbol(symbols, name.getValue() + "." + Twine(size)));
    moved.push_back(function);
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FlatSymbolRefAttr symbol) -> std::optional<Attribute> {
    auto found = names.find(symbol.getAttr());
    return found == names.end() ? symbol : FlatSymbolRefAttr::get(found->second);
  });
  for (func::FuncOp function : moved) {
    replacer.recursivelyReplaceElementsIn(function);
    function.setSymNameAttr(names.lookup(function.getSymNameAttr()));
    function->remove();
    module.push_back(function);
    if (!function.getBody().getOps<graph::RunOp>().empty())
      function->setAttr(exec::kVariantAttr, builder.getI64IntegerAttr(size));
  }
  other.erase();
  return success();
}

namespace {
struct MergeVariants : dsopt::impl::MergeVariantsBase<MergeVariants> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto other : llvm::make_early_inc_range(module.getOps<ModuleOp>()))
      if (auto size = other->getAttrOfType<IntegerAttr>(exec::kVariantAttr);
          size && failed(merge(module, other, size.getInt())))
        return signalPassFailure();
  }
};
} // namespace
