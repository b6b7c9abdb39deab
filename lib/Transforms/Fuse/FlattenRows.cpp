//===- FlattenRows.cpp - leading dimensions stay merged -------------------===//
//
// Exporters reshape around each product ([rows, C] to [batch, time, C] and
// back). A view between two operations keeps them from being one kernel, so it
// is moved behind the operations that do not care.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Transforms/Fuse/Passes.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_FLATTENROWS
#include "dsopt/Transforms/Fuse/Passes.h.inc"

namespace {
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

struct FlattenRows : impl::FlattenRowsBase<FlattenRows> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr(graph::kIterateAttr))
        for (Operation &op : llvm::make_early_inc_range(function.front()))
          if (op.getNumResults() == 1)
            flatten(&op);
  }

private:
  /// How many leading dimensions of a full-rank operand a reshape has split, 0 if it did something else.
  static int64_t splitDims(Value operand, ArrayRef<int64_t> loops) {
    auto reshape = operand.getDefiningOp<graph::ReshapeOp>();
    if (!reshape || typeOf(operand).getShape() != loops)
      return 0;
    ArrayRef<int64_t> source = typeOf(reshape.getInput()).getShape();
    int64_t dims = int64_t(loops.size()) - int64_t(source.size()) + 1;
    // A column of numbers, one a row, stays beside its rows.
    bool splits = source.size() >= 2 && dims >= 2 && source[0] == product(loops.take_front(dims)) &&
                  source.drop_front() == loops.drop_front(dims);
    return splits ? dims : 0;
  }

  /// What an operand is when the loops' first `dims` dimensions are one; nothing if it varies over some of
  /// them.
  static std::optional<SmallVector<int64_t>> flatShape(Value operand, ArrayRef<int64_t> loops, int64_t dims) {
    ArrayRef<int64_t> shape = typeOf(operand).getShape();
    int64_t inner = loops.size() - dims;
    if (int64_t(shape.size()) <= inner)
      return SmallVector<int64_t>(shape);
    SmallVector<int64_t> flat;
    ArrayRef<int64_t> lead = shape.drop_back(inner);
    if (product(lead) == 1)
      flat.push_back(1);
    else if (lead == loops.take_front(dims))
      flat.push_back(product(lead));
    else
      return std::nullopt;
    llvm::append_range(flat, shape.take_back(inner));
    return flat;
  }

  static Value reshaped(OpBuilder &builder, Operation *like, Value value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
    while (auto reshape = value.getDefiningOp<graph::ReshapeOp>())
      value = reshape.getInput();
    if (value.getType() == type)
      return value;
    auto reshape = graph::ReshapeOp::create(builder, like->getLoc(), type, value);
    for (StringRef name : {graph::kBlockAttr, graph::kPhaseAttr})
      if (Attribute attr = like->getAttr(name))
        reshape->setAttr(name, attr);
    return reshape;
  }

  void flatten(Operation *op) {
    auto lowerable = dyn_cast<LowerableOpInterface>(op);
    if (!lowerable || op->getNumOperands() == 0)
      return;
    FusionKind kind = lowerable.getFusionKind();
    bool reduces = kind == FusionKind::RowReduction || kind == FusionKind::ColumnReduction;
    if (reduces ? !op->hasAttr("axes") : kind != FusionKind::Pointwise)
      return;
    SmallVector<int64_t> loops(typeOf(reduces ? op->getOperand(0) : op->getResult(0)).getShape());
    int64_t dims = 0;
    for (Value operand : op->getOperands())
      dims = std::max(dims, splitDims(operand, loops));
    if (dims == 0)
      return;
    SmallVector<SmallVector<int64_t>> shapes;
    for (Value operand : op->getOperands()) {
      auto shape = flatShape(operand, loops, dims);
      if (!shape)
        return;
      shapes.push_back(std::move(*shape));
    }

    SmallVector<int64_t> result{product(ArrayRef(loops).take_front(dims))};
    llvm::append_range(result, ArrayRef(loops).drop_front(dims));
    SmallVector<int64_t> axes;
    if (reduces) {
      ArrayRef<int64_t> old = cast<DenseI64ArrayAttr>(op->getAttr("axes")).asArrayRef();
      bool rows = kind == FusionKind::RowReduction;
      // The merged dimensions are kept all, or reduced all.
      if (rows ? old.front() < dims : int64_t(old.size()) < dims)
        return;
      for (int64_t axis : old)
        if (axis >= dims - 1)
          axes.push_back(axis - dims + 1);
      bool keeps = op->hasAttr("keepdims");
      for (int64_t axis : llvm::reverse(axes))
        if (keeps)
          result[axis] = 1;
        else
          result.erase(result.begin() + axis);
    }

    OpBuilder builder(op);
    SmallVector<Value> operands;
    for (auto [operand, shape] : llvm::zip_equal(op->getOperands(), shapes))
      operands.push_back(reshaped(builder, op, operand, shape));
    Operation *flat = builder.clone(*op);
    flat->setOperands(operands);
    flat->getResult(0).setType(RankedTensorType::get(result, typeOf(op->getResult(0)).getElementType()));
    if (reduces)
      flat->setAttr("axes", builder.getDenseI64ArrayAttr(axes));
    op->replaceAllUsesWith(
        ValueRange(reshaped(builder, op, flat->getResult(0), typeOf(op->getResult(0)).getShape())));
    op->erase();
  }
};
} // namespace
} // namespace dsopt
