//===- DedupeSegments.cpp - equal segments become one function ------------===//

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/EqualFunctions.h"
#include "dsopt/Transforms/Arena/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_DEDUPESEGMENTS
#include "dsopt/Transforms/Arena/Passes.h.inc"
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

/// What has to be equal beside body and type: not which block, stage, bucket, parameter, gradient and
/// constant a segment serves.
static DictionaryAttr traitsOf(func::FuncOp segment) {
  Builder builder(segment.getContext());
  NamedAttrList traits;
  if (Attribute temp = segment->getAttr(exec::kTempAttr))
    traits.set(exec::kTempAttr, temp);
  SmallVector<Attribute> accesses;
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    Attribute access = segment.getArgAttr(i, exec::kAccessAttr);
    accesses.push_back(access ? access : builder.getUnitAttr());
  }
  traits.set(exec::kAccessAttr, builder.getArrayAttr(accesses));
  return traits.getDictionary(segment.getContext());
}

void DedupeSegments::runOnOperation() {
  ModuleOp module = getOperation();
  EqualFunctions segments;
  struct Shared {
    FlatSymbolRefAttr segment;
    exec::PartAttr part; ///< that the one before computed
  };
  llvm::DenseMap<StringAttr, Shared> renamed;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!function->hasAttr(exec::kSegmentAttr) || function->hasAttr(graph::kMatrixUpdateAttr))
      continue;
    func::FuncOp known = segments.findOrInsert(function, traitsOf(function));
    if (known == function)
      continue;
    renamed[function.getSymNameAttr()] = {FlatSymbolRefAttr::get(known.getSymNameAttr()), getPart(function)};
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
