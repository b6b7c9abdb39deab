//===- SequenceRegion.cpp - operations that are cut along time ------------===//

#include "SequenceRegion.h"

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/SequenceOps.h"

#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

using namespace mlir;
using namespace dsopt;
using mlir::shard::ReductionKind;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

/// Dimensions of operands and results that are equal share a loop.
static bool isPointwise(Operation *op) {
  return isa<dist::SharedOp, dist::AllReduceOp, graph::TreeAddOp>(op);
}

std::optional<SequenceRegion::Loops> SequenceRegion::loopsOf(Operation *op) {
  Loops loops;
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  if (isPointwise(op)) {
    loops.dims.assign(values.size(), llvm::to_vector(llvm::seq(unsigned(shapeOf(values[0]).size()))));
    loops.parallel.assign(shapeOf(values[0]).size(), true);
    loops.sum.assign(loops.parallel.size(), false);
    return loops;
  }
  // Rows of the vocabulary's loss are by themselves; all else it sees whole.
  if (auto nll = dyn_cast<graph::LinearNllOp>(op)) {
    unsigned next = 1;
    loops.parallel.push_back(true);
    for (Value value : values) {
      auto &dims = loops.dims.emplace_back();
      for (unsigned dim = 0; dim < shapeOf(value).size(); ++dim) {
        bool isRow = dim == 0 && (value == nll.getX() || value == nll.getLabels() || value == nll.getLoss());
        dims.push_back(isRow ? 0 : next);
        if (!isRow) {
          loops.parallel.push_back(false);
          ++next;
        }
      }
    }
    loops.sum.assign(loops.parallel.size(), false);
    return loops;
  }
  auto interface = dyn_cast<shard::ShardingInterface>(op);
  if (!interface)
    return std::nullopt;
  for (AffineMap map : interface.getIndexingMaps()) {
    auto &dims = loops.dims.emplace_back();
    for (AffineExpr expr : map.getResults())
      dims.push_back(cast<AffineDimExpr>(expr).getPosition());
  }
  SmallVector<ReductionKind> kinds = interface.getReductionLoopIteratorKinds();
  for (utils::IteratorType type : interface.getLoopIteratorTypes()) {
    bool isParallel = type == utils::IteratorType::parallel;
    unsigned before = llvm::count(loops.parallel, false);
    loops.sum.push_back(!isParallel && (kinds[before] == ReductionKind::Sum || isa<graph::ReduceMeanOp>(op)));
    loops.parallel.push_back(isParallel);
  }
  // Rows that know their places are by themselves.
  if (auto sequence = dyn_cast<SequenceOpInterface>(op))
    loops.parallel[loops.dims[0][sequence.getRowDim()]] = true;
  return loops;
}

std::optional<TimeCut> SequenceRegion::cutOf(Value value) const {
  auto result = dyn_cast<OpResult>(value);
  return result && isCut(result.getOwner()) && !sums(result.getOwner()) ? madeAs(result) : std::nullopt;
}

std::optional<TimeCut> SequenceRegion::cutAt(Operation *op, unsigned number) const {
  auto known = chosen.find(op);
  return known == chosen.end() ? std::nullopt : known->second[number];
}

std::optional<int64_t> SequenceRegion::alongFirst(Operation *op, unsigned number, int64_t dim) {
  std::optional<Loops> loops = loopsOf(op);
  auto found = llvm::find(loops->dims[number], loops->dims[0][dim]);
  return found == loops->dims[number].end() ? std::nullopt
                                            : std::optional<int64_t>(found - loops->dims[number].begin());
}

/// What is made of inputs alone is whole everywhere, and so are parameters under any shape.
void SequenceRegion::classify(func::FuncOp forward) {
  for (Operation &op : forward.front().without_terminator()) {
    bool isRead = isa<graph::ReadOp>(op);
    bool isMade = isRead || llvm::any_of(op.getOperands(), [&](Value value) { return !isFree(value); });
    // The gradient of anything but a view would be computed of pieces here, and of their sum there.
    auto shared = dyn_cast<dist::SharedOp>(op);
    bool isView = (isa<graph::ReshapeOp, graph::TransposeOp>(op) || (shared && shared.getExact())) &&
                  isWeight(op.getOperand(0));
    for (Value result : op.getResults()) {
      if (isMade)
        computed.insert(result);
      if (isRead || isView)
        weights.insert(result);
    }
  }
}

/// Whether shards could have a value: what is free or a weight is taken in slices where it is read, and so is
/// along tp what all ranks compute alike.
bool SequenceRegion::canHave(Value value) const {
  if (axis == Axis::tp)
    return value.getDefiningOp() && isCut(value.getDefiningOp());
  return !isFree(value) && !isWeight(value);
}

void SequenceRegion::assign(Value value, TimeCut cut) {
  if (!canHave(value) || !cuts.try_emplace(value, cut).second)
    return;
  open.push_back(value.getDefiningOp());
  open.insert(open.end(), value.user_begin(), value.user_end());
}

LogicalResult SequenceRegion::seed(Operation *op, int64_t dim) {
  int64_t rows = shapeOf(op->getOperand(0))[dim];
  if (rows < shards)
    return op->emitError("has ") << rows << " positions, fewer than the " << shards
                                 << " sequence shards (-sp, -sequence-shards) that would have them";
  Loops loops = *loopsOf(op);
  // Behind the last position are some that mean nothing, where shards would not be equal.
  choose(op, loops, loops.dims[0][dim], {dim, 1, 0, int64_t(llvm::alignTo(rows, shards))});
  return success();
}

LogicalResult SequenceRegion::seed(func::FuncOp forward) {
  bool any = false;
  for (auto sequence : forward.getOps<SequenceOpInterface>()) {
    any = true;
    if (failed(seed(sequence, sequence.getRowDim())))
      return failure();
  }
  // Attention that is written as products: the rows of what a softmax over products is of.
  for (auto softmax : forward.getOps<graph::SoftmaxOp>()) {
    int64_t rank = shapeOf(softmax).size();
    if (isFree(softmax) || rank < 3 || int64_t(softmax.getAxis()) != rank - 1 ||
        shapeOf(softmax)[rank - 2] < 2)
      continue;
    any = true;
    if (failed(seed(softmax, rank - 2)))
      return failure();
  }
  if (!any)
    return forward.emitError(
        "has no attention, whose rows sequence shards (-sp, -sequence-shards) would be of");
  return success();
}

/// All that has the loop is cut along it.
void SequenceRegion::choose(Operation *op, const Loops &loops, unsigned loop, TimeCut cut) {
  Cuts own;
  for (ArrayRef<unsigned> dims : loops.dims) {
    const auto *dim = llvm::find(dims, loop);
    cut.dim = dim - dims.begin();
    own.push_back(dim == dims.end() ? std::nullopt : std::optional(cut));
  }
  if (!chosen.try_emplace(op, own).second)
    return;
  unsigned operands = op->getNumOperands();
  for (auto [number, each] : llvm::enumerate(own))
    if (each)
      assign(number < operands ? op->getOperand(number) : Value(op->getResult(number - operands)), *each);
}

/// The cut of the same elements under another shape.
static std::optional<TimeCut> throughReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to, TimeCut cut,
                                             int64_t shards) {
  int64_t outer = product(from.take_front(cut.dim)) * cut.parts,
          inner = product(from.drop_front(cut.dim + 1)), own = from[cut.dim] / cut.parts;
  for (auto [dim, size] : llvm::enumerate(to)) {
    int64_t before = product(to.take_front(dim)), behind = product(to.drop_front(dim + 1));
    if (outer % before || size % (outer / before))
      continue;
    int64_t parts = outer / before, other = size / parts;
    if (other * behind != own * inner)
      continue;
    if (inner % behind == 0) {
      int64_t factor = inner / behind;
      return TimeCut{(int64_t)dim, parts, cut.begin * factor, cut.length * factor};
    }
    int64_t factor = behind / inner;
    if (behind % inner == 0 && cut.begin % factor == 0 && cut.length % (factor * shards) == 0)
      return TimeCut{(int64_t)dim, parts, cut.begin / factor, cut.length / factor};
  }
  return std::nullopt;
}

void SequenceRegion::visit(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || chosen.contains(op))
    return;
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return visitView(reshape, [&](Value from, Value to, TimeCut cut) {
      return throughReshape(shapeOf(from), shapeOf(to), cut, shards);
    });
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    return visitView(slice, [&](Value from, Value, TimeCut cut) { return throughSlice(slice, from, cut); });
  if (auto windows = dyn_cast<graph::WindowsOp>(op)) {
    // Each position has its window.
    visitView(windows, [&](Value, Value, TimeCut cut) {
      return haloOf(windows, cut) ? std::optional(cut) : std::nullopt;
    });
    if (chosen.contains(op))
      return;
  }
  std::optional<Loops> loops = loopsOf(op);
  if (!loops)
    return;
  // A product of activations has the rows of its left side: its columns are what these meet.
  bool meets = isa<ProductOpInterface>(op) && op->getNumOperands() > 1 && canHave(op->getOperand(0)) &&
               canHave(op->getOperand(1));
  auto tryValue = [&](Value value, ArrayRef<unsigned> dims) {
    auto known = cuts.find(value);
    if (known == cuts.end() || !loops->parallel[dims[known->second.dim]])
      return false;
    choose(op, *loops, dims[known->second.dim], known->second);
    return true;
  };
  unsigned operands = op->getNumOperands();
  for (OpResult result : op->getResults())
    if (tryValue(result, loops->dims[operands + result.getResultNumber()]))
      return;
  for (OpOperand &operand : op->getOpOperands()) {
    ArrayRef<unsigned> dims = loops->dims[operand.getOperandNumber()];
    auto known = cuts.find(operand.get());
    if (meets && operand.getOperandNumber() == 1 && known != cuts.end() &&
        !llvm::is_contained(loops->dims[0], dims[known->second.dim]))
      continue;
    if (tryValue(operand.get(), dims))
      return;
  }
}

/// Follows a cut from one side of a view to the other, which has it as `through` says (none: it ends here).
void SequenceRegion::visitView(
    Operation *op, llvm::function_ref<std::optional<TimeCut>(Value from, Value to, TimeCut cut)> through) {
  Value from = op->getOperand(0), to = op->getResult(0);
  auto known = cuts.find(from), other = cuts.find(to);
  bool forward = known != cuts.end();
  if (!forward && other == cuts.end())
    return;
  TimeCut cut = forward ? known->second : other->second;
  std::optional<TimeCut> found = forward ? through(from, to, cut) : through(to, from, cut);
  if (!found || (forward && other != cuts.end() && other->second != *found))
    return;
  chosen.try_emplace(op, forward ? Cuts{cut, found} : Cuts{found, cut});
  assign(forward ? to : from, *found);
}

/// A slice of rows has the shards of all of them: those that it leaves out mean nothing.
std::optional<TimeCut> SequenceRegion::throughSlice(graph::SliceOp op, Value from, TimeCut cut) {
  int64_t size = shapeOf(op.getInput())[cut.dim], taken = shapeOf(op)[cut.dim];
  if (op.getSteps()[cut.dim] != 1)
    return std::nullopt;
  if (size == taken)
    return cut;
  bool isShort = cut.begin + op.getStarts()[cut.dim] + taken > cut.length;
  if (from != op.getInput() || cut.parts > 1 || axis == Axis::tp || isShort)
    return std::nullopt;
  if (2 * taken < size) {
    takes.insert(op);
    return std::nullopt;
  }
  cut.begin += op.getStarts()[cut.dim];
  return cut;
}

bool SequenceRegion::exceeds(Value value, TimeCut cut) {
  return shapeOf(value)[cut.dim] / cut.parts + cut.begin > cut.length;
}

static LogicalResult emitMixes(Operation *op) {
  return op->emitError("'") << op->getName()
                            << "' mixes positions, and says no rule by which sequence shards (-sp, "
                               "-sequence-shards) could";
}

/// What sees rows that are cut whole: sums add pieces, few rows are taken, and what costs little is computed
/// by every rank of what is gathered.
LogicalResult SequenceRegion::finish(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (std::optional<TimeCut> cut = cutOf(operand.get()); cut && exceeds(operand.get(), *cut))
      if (!chosen.contains(op) || sumOps.contains(op) || takenAs(operand) != cut)
        return emitMixes(op);
  if (chosen.contains(op) || takes.contains(op) || op->hasTrait<OpTrait::IsTerminator>())
    return success();
  std::optional<Loops> loops = loopsOf(op);
  bool any = false;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<TimeCut> cut = cutOf(operand.get());
    if (!cut)
      continue;
    any = true;
    if (!loops)
      continue;
    unsigned loop = loops->dims[operand.getOperandNumber()][cut->dim];
    if (loops->sum[loop] && op->getNumResults() == 1 &&
        isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()))) {
      sumOps.insert(op);
      choose(op, *loops, loop, *cut);
      return success();
    }
  }
  if (any && (!loops || isa<ProductOpInterface, SequenceOpInterface, graph::WindowsOp>(op)))
    return emitMixes(op);
  return success();
}

LogicalResult SequenceRegion::find(func::FuncOp forward) {
  classify(forward);
  if (failed(seed(forward)))
    return failure();
  while (!open.empty()) {
    Operation *op = open.front();
    open.pop_front();
    visit(op);
  }
  for (auto slice : forward.getOps<graph::SliceOp>())
    if (!cutOf(slice.getInput()))
      takes.erase(slice);
  for (Operation &op : forward.front())
    if (failed(finish(&op)))
      return failure();
  return success();
}
