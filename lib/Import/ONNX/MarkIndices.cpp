//===- MarkIndices.cpp - facts about look-ups that the operators do not say ===//

#include "MarkIndices.h"

#include "dsopt/Dialect/Graph/Derivatives.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Globs.h"

using namespace mlir;
using namespace dsopt;

LogicalResult dsopt::onnx_import::markPadding(ModuleOp module, const ImportOptions &options) {
  for (const auto &[glob, row] : options.paddingIndex) {
    FailureOr<Glob> pattern = Glob::parse("padding-index", glob, [&] { return module.emitError(); });
    if (failed(pattern))
      return failure();
    bool found = false;
    SmallVector<StringRef> names;
    LogicalResult result = success();
    module.walk([&, row = row](graph::GatherOp gather) {
      auto read = gather.getData().getDefiningOp<graph::ReadOp>();
      auto parameter = read ? module.lookupSymbol<graph::ParameterOp>(read.getState()) : nullptr;
      if (!parameter || gather.getAxis() != 0)
        return;
      names.push_back(parameter.getModelName());
      if (!pattern->matches(parameter.getModelName()))
        return;
      found = true;
      int64_t rows = cast<ShapedType>(gather.getData().getType()).getDimSize(0);
      if (row < 0 || row >= rows)
        result = module.emitError("-padding-index=")
                 << parameter.getModelName() << "=" << row << ": the embedding has " << rows << " rows";
      gather.setPaddingIndex(row);
    });
    if (failed(result))
      return failure();
    if (!found)
      return module.emitError("-padding-index=")
             << glob << " matches no embedding of the model" << nearMatches(glob, names);
  }
  return success();
}

/// Notes at the input that `indices` come from by mere data movement that they
/// stay below `bound` and, if they look something up, not below `least`.
static void noteBound(Value indices, int64_t bound, std::optional<int64_t> least) {
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
  unsigned number = argument.getArgNumber();
  Builder builder(function.getContext());
  if (auto known = function.getArgAttrOfType<IntegerAttr>(number, graph::kBoundAttr))
    bound = std::min(bound, known.getInt());
  function.setArgAttr(number, graph::kBoundAttr, builder.getI64IntegerAttr(bound));
  if (!least)
    return;
  if (auto known = function.getArgAttrOfType<IntegerAttr>(number, graph::kLeastAttr))
    least = std::max(*least, known.getInt());
  function.setArgAttr(number, graph::kLeastAttr, builder.getI64IntegerAttr(*least));
}

template <typename Op> static void noteLookUp(Op gather) {
  int64_t size = cast<ShapedType>(gather.getData().getType()).getDimSize(gather.getAxis());
  bool isEmbedding = gather.getData().template getDefiningOp<graph::ReadOp>() && gather.getAxis() == 0;
  noteBound(gather.getIndices(), size, isEmbedding ? 0 : -size);
}

void dsopt::onnx_import::markBounds(ModuleOp module) {
  module.walk([](Operation *op) {
    if (auto gather = dyn_cast<graph::GatherOp>(op))
      noteLookUp(gather);
    else if (auto gather = dyn_cast<graph::GatherElementsOp>(op))
      noteLookUp(gather);
    else if (auto scatter = dyn_cast<graph::ScatterOp>(op)) {
      int64_t rows = cast<ShapedType>(scatter.getData().getType()).getDimSize(0);
      noteBound(scatter.getIndices(), rows, -rows);
    } else if (auto nll = dyn_cast<graph::NllOp>(op))
      noteBound(nll.getLabels(), cast<ShapedType>(nll.getLogits().getType()).getDimSize(1), std::nullopt);
    else if (auto ctc = dyn_cast<graph::CtcOp>(op)) {
      auto logs = cast<ShapedType>(ctc.getLogs().getType());
      auto targets = cast<ShapedType>(ctc.getTargets().getType());
      noteBound(ctc.getTargets(), logs.getDimSize(2), std::nullopt);
      noteBound(ctc.getInputLengths(), logs.getDimSize(0) + 1, std::nullopt);
      noteBound(ctc.getTargetLengths(), targets.getShape().back() + 1, std::nullopt);
    }
  });
}
