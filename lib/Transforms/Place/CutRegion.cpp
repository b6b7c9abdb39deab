//===- CutRegion.cpp - operations that one cut goes through ---------------===//

#include "CutRegion.h"

#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Interfaces.h"

#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"

#include <numeric>

using namespace mlir;
using namespace dsopt;
using mlir::shard::ReductionKind;

namespace {
ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Dimensions of two shapes of equal elements that begin and end together.
struct Segment {
  int64_t begin, end; ///< of the first shape
  int64_t otherBegin, otherEnd;
};

/// The segment of `from` that has `dim`, and its counterpart in `to`.
std::optional<Segment> segmentOf(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim) {
  int64_t i = 0, j = 0, rank = from.size(), other = to.size();
  while (i < rank && j < other) {
    Segment segment{i, i + 1, j, j + 1};
    int64_t left = from[i++], right = to[j++];
    while (left != right) {
      if (left < right && i < rank)
        left *= from[i++];
      else if (right < left && j < other)
        right *= to[j++];
      else
        return std::nullopt;
    }
    segment.end = i;
    segment.otherEnd = j;
    if (segment.begin <= dim && dim < segment.end)
      return segment;
  }
  return std::nullopt;
}

/// The cut of the same elements under another shape; none where that has a dimension with a number in each
/// part that is not divided (`undivided`), or dimensions that begin and end elsewhere.
std::optional<ShardCut> throughReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to, ShardCut cut,
                                       int64_t shards, std::optional<ShardCut> &undivided) {
  std::optional<Segment> segment = segmentOf(from, to, cut.dim);
  if (!segment)
    return std::nullopt;
  if (segment->end - segment->begin == 1 && segment->otherEnd - segment->otherBegin == 1)
    return ShardCut{segment->otherBegin, cut.parts};
  int64_t parts = cut.parts;
  for (int64_t dim = segment->begin; dim < cut.dim; ++dim)
    parts *= from[dim];
  for (int64_t dim = segment->otherBegin; dim < segment->otherEnd; ++dim) {
    int64_t size = to[dim];
    if (size % parts == 0 && (size / parts) % shards == 0)
      return ShardCut{dim, parts};
    if (parts % size) {
      if (size % parts == 0)
        undivided = ShardCut{dim, parts};
      return std::nullopt;
    }
    parts /= size;
  }
  return std::nullopt;
}
} // namespace

bool CutRegion::fail(Operation *op, const Twine &reason) {
  why = ("'" + op->getName().getStringRef() + "' " + reason).str();
  return false;
}

std::optional<ShardCut> CutRegion::cutOf(Value value) const {
  auto it = cuts.find(value);
  return it == cuts.end() ? std::nullopt : std::optional(it->second);
}

bool CutRegion::failUndivided(int64_t size, int64_t parts) {
  why = (Twine(size) + (parts > 1 ? " in " + Twine(parts) + " parts" : Twine()) + " are not divided by " +
         Twine(shards))
            .str();
  return false;
}

bool CutRegion::isPadded(Value value) const {
  std::optional<ShardCut> cut = cutOf(value);
  return cut && cut->parts == 1 && shapeOf(value)[cut->dim] % shards != 0;
}

/// Whether zeros of a parameter behind the last element stay finite numbers that nothing else sees: what
/// ends there does not read them, and the gradients that lead back are zeros.
bool CutRegion::acceptsPadding(Operation *op) const {
  // A parameter has its padding at the end.
  if (auto read = dyn_cast<graph::ReadOp>(op))
    return cutOf(read)->dim == 0;
  if (auto division = dyn_cast<graph::DivOp>(op))
    return !cutOf(division.getRhs());
  return reducingOps.contains(op) ||
         (!sumOps.contains(op) &&
          isa<ProductOpInterface, graph::AddOp, graph::SubOp, graph::MulOp, graph::TanhOp, graph::CastOp,
              graph::RoundToOp, graph::TransposeOp, graph::ReshapeOp, graph::ConstantOp>(op));
}

bool CutRegion::assign(Value value, ShardCut cut) {
  auto [it, isNew] = cuts.try_emplace(value, cut);
  Operation *op = value.getDefiningOp();
  if (!isNew)
    return it->second == cut || fail(op ? op : *value.user_begin(), "would be cut in two ways");
  int64_t size = shapeOf(value)[cut.dim];
  bool isDivided = size % cut.parts == 0 && size / cut.parts % shards == 0;
  // Padding is of the last shard alone, which has something else, too.
  if (!isDivided && (cut.parts > 1 || (shards - 1) * elementsOfShard(size, cut, shards) >= size))
    return failUndivided(size, cut.parts);
  if (!op) {
    why = "an input would be cut";
    return false;
  }
  open.push_back(op);
  open.insert(open.end(), value.user_begin(), value.user_end());
  return true;
}

bool CutRegion::grow(Value value, ShardCut cut) {
  if (!assign(value, cut))
    return false;
  while (!open.empty()) {
    Operation *op = open.front();
    open.pop_front();
    bool isEnd = op->hasTrait<OpTrait::IsTerminator>();
    if (!isEnd)
      ops.insert(op);
    if (!(isEnd ? visitReturn(op) : visit(op)))
      return false;
    for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
      if (isPadded(value) && !acceptsPadding(op))
        return failUndivided(shapeOf(value)[cutOf(value)->dim], 1);
  }
  return true;
}

bool CutRegion::visit(Operation *op) {
  if (auto read = dyn_cast<graph::ReadOp>(op))
    return visitRead(read);
  if (auto constant = dyn_cast<graph::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue()) || !isPadded(constant) ||
           failUndivided(shapeOf(constant)[cutOf(constant)->dim], 1);
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return visitReshape(reshape);
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    return visitSlice(slice);
  if (auto concat = dyn_cast<graph::ConcatOp>(op))
    return visitConcat(concat);
  return visitLoops(op);
}

/// A parameter has one cut for all that read it, and for what replaces it.
bool CutRegion::visitRead(graph::ReadOp op) {
  ShardCut cut = *cutOf(op);
  auto function = cast<func::FuncOp>(op->getParentOp());
  Operation *end = function.front().getTerminator();
  for (const graph::Statistic &statistic : graph::statisticsOf(function))
    if (statistic.parameter == op.getStateAttr() && !assign(end->getOperand(statistic.result), cut))
      return false;
  return assignParameter(op.getStateAttr(), cut);
}

bool CutRegion::assignParameter(Attribute name, ShardCut cut) {
  return llvm::all_of(reads->lookup(name), [&](graph::ReadOp read) { return assign(read, cut); });
}

bool CutRegion::visitReshape(graph::ReshapeOp op) {
  Value input = op.getInput(), result = op.getResult();
  std::optional<ShardCut> known = cutOf(input), other = cutOf(result);
  bool forward = known.has_value();
  Value from = forward ? input : result, to = forward ? result : input;
  std::optional<ShardCut> undivided,
      cut = throughReshape(shapeOf(from), shapeOf(to), forward ? *known : *other, shards, undivided);
  // Heads are whole where there are too few of them, and each shard takes those that its own read.
  if (!cut && !forward && other->parts == 1)
    if (std::optional<SharedHeads> heads = headsOf(op); heads && heads->dim == other->dim) {
      takeOps.insert(op);
      return true;
    }
  if (undivided)
    return failUndivided(shapeOf(to)[undivided->dim], undivided->parts);
  return cut ? assign(to, *cut) : fail(op, "merges what is cut with what is not");
}

bool CutRegion::visitSlice(graph::SliceOp op) {
  Value input = op.getInput(), result = op.getResult();
  std::optional<ShardCut> known = cutOf(input), other = cutOf(result);
  bool forward = known.has_value();
  ShardCut cut = forward ? *known : *other;
  int64_t size = shapeOf(input)[cut.dim], taken = shapeOf(result)[cut.dim], start = op.getStarts()[cut.dim];
  if (size == taken && op.getSteps()[cut.dim] == 1)
    return assign(forward ? result : input, cut);
  // Of parts that are cut alike some are taken whole.
  int64_t unit = (forward ? size : taken) / cut.parts;
  if (op.getSteps()[cut.dim] != 1 || size % unit || taken % unit || start % unit) {
    if (taken > 0 && size % taken == 0 && start % taken == 0)
      wished.push_back(size / taken);
    return fail(op, "takes part of what is cut");
  }
  return forward ? assign(result, {cut.dim, taken / unit}) : assign(input, {cut.dim, size / unit});
}

/// Along the dimension that is cut, what is concatenated is parts of equal size, each cut alike.
bool CutRegion::visitConcat(graph::ConcatOp op) {
  int64_t axis = op.getAxis();
  SmallVector<Value> values(op.getInputs());
  values.push_back(op.getResult());
  auto known = llvm::find_if(values, [&](Value value) { return cutOf(value).has_value(); });
  ShardCut cut = *cutOf(*known);
  if (cut.dim != axis)
    return visitLoops(op);
  int64_t unit = shapeOf(*known)[axis] / cut.parts, common = unit;
  for (Value value : values)
    common = std::gcd(common, shapeOf(value)[axis]);
  if (common != unit) {
    wished.push_back(cut.parts * (unit / common));
    return fail(op, "joins parts of other sizes");
  }
  return llvm::all_of(values,
                      [&](Value value) { return assign(value, {axis, shapeOf(value)[axis] / unit}); });
}

/// What a micro-batch contributes to a running statistic may be cut, as the running value is then.
bool CutRegion::visitReturn(Operation *op) {
  auto statistics = graph::statisticsOf(cast<func::FuncOp>(op->getParentOp()));
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<ShardCut> cut = cutOf(operand.get());
    if (!cut)
      continue;
    auto known = llvm::find_if(
        statistics, [&](const auto &statistic) { return statistic.result == operand.getOperandNumber(); });
    if (known == statistics.end()) {
      why = "a result would be cut";
      return false;
    }
    if (!assignParameter(known->parameter, *cut))
      return false;
  }
  return true;
}

/// Whether the operation makes its results of shards of the one operand that is cut.
bool CutRegion::canReduce(Operation *op) const {
  auto reduction = dyn_cast<ShardedReductionOpInterface>(op);
  std::optional<unsigned> cutOperand;
  for (OpOperand &operand : op->getOpOperands())
    if (cutOf(operand.get())) {
      if (cutOperand)
        return false;
      cutOperand = operand.getOperandNumber();
    }
  return reduction && cutOperand &&
         reduction.canReduceShards(*cutOperand, cutOf(op->getOperand(*cutOperand))->dim);
}

bool CutRegion::visitLoops(Operation *op) {
  auto loops = dyn_cast<shard::ShardingInterface>(op);
  if (!loops)
    return fail(op, "says no loops that could be cut");
  SmallVector<AffineMap> maps = loops.getIndexingMaps();
  SmallVector<utils::IteratorType> types = loops.getLoopIteratorTypes();
  SmallVector<ReductionKind> kinds = loops.getReductionLoopIteratorKinds();
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  std::optional<unsigned> loop;
  int64_t parts = 1;
  for (auto [value, map] : llvm::zip_equal(values, maps))
    if (std::optional<ShardCut> cut = cutOf(value)) {
      unsigned found = map.getDimPosition(cut->dim);
      if (loop && (*loop != found || parts != cut->parts))
        return fail(op, "would be cut in two ways");
      loop = found;
      parts = cut->parts;
    }
  if (types[*loop] == utils::IteratorType::reduction) {
    unsigned before = llvm::count(ArrayRef(types).take_front(*loop), utils::IteratorType::reduction);
    bool isFloat = isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
    if (kinds[before] == ReductionKind::Sum && isFloat && op->getNumResults() == 1)
      sumOps.insert(op);
    else if (parts == 1 && canReduce(op))
      reducingOps.insert(op);
    else
      return fail(op, "sees whole what would be cut");
  }
  for (auto [value, map] : llvm::zip_equal(values, maps))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (cast<AffineDimExpr>(expr).getPosition() == *loop && !assign(value, {(int64_t)dim, parts}))
        return false;
  return true;
}
