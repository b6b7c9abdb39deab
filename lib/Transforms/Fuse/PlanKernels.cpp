//===- PlanKernels.cpp - which operations become one kernel ---------------===//
//
// One pass over the operations in order. An operation starts as a node of its
// own on the lowest level that its operands allow and then absorbs the kernels
// that produce its operands, where the union is still one loop. A kernel on a
// lower level may be absorbed if nothing that is placed so far reads it in
// between. Shapes and types decide, nothing else.
//
//===----------------------------------------------------------------------===//

#include "PlanKernels.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Graph/Layouts.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dsopt;

/// A row that is at least so long is worth a loop of its own.
static constexpr int64_t kShortRow = 64;
/// Below so many elements a kernel's parallelism does not matter. Forward has no such rule, nor one that asks
/// how many elements rows have together: whether two positions are computed or two thousand, their bits are
/// the same.
static constexpr int64_t kFewElements = 4096;
/// Above so many elements no operation joins a kernel of fewer rows than its own; in forward above so many of
/// one row.
static constexpr int64_t kManyElements = 65536, kManyOfRow = 8192;

bool dsopt::isSplat(Value value) {
  auto constant = value.getDefiningOp<graph::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  return elements && elements.isSplat();
}

void dsopt::collectBoundary(ArrayRef<Operation *> ops, SmallVectorImpl<Value> &inputs,
                            SmallVectorImpl<Value> &outputs) {
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
  llvm::SmallDenseSet<Value> seen;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!inside.contains(operand.getDefiningOp()) && !isSplat(operand) && seen.insert(operand).second)
        inputs.push_back(operand);
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        outputs.push_back(result);
  }
}

namespace {
FusionKind kindOf(Operation *op) {
  return graph::viewOf(op) != graph::View::None ? FusionKind::View
                                                : cast<LowerableOpInterface>(op).getFusionKind();
}
ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}
bool isReduction(FusionKind kind) {
  return kind == FusionKind::RowReduction || kind == FusionKind::ColumnReduction ||
         kind == FusionKind::Reduction;
}
/// The extents of the loops an operation is.
ArrayRef<int64_t> iterationShape(Operation *op) {
  return shapeOf(isReduction(kindOf(op)) ? op->getOperand(0) : op->getResult(0));
}
/// Leading dimensions that make rows when nothing else asks for others.
int64_t naturalRows(ArrayRef<int64_t> shape) {
  int64_t length = 1, rows = shape.size();
  while (rows > 0 && length < kShortRow)
    length *= shape[--rows];
  return rows;
}
/// The axes of any reduction of the dialect.
ArrayRef<int64_t> axesOf(Operation *op) { return cast<DenseI64ArrayAttr>(op->getAttr("axes")).asArrayRef(); }

class Planner {
public:
  Planner(Block &block, KernelLimits limits) : limits(limits) {
    for (auto [index, op] : llvm::enumerate(block))
      order[&op] = index;
  }

  LogicalResult place(Operation *op);
  std::vector<PlannedNode> take();

private:
  int nodeOf(Value value) {
    auto it = nodeIndex.find(value.getDefiningOp());
    return it == nodeIndex.end() ? -1 : it->second;
  }
  bool canJoin(int node, Operation *op) {
    const PlannedNode &other = nodes[node];
    Operation *first = other.ops.front();
    return other.isKernel && !other.alone &&
           first->getAttr(graph::kBlockAttr) == op->getAttr(graph::kBlockAttr) &&
           first->getAttr(graph::kPhaseAttr) == op->getAttr(graph::kPhaseAttr);
  }
  bool canRaise(int node, int64_t level, int target);
  std::optional<PlannedNode> unite(ArrayRef<int> members);
  bool fillRows(PlannedNode &node);
  bool fillColumns(PlannedNode &node);
  bool edgesFit(const PlannedNode &node);
  void replace(ArrayRef<int> members, int target, PlannedNode united);

  KernelLimits limits;
  llvm::DenseMap<Operation *, int64_t> order;
  std::vector<PlannedNode> nodes;
  llvm::DenseMap<Operation *, int> nodeIndex;
};

/// Whether the node can move to a level: all that read it are above.
bool Planner::canRaise(int node, int64_t level, int target) {
  for (Operation *op : nodes[node].ops)
    for (Operation *user : op->getUsers()) {
      auto it = nodeIndex.find(user);
      if (it != nodeIndex.end() && it->second != node && it->second != target &&
          nodes[it->second].level <= level)
        return false;
    }
  return true;
}

/// Rows: the leading dimensions that all operations share, as many as the
/// reductions keep, else as many as leave rows long enough.
bool Planner::fillRows(PlannedNode &node) {
  std::optional<int64_t> kept;
  int64_t natural = 0, deepest = 0, elements = 0;
  ArrayRef<int64_t> prefix = iterationShape(node.ops.front());
  for (Operation *op : node.ops) {
    ArrayRef<int64_t> shape = iterationShape(op);
    elements += product(shape);
    natural = std::max(natural, naturalRows(shape));
    deepest = std::max<int64_t>(deepest, shape.size() - 1);
    size_t common = 0;
    while (common < std::min(prefix.size(), shape.size()) && prefix[common] == shape[common])
      ++common;
    prefix = prefix.take_front(common);
    if (kindOf(op) == FusionKind::RowReduction) {
      // What names no axes reduces the last dimension.
      int64_t keeps = shape.size() - (op->hasAttr("axes") ? axesOf(op).size() : 1);
      if (kept && *kept != keeps)
        return false;
      kept = keeps;
    }
  }
  int64_t shared = prefix.size();
  std::optional<Phase> phase = graph::getPhase(node.ops.front());
  bool isForward = phase == Phase::F || phase == Phase::E;
  auto wantsMoreRows = [&](ArrayRef<int64_t> shape) {
    if (isForward)
      return int64_t(shape.size()) - 1 > *kept && product(shape.drop_front(*kept)) > kManyOfRow;
    return naturalRows(shape) > *kept && product(shape) > kManyElements;
  };
  if (kept) {
    if (*kept > shared)
      return false;
    for (Operation *op : node.ops)
      if (!isReduction(kindOf(op)) && wantsMoreRows(iterationShape(op)))
        return false;
  } else if (isForward ? deepest > shared : natural > shared && elements > kFewElements) {
    return false;
  }
  node.range.assign(prefix.begin(), prefix.begin() + kept.value_or(std::min(natural, shared)));
  return true;
}

/// Columns: sums of one shape and what is computed for them alone.
bool Planner::fillColumns(PlannedNode &node) {
  llvm::SmallPtrSet<Operation *, 32> inside(node.ops.begin(), node.ops.end());
  Operation *sum = nullptr;
  for (Operation *op : node.ops)
    if (kindOf(op) == FusionKind::ColumnReduction) {
      if (sum && (axesOf(sum) != axesOf(op) || iterationShape(sum) != iterationShape(op)))
        return false;
      sum = op;
    }
  for (Operation *op : node.ops) {
    if (kindOf(op) == FusionKind::ColumnReduction)
      continue;
    if (kindOf(op) == FusionKind::RowReduction || iterationShape(op) != iterationShape(sum) ||
        !llvm::all_of(op->getUsers(), [&](Operation *user) { return inside.contains(user); }))
      return false;
  }
  node.iterate = graph::Iteration::Columns;
  node.range.assign(iterationShape(sum).drop_front(axesOf(sum).size()));
  return true;
}

/// Whether what stays inside is read at the reader's own row.
bool Planner::edgesFit(const PlannedNode &node) {
  llvm::SmallPtrSet<Operation *, 32> inside(node.ops.begin(), node.ops.end());
  size_t rows = node.iterate == graph::Iteration::Rows ? node.range.size() : 0;
  for (Operation *op : node.ops)
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (!producer || !inside.contains(producer))
        continue;
      if (!cast<LowerableOpInterface>(op).readsPointwise(operand.getOperandNumber()) ||
          kindOf(producer) == FusionKind::ColumnReduction)
        return false;
      ArrayRef<int64_t> shape = shapeOf(operand.get());
      if (rows &&
          (shape.size() != iterationShape(op).size() || shape.take_front(rows) != ArrayRef(node.range)))
        return false;
    }
  return true;
}

/// The nodes as one kernel, if they can be one.
std::optional<PlannedNode> Planner::unite(ArrayRef<int> members) {
  PlannedNode united;
  united.isKernel = true;
  for (int member : members) {
    llvm::append_range(united.ops, nodes[member].ops);
    united.level = std::max(united.level, nodes[member].level);
  }
  llvm::sort(united.ops, [&](Operation *a, Operation *b) { return order[a] < order[b]; });
  if (int64_t(united.ops.size()) > limits.ops)
    return std::nullopt;
  bool columns =
      llvm::any_of(united.ops, [](Operation *op) { return kindOf(op) == FusionKind::ColumnReduction; });
  if (!(columns ? fillColumns(united) : fillRows(united)) || !edgesFit(united))
    return std::nullopt;
  SmallVector<Value> inputs, outputs;
  collectBoundary(united.ops, inputs, outputs);
  if (int64_t(inputs.size() + outputs.size()) > limits.pointers)
    return std::nullopt;
  return united;
}

void Planner::replace(ArrayRef<int> members, int target, PlannedNode united) {
  for (int member : members)
    nodes[member].ops.clear();
  for (Operation *op : united.ops)
    nodeIndex[op] = target;
  nodes[target] = std::move(united);
}

LogicalResult Planner::place(Operation *op) {
  auto lowerable = dyn_cast<LowerableOpInterface>(op);
  if (!isa<LowerableOpInterface, RoutineOpInterface, graph::ReadOp, graph::AccumulateOp, graph::WriteOp,
           graph::ConstantOp, graph::KernelOp, dist::ValueCollectiveOpInterface, dist::SharedOp>(op))
    return op->emitOpError("has no lowering to a kernel or to a routine of the runtime");

  PlannedNode node;
  node.ops.push_back(op);
  // State, routines and other kernels are no code of this one's.
  FusionKind kind = lowerable ? kindOf(op) : FusionKind::View;
  node.isKernel = kind != FusionKind::View;
  node.alone = kind == FusionKind::Reduction || kind == FusionKind::Alone;
  if (kind == FusionKind::ColumnReduction) {
    fillColumns(node);
  } else if (kind == FusionKind::Reduction) {
    llvm::SmallDenseSet<int64_t> axes(axesOf(op).begin(), axesOf(op).end());
    for (auto [dim, size] : llvm::enumerate(iterationShape(op)))
      if (!axes.contains(dim))
        node.range.push_back(size);
  } else if (node.isKernel) {
    fillRows(node);
  }

  // The lowest level above what cannot be joined, and the kernels that might be.
  llvm::SmallSetVector<int, 8> producers;
  for (Value operand : op->getOperands()) {
    int producer = nodeOf(operand);
    if (producer < 0)
      continue;
    bool joins = node.isKernel && !node.alone && canJoin(producer, op);
    node.level = std::max(node.level, nodes[producer].level + (joins ? 0 : 1));
    if (joins)
      producers.insert(producer);
  }
  int target = nodes.size();
  int64_t level = node.level;
  nodeIndex[op] = target;
  nodes.push_back(std::move(node));

  // Kernels on the same level have to be joined all together, or be below.
  SmallVector<int> candidates = producers.takeVector();
  SmallVector<int> members{target};
  for (int candidate : candidates)
    if (nodes[candidate].level == level)
      members.push_back(candidate);
  if (members.size() > 1) {
    if (auto united = unite(members))
      replace(members, target, std::move(*united));
    else
      nodes[target].level = level + 1;
  }
  llvm::stable_sort(candidates, [&](int a, int b) { return nodes[a].level > nodes[b].level; });
  for (int candidate : candidates) {
    if (nodes[candidate].ops.empty() || !canRaise(candidate, nodes[target].level, target))
      continue;
    if (auto united = unite({target, candidate}))
      replace({target, candidate}, target, std::move(*united));
  }
  return success();
}

std::vector<PlannedNode> Planner::take() {
  std::vector<PlannedNode> result;
  for (PlannedNode &node : nodes)
    if (!node.ops.empty())
      result.push_back(std::move(node));
  return result;
}
} // namespace

FailureOr<std::vector<PlannedNode>> dsopt::planKernels(Block &block, KernelLimits limits) {
  Planner planner(block, limits);
  for (Operation &op : block.without_terminator())
    if (op.getNumResults() != 1 || !isSplat(op.getResult(0)))
      if (failed(planner.place(&op)))
        return failure();
  return planner.take();
}
