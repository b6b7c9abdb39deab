//===- CutRows.cpp - what lies between products in rows -------------------===//
//
// Sequence parallelism as Megatron has it (Korthikanti et al., 2022): what all ranks along tp would compute
// alike between the products of tensor shards, each computes for its own rows. A sum ends in a reduce-scatter
// in place of an all-reduce, and what products read is gathered: the same elements travel.
//
//===----------------------------------------------------------------------===//

#include "SequenceRegion.h"
#include "SequenceWriter.h"
#include "ShardParts.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/SequenceOps.h"
#include "dsopt/Transforms/Place/Passes.h"

#include "llvm/ADT/EquivalenceClasses.h"

namespace dsopt {
#define GEN_PASS_DEF_CUTROWS
#include "dsopt/Transforms/Place/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static bool isNumber(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }
static bool meetsShards(Operation *op) { return op->hasAttr(dist::kTensorAttr); }
static bool isRead(Operation *op) { return isa<dist::SharedOp>(op) && meetsShards(op); }
static bool isSum(Operation *op) { return !isa<dist::SharedOp>(op) && meetsShards(op); }

/// What ends rows: products have the tensor shards' cut or are computed alike, and collectives have meanings
/// of their own.
static bool endsRows(Operation *op) {
  return isa<ProductOpInterface, SequenceOpInterface, dist::ValueCollectiveOpInterface, dist::SharedOp,
             graph::TreeAddOp, graph::WindowsOp, graph::WindowsSumOp>(op);
}

/// How the rows of a sum are cut: whole sequences where the shards divide their number, as these lie behind
/// each other, else positions. `batches` says how many sequences rows that are one dimension are of.
std::optional<TimeCut> SequenceRegion::rowsOf(Value sum,
                                              const llvm::DenseMap<int64_t, int64_t> &batches) const {
  ArrayRef<int64_t> shape = typeOf(sum).getShape();
  if (shape.size() < 2 || typeOf(sum).getNumElements() % (shards * dist::kGranule) != 0)
    return std::nullopt;
  if (shape.size() > 2)
    return shape[0] % shards == 0   ? std::optional(TimeCut{0, 1, 0, shape[0]})
           : shape[1] % shards == 0 ? std::optional(TimeCut{1, 1, 0, shape[1]})
                                    : std::nullopt;
  auto known = batches.find(shape[0]);
  int64_t batch = known == batches.end() ? shape[0] : known->second, length = shape[0] / batch;
  return batch % shards == 0    ? std::optional(TimeCut{0, 1, 0, shape[0]})
         : length % shards == 0 ? std::optional(TimeCut{0, batch, 0, length})
                                : std::nullopt;
}

void SequenceRegion::findRows(func::FuncOp forward) {
  classify(forward);
  llvm::DenseMap<int64_t, int64_t> batches;
  for (auto reshape : forward.getOps<graph::ReshapeOp>())
    for (auto [flat, apart] : {std::pair(reshape.getInput(), reshape.getResult()),
                               std::pair(reshape.getResult(), reshape.getInput())})
      if (ArrayRef<int64_t> rows = typeOf(flat).getShape(), dims = typeOf(apart).getShape();
          rows.size() == 2 && dims.size() > 2 && dims[0] * dims[1] == rows[0])
        batches.try_emplace(rows[0], dims[0]);
  for (Operation &op : forward.front().without_terminator()) {
    if (isSum(&op)) {
      Value sum = op.getResult(0);
      if (std::optional<TimeCut> cut = rowsOf(sum, batches)) {
        Cuts own(op.getNumOperands());
        own.push_back(cut);
        chosen.try_emplace(&op, own);
        cuts.try_emplace(sum, *cut);
      }
    } else if (!endsRows(&op)) {
      visit(&op);
    }
  }
  open.clear();
  keepWhatPays();
}

/// Sums and reads that lie in one piece of the region send what they sent as long as nothing else is gathered
/// or added.
void SequenceRegion::keepWhatPays() {
  struct Piece {
    int64_t sent = 0, beside = 0;
    bool computes = false, isGathered = false, canTravel = true;
  };
  llvm::EquivalenceClasses<Operation *> pieces;
  for (auto &[op, own] : chosen) {
    pieces.insert(op);
    for (Value operand : op->getOperands())
      if (cutOf(operand))
        pieces.unionSets(op, operand.getDefiningOp());
  }
  llvm::DenseMap<Operation *, Piece> found;
  for (auto &[op, own] : chosen) {
    Piece &piece = found[pieces.getLeaderValue(op)];
    piece.computes |= !isSum(op);
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<TimeCut> cut = cutOf(operand.get());
      if (isSum(op) || (cut ? cut == takenAs(operand) : isFree(operand.get())))
        continue;
      if (isNumber(operand.get()))
        piece.beside += 2 * graph::numElements(operand.get().getType());
      else if (cut)
        piece.canTravel = false;
    }
    for (OpResult result : op->getResults()) {
      if (!cutOf(result))
        continue;
      int64_t elements = graph::numElements(result.getType());
      auto isWhole = [&](Operation *user) { return !isCut(user) && !isRead(user); };
      bool isReadWhole = llvm::any_of(result.getUsers(), isRead),
           isReadBeside = llvm::any_of(result.getUsers(), isWhole);
      piece.isGathered |= isReadWhole;
      piece.sent += 2 * elements * (isSum(op) + isReadWhole);
      piece.beside += elements * isReadBeside;
      piece.canTravel &= isNumber(result) || (!isReadWhole && !isReadBeside);
    }
  }
  constexpr int64_t kBesideShare = 4;
  SmallVector<Operation *> left;
  for (auto &[op, own] : chosen)
    if (Piece &piece = found[pieces.getLeaderValue(op)];
        !piece.computes || !piece.isGathered || !piece.canTravel || piece.beside * kBesideShare > piece.sent)
      left.push_back(op);
  for (Operation *op : left)
    chosen.erase(op);
}

/// Whether rows lie as they travel, with nothing in front of them.
static bool liesFirst(ArrayRef<int64_t> shape, TimeCut cut) {
  return cut.parts == 1 && llvm::all_of(shape.take_front(cut.dim), [](int64_t size) { return size == 1; });
}

/// Of each part `own` rows first, and then what the value has of each.
Value SequenceWriter::rowsFirst(Value value, TimeCut cut, int64_t own) {
  ArrayRef<int64_t> shape = typeOf(value).getShape();
  if (liesFirst(shape, cut))
    return reshaped(value, shape.drop_front(cut.dim));
  SmallVector<int64_t> apart(shape.take_front(cut.dim)), perm{cut.dim + 1};
  apart.append({cut.parts, own});
  llvm::append_range(apart, shape.drop_front(cut.dim + 1));
  for (int64_t i = 0; i < int64_t(apart.size()); ++i)
    if (i != cut.dim + 1)
      perm.push_back(i);
  return graph::TransposeOp::create(builder, loc, reshaped(value, apart), perm);
}

/// The way back to a value of this shape.
Value SequenceWriter::rowsBack(Value value, TimeCut cut, ArrayRef<int64_t> shape) {
  if (liesFirst(shape, cut))
    return reshaped(value, shape);
  SmallVector<int64_t> back;
  for (int64_t i = 0; i < typeOf(value).getRank(); ++i)
    back.push_back(i == cut.dim + 1 ? 0 : i + (i <= cut.dim));
  return reshaped(graph::TransposeOp::create(builder, loc, value, back), shape);
}

/// A value under a shape whose first dimensions are others.
Value SequenceWriter::withFirst(Value value, int64_t dropped, ArrayRef<int64_t> first) {
  SmallVector<int64_t> shape(first);
  llvm::append_range(shape, typeOf(value).getShape().drop_front(dropped));
  return reshaped(value, shape);
}

/// The whole of a value that is cut; where all ranks do the same with it (`alike`), each has its whole
/// gradient. Each shard is gathered by itself: kernels of its gradient end here, whatever other shards the
/// rank has.
Value SequenceWriter::gatherRows(Value value, bool alike) {
  Value &whole = (alike ? alikes : gathered)[{value, block}];
  if (whole)
    return whole;
  TimeCut cut = *region.cutOf(value);
  int64_t own = cut.length / shards;
  Shards all;
  for (Value shard : values.lookup(value)) {
    Value rows = rowsFirst(shard, cut, own);
    SmallVector<int64_t> shape(typeOf(rows).getShape());
    shape[0] *= ranks;
    all.push_back(dist::AllGatherOp::create(
        builder, loc, RankedTensorType::get(shape, typeOf(rows).getElementType()), rows, axes, alike));
    if (mine > 1)
      all.back() = withFirst(all.back(), 1, {ranks, 1, own});
  }
  Value rows = joined(all, 1);
  if (mine > 1)
    rows = withFirst(rows, 3, {cut.length});
  return whole = rowsBack(rows, cut, typeOf(value).getShape());
}

/// Each shard's rows of a sum.
void SequenceWriter::writeScattered(Operation *op) {
  Value result = op->getResult(0), sum = isa<dist::AllReduceOp>(op) ? op->getOperand(0) : result;
  TimeCut cut = *region.cutOf(result);
  int64_t own = cut.length / shards;
  Value all = rowsFirst(alone(sum), cut, cut.length);
  if (mine > 1)
    all = withFirst(all, 1, {ranks, mine, own});
  for (int64_t shard = 0; shard < mine; ++shard) {
    Value rows = mine > 1 ? withFirst(sliced(all, 1, shard, 1), 3, {ranks * own}) : all;
    SmallVector<int64_t> shape(typeOf(rows).getShape());
    shape[0] = own;
    Value scattered = dist::ReduceScatterOp::create(
        builder, loc, RankedTensorType::get(shape, typeOf(rows).getElementType()), rows, axes);
    values[result].push_back(rowsBack(scattered, cut, local(result.getType(), cut).getShape()));
  }
}

void SequenceWriter::writeRows() {
  SmallVector<Operation *> ops, gone;
  for (Operation &op : forward.front())
    ops.push_back(&op);
  for (Operation *op : ops) {
    // A sum that ends on this rank stays where it is.
    bool stays = !region.isCut(op) || isa<graph::TreeAddOp>(op);
    Operation *before = op->getPrevNode(), *end = stays && region.isCut(op) ? op->getNextNode() : op;
    builder.setInsertionPoint(end);
    loc = op->getLoc();
    if (Attribute own = op->getAttr(graph::kBlockAttr))
      block = own;
    if (region.isCut(op)) {
      if (isSum(op))
        writeScattered(op);
      else
        writeCut(op);
    } else {
      bool reads = isRead(op);
      for (OpOperand &operand : op->getOpOperands())
        if (region.cutOf(operand.get())) {
          operand.set(gatherRows(operand.get(), /*alike=*/!reads));
          if (reads)
            cast<dist::SharedOp>(op).setAxesAttr(none);
        }
    }
    if (!stays)
      gone.push_back(op);
    setBlocks(before, end, block);
  }
  for (Operation *op : llvm::reverse(gone))
    op->erase();
}

namespace {
struct CutRows : public dsopt::impl::CutRowsBase<CutRows> {
  using CutRowsBase::CutRowsBase;
  void runOnOperation() override;
};
} // namespace

void CutRows::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "tp", ranks, /*unset=*/0);
  giveOption(module, "tensor_shards", shards, /*unset=*/0);
  int64_t degree = options::tp(module);
  shards = options::tensor_shards(module).value_or(degree);
  if (shards < 2)
    return;
  FailureOr<func::FuncOp> forward = forwardOf(module, "cut-rows", "tensor", shards, degree);
  if (failed(forward))
    return signalPassFailure();
  SequenceRegion region(shards, Axis::tp);
  region.findRows(*forward);
  if (!region.empty())
    SequenceWriter(*forward, region, shards, degree, Axis::tp).writeRows();
  for (Operation &op : forward->front())
    op.removeDiscardableAttr(dist::kTensorAttr);
}
