//===- MarkIndices.cpp - facts about look-ups that the operators do not say ===//

#include "MarkIndices.h"

#include "dsopt/Dialect/Graph/Derivatives.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace dsopt;

LogicalResult dsopt::onnx_import::markPadding(ModuleOp module, const ImportOptions &options) {
  for (const auto &[glob, row] : options.paddingIndex) {
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
    if (!pattern)
      return module.emitError("-padding-index=") << glob << ": " << llvm::toString(pattern.takeError());
    bool found = false;
    LogicalResult result = success();
    module.walk([&, row = row](graph::GatherOp gather) {
      auto read = gather.getData().getDefiningOp<graph::ReadOp>();
      auto parameter = read ? module.lookupSymbol<graph::ParameterOp>(read.getState()) : nullptr;
      if (!parameter || gather.getAxis() != 0 || !pattern->match(parameter.getModelName()))
        return;
      found = true;
      int64_t rows = cast<ShapedType>(gather.getData().getType()).getDimSize(0);
      if (row < 0 || row >= rows)
        result = module.emitError("-padding-index=")
                 << parameter.getModelName() << "=" << row << ": the embedding has " << rows << " rows";
      gather->setAttr(graph::kPaddingIndexAttr, Builder(module.getContext()).getI64IntegerAttr(row));
    });
    if (failed(result))
      return failure();
    if (!found)
      return module.emitError("-padding-index=") << glob << " matches no embedding of the model";
  }
  return success();
}

/// Notes at the input that `indices` come from by mere data movement that they
/// stay below `bound`.
static void noteBound(Value indices, int64_t bound) {
  while (Operation *op = indices.getDefiningOp()) {
    if (!isa<graph::ReshapeOp, graph::SliceOp, graph::PadOp, graph::ExpandOp, graph::TransposeOp,
             graph::CastOp>(op))
      return;
    indices = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(indices);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !isa<IntegerType>(cast<ShapedType>(argument.getType()).getElementType()))
    return;
  if (auto known = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "graph.bound"))
    bound = std::min(bound, known.getInt());
  function.setArgAttr(argument.getArgNumber(), "graph.bound",
                      Builder(function.getContext()).getI64IntegerAttr(bound));
}

void dsopt::onnx_import::markBounds(ModuleOp module) {
  module.walk([](Operation *op) {
    if (auto gather = dyn_cast<graph::GatherOp>(op))
      noteBound(gather.getIndices(),
                cast<ShapedType>(gather.getData().getType()).getDimSize(gather.getAxis()));
    else if (auto nll = dyn_cast<graph::NllOp>(op))
      noteBound(nll.getLabels(), cast<ShapedType>(nll.getLogits().getType()).getDimSize(1));
  });
}
