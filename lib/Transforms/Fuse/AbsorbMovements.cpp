//===- AbsorbMovements.cpp - routines take strides instead of copies ------===//
//
// First sums of slices' gradients that cover their result become concatenations.
// Then views are marked: those that are read by routines alone, then those that
// routines write through.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Layouts.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_ABSORBMOVEMENTS
#include "dsopt/Transforms/Fuse/Passes.h.inc"

using graph::Layout;

namespace {
RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool sameGroup(Operation *a, Operation *b) {
  return a->getAttr(graph::kBlockAttr) == b->getAttr(graph::kBlockAttr) &&
         a->getAttr(graph::kPhaseAttr) == b->getAttr(graph::kPhaseAttr);
}

struct AbsorbMovements : impl::AbsorbMovementsBase<AbsorbMovements> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(graph::kIterateAttr))
        continue;
      Block &body = function.front();
      for (Operation &op : llvm::make_early_inc_range(body))
        if (auto add = dyn_cast<graph::AddOp>(op))
          concatenate(add);
      markReads(body);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
        markWrites(&op);
    }
  }

private:
  void concatenate(graph::AddOp add);
  void markReads(Block &body);
  void markWrites(Operation *last);
  bool collectWrites(Operation *movement, const Layout &layout, SmallVectorImpl<Operation *> &marked);
};
} // namespace

/// add(slice_grad(a), slice_grad(b), ...) as concat(a, b, ...), where the slices are all of the result.
void AbsorbMovements::concatenate(graph::AddOp add) {
  auto isPart = [&](Operation *op) {
    return op->hasOneUse() && sameGroup(op, add) && op->getResult(0).getType() == add.getType();
  };
  // Only the last addition of a tree is looked at.
  if (add->hasOneUse() && isa<graph::AddOp>(*add->user_begin()) && isPart(add) &&
      sameGroup(*add->user_begin(), add))
    return;
  SmallVector<graph::SliceGradOp> parts;
  SmallVector<Operation *> sums{add};
  for (size_t i = 0; i < sums.size(); ++i)
    for (Value operand : sums[i]->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (!op || !isPart(op))
        return;
      if (auto part = dyn_cast<graph::SliceGradOp>(op))
        parts.push_back(part);
      else if (isa<graph::AddOp>(op))
        sums.push_back(op);
      else
        return;
    }
  RankedTensorType type = typeOf(add.getResult());
  int64_t axis = -1;
  for (auto [dim, size] : llvm::enumerate(typeOf(parts.front().getInput()).getShape()))
    if (size != type.getDimSize(dim)) {
      if (axis >= 0)
        return;
      axis = dim;
    }
  if (axis < 0)
    return;
  llvm::sort(parts, [&](graph::SliceGradOp a, graph::SliceGradOp b) {
    return a.getStarts()[axis] < b.getStarts()[axis];
  });
  int64_t end = 0;
  SmallVector<Value> inputs;
  for (graph::SliceGradOp part : parts) {
    for (auto [dim, size, start, step] :
         llvm::enumerate(typeOf(part.getInput()).getShape(), part.getStarts(), part.getSteps()))
      if (step != 1 || (int64_t(dim) == axis ? start != end : start != 0 || size != type.getDimSize(dim)))
        return;
    end += typeOf(part.getInput()).getDimSize(axis);
    inputs.push_back(part.getInput());
  }
  if (end != type.getDimSize(axis))
    return;
  OpBuilder builder(add);
  auto concat = graph::ConcatOp::create(builder, add.getLoc(), inputs, axis);
  concat->setDiscardableAttrs(add->getDiscardableAttrDictionary());
  add.replaceAllUsesWith(concat.getResult());
  // Users come before what they use.
  for (Operation *sum : sums)
    sum->erase();
  for (graph::SliceGradOp part : parts)
    part->erase();
}

/// Transpositions and slices that nothing but routines (through other views) read.
void AbsorbMovements::markReads(Block &body) {
  llvm::SetVector<Operation *> views;
  for (Operation &op : body)
    if (isa<graph::ReshapeOp, graph::TransposeOp, graph::SliceOp>(op))
      views.insert(&op);
  // A view keeps its whole source alive: slices have to be all of it.
  auto covers = [&](Value source) {
    int64_t elements = 0;
    for (Operation *user : source.getUsers())
      if (isa<graph::SliceOp>(user) && views.contains(user))
        elements += graph::numElements(user->getResult(0).getType());
    return elements >= graph::numElements(source.getType());
  };
  llvm::DenseMap<Operation *, Layout> layouts;
  auto fits = [&](Operation *op) {
    Operation *source = op->getOperand(0).getDefiningOp();
    auto layout = graph::resultLayout(op, views.contains(source)
                                              ? layouts[source]
                                              : Layout::contiguous(typeOf(op->getOperand(0)).getShape()));
    if (!layout || (isa<graph::SliceOp>(op) && !covers(op->getOperand(0))))
      return false;
    layouts[op] = *layout;
    return llvm::all_of(op->getUses(), [&](OpOperand &use) {
      return views.contains(use.getOwner()) ||
             (graph::takesStrides(use.getOwner()) && graph::canRead(use, *layout));
    });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::to_vector(views))
      if (!fits(op)) {
        views.remove(op);
        changed = true;
      }
  }
  for (Operation *op : views)
    if (!isa<graph::ReshapeOp>(op))
      graph::setView(op, graph::View::Read);
}

/// The movements from routines' results to a movement whose result has this layout; false where
/// an operand comes from something else or is needed elsewhere too.
bool AbsorbMovements::collectWrites(Operation *movement, const Layout &layout,
                                    SmallVectorImpl<Operation *> &marked) {
  if (!isa<graph::ReshapeOp, graph::TransposeOp, graph::ConcatOp>(movement) ||
      graph::viewOf(movement) != graph::View::None)
    return false;
  marked.push_back(movement);
  return llvm::all_of(movement->getOpOperands(), [&](OpOperand &operand) {
    Value value = operand.get();
    Operation *producer = value.getDefiningOp();
    if (!producer || !sameGroup(producer, movement))
      return false;
    std::optional<Layout> inner = graph::operandLayout(operand, layout);
    if (!inner)
      return false;
    // A routine's transposed result may be read by routines as well: as the inverse of what is written.
    if (graph::takesStrides(producer) && graph::canWrite(cast<OpResult>(value), *inner))
      return value.hasOneUse() ||
             (isa<graph::TransposeOp>(movement) && marked.size() == 1 &&
              llvm::all_of(value.getUses(), [&](OpOperand &use) {
                return use.getOwner() == movement ||
                       (graph::takesStrides(use.getOwner()) && graph::canRead(use, *inner));
              }));
    return value.hasOneUse() && collectWrites(producer, *inner, marked);
  });
}

void AbsorbMovements::markWrites(Operation *last) {
  SmallVector<Operation *> marked;
  if (!isa<graph::TransposeOp, graph::ConcatOp>(last) ||
      !collectWrites(last, Layout::contiguous(typeOf(last->getResult(0)).getShape()), marked))
    return;
  for (Operation *op : marked)
    graph::setView(op, graph::View::Write);
  auto transpose = dyn_cast<graph::TransposeOp>(last);
  if (!transpose || transpose.getInput().hasOneUse())
    return;
  SmallVector<int64_t> inverse(transpose.getPerm().size());
  for (auto [dim, source] : llvm::enumerate(transpose.getPerm()))
    inverse[source] = dim;
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  auto back = graph::TransposeOp::create(builder, last->getLoc(), transpose.getResult(),
                                         builder.getDenseI64ArrayAttr(inverse));
  back->setDiscardableAttrs(last->getDiscardableAttrDictionary());
  graph::setView(back, graph::View::Read);
  transpose.getInput().replaceUsesWithIf(back.getResult(),
                                         [&](OpOperand &use) { return use.getOwner() != last; });
}
} // namespace dsopt
