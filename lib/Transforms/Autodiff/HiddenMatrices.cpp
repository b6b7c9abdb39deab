//===- HiddenMatrices.cpp - parameters that only products read ------------===//

#include "HiddenMatrices.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

using namespace mlir;
using namespace dsopt;

namespace {
/// The value of a parameter, or its transpose.
struct View {
  StringAttr parameter;
  bool isTransposed = false;
};

/// Whether a product of matrices sums over an operand's rows, not over its columns. None if the operand is
/// another operation's, or no matrix.
std::optional<bool> sumsOverRows(OpOperand &operand) {
  auto loops = dyn_cast<shard::ShardingInterface>(operand.getOwner());
  if (!loops || !isa<ProductOpInterface>(operand.getOwner()))
    return std::nullopt;
  SmallVector<AffineMap> maps = loops.getIndexingMaps();
  AffineMap map = maps[operand.getOperandNumber()];
  if (map.getNumResults() != 2 || !map.isProjectedPermutation())
    return std::nullopt;
  SmallVector<utils::IteratorType> kinds = loops.getLoopIteratorTypes();
  auto isSummed = [&](unsigned dimension) {
    return kinds[map.getDimPosition(dimension)] != utils::IteratorType::parallel;
  };
  if (isSummed(0) == isSummed(1))
    return std::nullopt;
  return isSummed(0);
}
} // namespace

llvm::DenseMap<StringAttr, HiddenMatrix> dsopt::findHiddenMatrices(func::FuncOp function) {
  llvm::DenseMap<Value, View> views;
  llvm::DenseMap<StringAttr, HiddenMatrix> found;
  llvm::DenseSet<StringAttr> others; ///< that something else reads
  StringAttr last;
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  llvm::DenseSet<Operation *> measuring = graph::measuringOnly(function);
  for (Operation &op : function.front()) {
    if (measuring.contains(&op))
      continue;
    if (auto read = dyn_cast<graph::ReadOp>(op)) {
      auto parameter = symbols.lookup<graph::ParameterOp>(read.getStateAttr().getAttr());
      views[read.getResult()] = {parameter ? graph::seenWhole(parameter) : read.getStateAttr().getAttr()};
      continue;
    }
    for (OpOperand &operand : op.getOpOperands()) {
      View view = views.lookup(operand.get());
      if (!view.parameter)
        continue;
      auto type = cast<RankedTensorType>(operand.get().getType());
      auto transpose = dyn_cast<graph::TransposeOp>(op);
      bool keeps = isa<graph::CastOp>(op) || (isa<graph::ReshapeOp>(op) && op.getResult(0).getType() == type);
      if (type.getRank() == 2 && (transpose || keeps)) {
        bool swaps = transpose && transpose.getPerm()[0] == 1;
        views[op.getResult(0)] = {view.parameter, view.isTransposed != swaps};
        continue;
      }
      std::optional<Phase> phase = graph::getPhase(&op);
      bool isForward = !phase || *phase == Phase::F;
      if (isForward && isa<ProductOpInterface>(op))
        last = view.parameter;
      std::optional<bool> overRows = sumsOverRows(operand);
      if (!overRows)
        others.insert(view.parameter);
      else if (isForward)
        found.try_emplace(view.parameter, HiddenMatrix{*overRows != view.isTransposed});
    }
  }
  for (StringAttr parameter : others)
    found.erase(parameter);
  found.erase(last);
  return found;
}
