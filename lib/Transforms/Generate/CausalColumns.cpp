//===- CausalColumns.cpp - proof that no row reads a later one ------------===//

#include "CausalColumns.h"

#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt;

/// What is added to a score at least makes its weight 0 in fp32.
static constexpr double kHidden = -1e30;

LogicalResult dsopt::proveCausal(Operation *op, ArrayRef<unsigned> columns) {
  SmallVector<Value> added;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.getOperandNumber() > 0 && !llvm::is_contained(columns, operand.getOperandNumber()))
      added.push_back(operand.get());
  if (added.empty())
    return op->emitOpError("reads positions behind its own: it has no mask");
  Value mask = added.front();
  while (auto view = mask.getDefiningOp<graph::ReshapeOp>())
    mask = view.getInput();
  auto constant = mask.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  if (!elements)
    return op->emitOpError("has a mask that is no constant: nothing proves that it hides later positions");
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t positions = shape.back(), rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  int64_t index = 0;
  for (const APFloat &number : elements.getValues<APFloat>()) {
    int64_t row = index / positions % rows, column = index % positions;
    ++index;
    if (rows == positions ? column <= row : column == 0)
      continue;
    if (!(number.convertToDouble() <= kHidden))
      return op->emitOpError("reads positions behind its own: its mask lets position ")
             << row << " read position " << column;
  }
  return success();
}
