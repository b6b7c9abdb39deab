//===- ExecAttributes.cpp - the exec dialect's attributes on others -------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/AttributeTable.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OptionsDialect.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

static const AttributeKind kAccessKind = {"an access: #exec.access<read>, <write>, <update> or <add>",
                                          isAttribute<AccessModeAttr>};

/// Whether a dictionary has an entry of this kind, or none where it may be missing.
template <typename AttrTy> static bool hasEntry(DictionaryAttr entries, StringRef name, bool needed = true) {
  Attribute value = entries.get(name);
  return value ? isa<AttrTy>(value) : !needed;
}

static bool areInputs(Attribute value) {
  auto inputs = dyn_cast<ArrayAttr>(value);
  return inputs && llvm::all_of(inputs, [](Attribute one) {
           auto input = dyn_cast<DictionaryAttr>(one);
           return input && hasEntry<StringAttr>(input, "name") && hasEntry<TypeAttr>(input, "type") &&
                  hasEntry<BoolAttr>(input, "label") && hasEntry<IntegerAttr>(input, "ignore_index") &&
                  hasEntry<IntegerAttr>(input, "bound", false) &&
                  hasEntry<IntegerAttr>(input, "least", false) && hasEntry<TypeAttr>(input, "source", false);
         });
}

static bool isDimension(Attribute value) {
  auto dimension = dyn_cast<DictionaryAttr>(value);
  return dimension && hasEntry<StringAttr>(dimension, "name") && hasEntry<IntegerAttr>(dimension, "size");
}

static bool areOutputs(Attribute value) {
  auto outputs = dyn_cast<ArrayAttr>(value);
  return outputs && llvm::all_of(outputs, [](Attribute one) {
           auto output = dyn_cast<DictionaryAttr>(one);
           return output && hasEntry<StringAttr>(output, "name") && hasEntry<TypeAttr>(output, "type");
         });
}
static const AttributeKind kOutputsKind = {"dictionaries of name, type and those of other sizes", areOutputs};

static bool areMetrics(Attribute value) {
  auto metrics = dyn_cast<ArrayAttr>(value);
  return metrics && llvm::all_of(metrics, [](Attribute one) {
           auto metric = dyn_cast<DictionaryAttr>(one);
           return metric && hasEntry<StringAttr>(metric, "name") && hasEntry<StringAttr>(metric, "combine") &&
                  symbolizeCombine(metric.getAs<StringAttr>("combine").getValue()) &&
                  hasEntry<DenseI64ArrayAttr>(metric, "parts");
         });
}
static const AttributeKind kMetricsKind = {"dictionaries of name, combine and parts", areMetrics};
static const AttributeKind kInputsKind = {
    "dictionaries of name, type, label, ignore_index and, of some, bound, least, source", areInputs};
static const AttributeKind kDimensionKind = {"a dictionary of name and size", isDimension};

static bool areSymbols(Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return names && llvm::all_of(names, llvm::IsaPred<FlatSymbolRefAttr>);
}
static const AttributeKind kSymbolsKind = {"an array of symbols", areSymbols};

static bool areTouches(Attribute value) {
  auto touches = dyn_cast<ArrayAttr>(value);
  return touches && llvm::all_of(touches, llvm::IsaPred<TouchAttr>);
}
static const AttributeKind kTouchesKind = {"an array of #exec.touch", areTouches};

static const AttributeKind kProductKind = {"a #exec.product", isAttribute<ProductAttr>};
static const AttributeKind kBlockingKind = {"a #exec.blocking", isAttribute<BlockingAttr>};
static const AttributeKind kGemmTableKind = {"a #exec.gemm_table", isAttribute<GemmTableAttr>};

static constexpr llvm::StringLiteral kCalls[] = {"a call of a segment"};
static bool isCall(Operation *op) { return isa<LaunchOp, RuntimeCallOpInterface>(op); }
static constexpr llvm::StringLiteral kAction[] = {"an action"};

using On = AttributePlace;
static const AttributeRow kAttributes[] = {
    {kSegmentAttr, On::Function, kUnitKind},
    {kTempAttr, On::Function, kCountKind},
    {kFlopsAttr, On::Function, kCountKind},
    {kPicosecondsAttr, On::Function, kCountKind},
    {kFlopsAttr, On::Operation, kCountKind, kCalls, isCall},
    {kPerBlockAttr, On::Function, kCountKind},
    {kProductAttr, On::Function, kProductKind},
    {kBlockingAttr, On::Function, kBlockingKind},
    {kPacksAttr, On::Function, kUnitKind},
    {kGemmTableAttr, On::Module, kGemmTableKind},
    {kCallsAttr, On::Function, kExtentsKind},
    {kCallsAttr, On::Module, kDictionariesKind},
    {kUpdateCallsAttr, On::Module, kCountsKind},
    {kInputsAttr, On::Module, kInputsKind},
    {kMetricsAttr, On::Module, kMetricsKind},
    {kOutputsAttr, On::Module, kOutputsKind},
    {kDimensionAttr, On::Module, kDimensionKind},
    {kBuiltWithAttr, On::Module, kDictionaryKind},
    {kVariantAttr, On::Module, kCountKind},
    {kVariantAttr, On::Function, kCountKind},
    {kChangesAttr, On::Operation, kSymbolsKind, kAction, isAction},
    {kTouchesAttr, On::Operation, kTouchesKind, kAction, isAction},
    {kAccessAttr, On::Argument, kAccessKind},
    {kParameterAttr, On::Argument, kSymbolKind},
    {kGradientAttr, On::Argument, kSymbolKind},
    {kCacheAttr, On::Argument, kSymbolKind},
    {kConstantAttr, On::Argument, kSymbolKind},
};

void dsopt::exec::keepOptions(ModuleOp module) {
  NamedAttrList kept;
  for (StringRef name : builtOptions())
    if (Attribute value = getOption(module, name))
      kept.set(name, value);
  if (Attribute target = module->getAttr(kTargetAttr))
    kept.set("target", target);
  module->setAttr(kBuiltWithAttr, kept.getDictionary(module.getContext()));
}

/// Whether the options still are those that the programs were built with.
static LogicalResult verifyBuiltWith(ModuleOp module, DictionaryAttr built) {
  if (built.get("target") != module->getAttr(kTargetAttr))
    return module.emitError(kTargetAttr)
           << " is not what the programs were built for: start from the stage before them to change it";
  for (StringRef name : builtOptions()) {
    Attribute now = getOption(module, name), then = built.get(name);
    if (now == then)
      continue;
    InFlightDiagnostic diag = module.emitError("dsopt.options has ");
    (now ? diag << name << " = " << now : diag << "no " << name) << ", but the programs were built with ";
    (then ? diag << then : diag << "its default") << ": start from the stage before them to change it";
    return diag;
  }
  return success();
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyAttribute(kAttributes, op, attribute)))
    return failure();
  if (attribute.getName() == kBuiltWithAttr)
    return verifyBuiltWith(cast<ModuleOp>(op), cast<DictionaryAttr>(attribute.getValue()));
  return success();
}

LogicalResult ExecDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  return verifyArgumentAttribute(kAttributes, op, argument, attribute);
}

LogicalResult ExecDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                       NamedAttribute attribute) {
  return verifyResultAttribute(kAttributes, op, result, attribute);
}
