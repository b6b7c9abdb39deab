//===- Layouts.cpp - values that lie in other values' bytes ---------------===//

#include "dsopt/Dialect/Graph/Layouts.h"
#include "GraphSupport.h"
#include "dsopt/Interfaces/Interfaces.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dsopt::graph {

View viewOf(Operation *op) {
  if (!op)
    return View::None;
  return TypeSwitch<Operation *, View>(op)
      .Case<ReshapeOp, TransposeOp, SliceOp, ConcatOp>([](auto movement) { return movement.getView(); })
      .Default([](Operation *) { return View::None; });
}
void setView(Operation *movement, View kind) {
  TypeSwitch<Operation *>(movement).Case<ReshapeOp, TransposeOp, SliceOp, ConcatOp>(
      [&](auto op) { op.setView(kind); });
}
bool isWriteView(Operation *op) { return viewOf(op) == View::Write; }
bool isReadView(Operation *op) {
  return viewOf(op) == View::Read || (isa_and_nonnull<ReshapeOp>(op) && !isWriteView(op));
}

bool isMadeInPlace(Operation *op) { return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<ReadOp>(op)); }

/// Whether a routine that takes these strides takes a layout.
static bool fits(Strides strides, const Layout &layout) {
  switch (strides) {
  case Strides::Contiguous:
    return layout.isContiguous();
  case Strides::Rows:
    return layout.hasContiguousRows();
  case Strides::Matrix:
    return layout.isMatrix();
  }
  llvm_unreachable("unknown strides");
}

bool takesStrides(Operation *op) {
  auto routine = dyn_cast_or_null<RoutineOpInterface>(op);
  return routine && llvm::any_of(llvm::seq(op->getNumOperands()), [&](unsigned operand) {
           return routine.getOperandStrides(operand) != Strides::Contiguous;
         });
}

bool canRead(OpOperand &operand, const Layout &layout) {
  auto routine = dyn_cast<RoutineOpInterface>(operand.getOwner());
  return fits(routine ? routine.getOperandStrides(operand.getOperandNumber()) : Strides::Contiguous, layout);
}

bool canWrite(OpResult result, const Layout &layout) {
  auto routine = dyn_cast<RoutineOpInterface>(result.getOwner());
  return fits(routine ? routine.getResultStrides(result.getResultNumber()) : Strides::Contiguous, layout);
}

Layout Layout::contiguous(ArrayRef<int64_t> shape) {
  Layout layout;
  layout.shape.assign(shape.begin(), shape.end());
  layout.strides.assign(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    layout.strides[dim] = layout.strides[dim + 1] * shape[dim + 1];
  return layout;
}

bool Layout::isContiguous() const { return offset == 0 && strides == contiguous(shape).strides; }

bool Layout::isMatrix() const {
  size_t rank = shape.size();
  if (rank < 2)
    return false;
  int64_t rows = shape[rank - 2], columns = shape[rank - 1], row = strides[rank - 2],
          column = strides[rank - 1];
  return (column == 1 && (rows == 1 || row >= columns)) || (row == 1 && (columns == 1 || column >= rows));
}

bool Layout::hasContiguousRows() const {
  return !shape.empty() && (strides.back() == 1 || shape.back() == 1);
}

/// The strides of the same elements in the same order under another shape; groups of
/// dimensions with equal products of extents correspond to each other.
static std::optional<Layout> reshaped(const Layout &from, ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return Layout::contiguous(shape);
  SmallVector<int64_t> extents, strides;
  for (auto [extent, stride] : llvm::zip_equal(from.shape, from.strides))
    if (extent != 1) {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  Layout to;
  to.offset = from.offset;
  to.shape.assign(shape.begin(), shape.end());
  to.strides.assign(shape.size(), 1);
  size_t oldFirst = 0, first = 0;
  while (first < shape.size() && oldFirst < extents.size()) {
    size_t oldLast = oldFirst + 1, last = first + 1;
    int64_t oldCount = extents[oldFirst], count = shape[first];
    while (oldCount != count)
      if (count < oldCount) {
        if (last == shape.size())
          return std::nullopt;
        count *= shape[last++];
      } else {
        if (oldLast == extents.size())
          return std::nullopt;
        oldCount *= extents[oldLast++];
      }
    for (size_t dim = oldFirst; dim + 1 < oldLast; ++dim)
      if (strides[dim] != strides[dim + 1] * extents[dim + 1])
        return std::nullopt;
    int64_t stride = strides[oldLast - 1];
    for (size_t dim = last; dim-- > first; stride *= shape[dim])
      to.strides[dim] = stride;
    oldFirst = oldLast;
    first = last;
  }
  return to;
}

std::optional<Layout> resultLayout(Operation *movement, const Layout &operand) {
  return TypeSwitch<Operation *, std::optional<Layout>>(movement)
      .Case<ReshapeOp>([&](ReshapeOp op) { return reshaped(operand, tensorType(op.getResult()).getShape()); })
      .Case<TransposeOp>([&](TransposeOp op) {
        Layout layout;
        layout.offset = operand.offset;
        for (int64_t dim : op.getPerm()) {
          layout.shape.push_back(operand.shape[dim]);
          layout.strides.push_back(operand.strides[dim]);
        }
        return layout;
      })
      .Case<SliceOp>([&](SliceOp op) -> std::optional<Layout> {
        Layout layout = operand;
        for (auto [dim, start, size, step] : llvm::enumerate(op.getStarts(), op.getSizes(), op.getSteps())) {
          if (step < 1)
            return std::nullopt;
          layout.offset += start * operand.strides[dim];
          layout.shape[dim] = size;
          layout.strides[dim] *= step;
        }
        return layout;
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Layout> operandLayout(OpOperand &operand, const Layout &result) {
  ArrayRef<int64_t> shape = tensorType(operand.get()).getShape();
  return TypeSwitch<Operation *, std::optional<Layout>>(operand.getOwner())
      .Case<ReshapeOp>([&](ReshapeOp) { return reshaped(result, shape); })
      .Case<TransposeOp>([&](TransposeOp op) {
        Layout layout = result;
        for (auto [dim, source] : llvm::enumerate(op.getPerm())) {
          layout.shape[source] = result.shape[dim];
          layout.strides[source] = result.strides[dim];
        }
        return layout;
      })
      .Case<ConcatOp>([&](ConcatOp op) {
        Layout layout = result;
        int64_t axis = op.getAxis();
        for (Value before : op.getInputs().take_front(operand.getOperandNumber()))
          layout.offset += tensorType(before).getDimSize(axis) * result.strides[axis];
        layout.shape.assign(shape.begin(), shape.end());
        return layout;
      })
      .Default([](Operation *) { return std::nullopt; });
}

Value storageOf(Value value) {
  while (isReadView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// The operand of a write view that a value is; others may read the value where it is written.
static OpOperand *writtenBy(Value value) {
  for (OpOperand &use : value.getUses())
    if (isWriteView(use.getOwner()))
      return &use;
  return nullptr;
}

Place locate(Value value) {
  Value root = storageOf(value);
  // Where the bytes at the end of the write views are.
  SmallVector<OpOperand *> writes;
  while (OpOperand *write = writtenBy(root)) {
    writes.push_back(write);
    root = write->getOwner()->getResult(0);
  }
  std::optional<Layout> layout = Layout::contiguous(tensorType(root).getShape());
  for (OpOperand *write : llvm::reverse(writes))
    layout = layout ? operandLayout(*write, *layout) : std::nullopt;
  SmallVector<Operation *> reads;
  for (; isReadView(value.getDefiningOp()); value = value.getDefiningOp()->getOperand(0))
    reads.push_back(value.getDefiningOp());
  for (Operation *read : llvm::reverse(reads))
    layout = layout ? resultLayout(read, *layout) : std::nullopt;
  return {root, layout};
}

} // namespace dsopt::graph
