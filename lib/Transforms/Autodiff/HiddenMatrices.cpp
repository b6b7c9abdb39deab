//===- HiddenMatrices.cpp - parameters that only products read ------------===//

#include "HiddenMatrices.h"
#include "dsopt/Interfaces/Interfaces.h"

using namespace mlir;
using namespace dsopt;

namespace {
/// The value of a parameter, or its transpose.
struct View {
  StringAttr parameter;
  bool isTransposed = false;
};
} // namespace

llvm::DenseMap<StringAttr, HiddenMatrix> dsopt::findHiddenMatrices(func::FuncOp function) {
  llvm::DenseMap<Value, View> views;
  llvm::DenseMap<StringAttr, HiddenMatrix> found;
  llvm::DenseSet<StringAttr> others; ///< that something else reads
  StringAttr last;
  for (Operation &op : function.front()) {
    if (auto read = dyn_cast<graph::ReadOp>(op)) {
      views[read.getResult()] = {read.getStateAttr().getAttr()};
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
      auto product = dyn_cast<graph::MatMulOp>(op);
      if (type.getRank() != 2 || !product) {
        others.insert(view.parameter);
        continue;
      }
      if (!isForward)
        continue;
      // A product sums over the columns of its left side and over the rows of its right side.
      bool isRight = operand.getOperandNumber() == 1;
      bool overRows = isRight ? !product.getTransposeB() : product.getTransposeA();
      found.try_emplace(view.parameter, HiddenMatrix{overRows != view.isTransposed});
    }
  }
  for (StringAttr parameter : others)
    found.erase(parameter);
  found.erase(last);
  return found;
}
