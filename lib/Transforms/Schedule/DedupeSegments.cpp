//===- DedupeSegments.cpp - equal segments become one function ------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Schedule/Parts.h"
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
  copy->getOperation()->print(
      os, OpPrintingFlags().useLocalScope().assumeVerified().elideLargeElementsAttrs(INT64_MAX));
  return text;
}

void DedupeSegments::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::StringMap<func::FuncOp> known;
  struct Shared {
    FlatSymbolRefAttr segment;
    exec::PartAttr part; ///< that the one before computed
  };
  llvm::DenseMap<StringAttr, Shared> renamed;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!function->hasAttr(exec::kSegmentAttr))
      continue;
    auto [it, fresh] = known.try_emplace(fingerprint(function), function);
    if (fresh)
      continue;
    renamed[function.getSymNameAttr()] = {FlatSymbolRefAttr::get(it->second.getSymNameAttr()),
                                          getPart(function)};
    function.erase();
  }
  if (renamed.empty())
    return markAllAnalysesPreserved();
  module.walk([&](exec::RunOp run) {
    auto shared = renamed.find(run.getSegmentAttr().getAttr());
    if (shared == renamed.end())
      return;
    if (!run.getPartAttr())
      run.setPartAttr(shared->second.part);
    run.setSegmentAttr(shared->second.segment);
  });
}
