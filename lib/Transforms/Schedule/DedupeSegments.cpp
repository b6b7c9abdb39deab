//===- DedupeSegments.cpp - equal segments become one function ------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Transforms/Schedule/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace dsopt {
#define GEN_PASS_DEF_DEDUPESEGMENTS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
class DedupeSegments : public dsopt::impl::DedupeSegmentsBase<DedupeSegments> {
public:
  using DedupeSegmentsBase::DedupeSegmentsBase;
  void runOnOperation() override;
};
} // namespace

/// The segment's text without what may differ: its name and which block, stage,
/// bucket, parameter, gradient and constant it serves.
static std::string fingerprint(func::FuncOp segment) {
  MLIRContext *context = segment.getContext();
  OwningOpRef<func::FuncOp> copy = segment.clone();
  copy->setSymName("segment");
  for (NamedAttribute attribute : llvm::to_vector(copy->getOperation()->getDiscardableAttrs()))
    if (attribute.getName() != exec::kTempAttr)
      copy->getOperation()->removeDiscardableAttr(attribute.getName());
  for (unsigned i = 0; i < copy->getNumArguments(); ++i) {
    Attribute access = copy->getArgAttr(i, exec::kAccessAttr);
    NamedAttrList kept;
    if (access)
      kept.set(exec::kAccessAttr, access);
    copy->setArgAttrs(i, kept.getDictionary(context));
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->getOperation()->print(os, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs(INT64_MAX));
  return text;
}

void DedupeSegments::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::StringMap<func::FuncOp> known;
  struct Merged {
    FlatSymbolRefAttr name;
    IntegerAttr block;
    std::optional<exec::BlockPhase> phase;
  };
  llvm::DenseMap<StringAttr, Merged> renamed;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!function->hasAttr(exec::kSegmentAttr))
      continue;
    auto [it, fresh] = known.try_emplace(fingerprint(function), function);
    if (fresh)
      continue;
    Merged &merged = renamed[function.getSymNameAttr()];
    merged.name = FlatSymbolRefAttr::get(it->second.getSymNameAttr());
    merged.block = function->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
    if (auto phase = function->getAttrOfType<StringAttr>(graph::kPhaseAttr))
      merged.phase = exec::symbolizeBlockPhase(phase.getValue());
    function.erase();
  }
  if (renamed.empty())
    return markAllAnalysesPreserved();
  module.walk([&](exec::RunOp run) {
    auto it = renamed.find(run.getSegmentAttr().getAttr());
    if (it == renamed.end())
      return;
    const Merged &merged = it->second;
    run.setSegmentAttr(merged.name);
    // What it runs is still its own block.
    if ((int64_t)run.getBlock() < 0 && merged.block && merged.phase) {
      run.setBlock(merged.block.getInt());
      run.setPhase(*merged.phase);
    }
  });
}
