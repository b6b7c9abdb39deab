//===- DecodingWriter.cpp - rows at positions of sequences ----------------===//

#include "DecodingWriter.h"

#include "dsopt/Dialect/Graph/Constants.h"
#include "dsopt/Dialect/Graph/Heads.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/SequenceOps.h"
#include "dsopt/Runtime/GenerateInputs.h"

using namespace mlir;
using namespace dsopt;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static ArrayRef<int64_t> shapeOf(Value value) { return typeOf(value).getShape(); }

DecodingWriter::DecodingWriter(func::FuncOp function, const RowPlaces &places, int64_t rows, int64_t slots,
                               int64_t context)
    : RowsWriter(function, places, rows), slotCount(slots), context(context),
      positions(addArgument(runtime::kPositionsInput, rows)), slots(addArgument(runtime::kSlotsInput, rows)) {
}

Value DecodingWriter::addArgument(StringRef name, int64_t elements) {
  unsigned index = function.getNumArguments();
  auto named = builder.getDictionaryAttr(builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(name)));
  LogicalResult added = function.insertArgument(
      index, RankedTensorType::get({elements}, builder.getI64Type()), named, function.getLoc());
  assert(succeeded(added) && "the function has a body");
  (void)added;
  return function.getArgument(index);
}

Value DecodingWriter::numbers(int64_t offset) {
  if (offset == 0)
    return positions;
  return graph::AddOp::create(builder, loc, positions,
                              graph::scalarConstant(builder, loc, builder.getI64Type(), offset));
}

FlatSymbolRefAttr DecodingWriter::addCache(Value kept) {
  ArrayRef<int64_t> shape = shapeOf(kept);
  std::string symbol =
      graph::freeSymbol(SymbolTable(function->getParentOfType<ModuleOp>()), "cache." + Twine(caches++));
  auto type = RankedTensorType::get({slotCount, shape[1], context, shape[3]}, typeOf(kept).getElementType());
  OpBuilder before(function);
  graph::CacheOp::create(before, loc, symbol, type);
  return FlatSymbolRefAttr::get(function.getContext(), symbol);
}

/// Columns of the heads that there are, before others share them.
Value DecodingWriter::columnsOf(Value heads) {
  auto reshape = heads.getDefiningOp<graph::ReshapeOp>();
  std::optional<SharedHeads> shared = reshape ? headsOf(reshape) : std::nullopt;
  if (!shared || shared->dim != 1)
    return heads;
  ArrayRef<int64_t> shape = shapeOf(shared->heads);
  return reshaped(shared->heads, {shape[0], shape[1], shape[3], shape[4]});
}

/// What is added to the scores of rows and all columns that there are.
Value DecodingWriter::addedTo(Value scores) {
  SmallVector<int64_t> shape(4 - shapeOf(scores).size(), 1), starts(4, 0), steps(4, 1);
  llvm::append_range(shape, shapeOf(scores));
  scores = reshaped(scores, shape);
  if (shape[2] != 1)
    scores = rowsOf(scores, {2, 1, places.length(), 1});
  SmallVector<int64_t> sizes(shapeOf(scores));
  if (sizes[3] <= context)
    return scores;
  sizes[3] = context;
  return graph::SliceOp::create(builder, loc, scores, starts, sizes, steps);
}

bool DecodingWriter::writeMixer(Operation *op) {
  auto mixer = dyn_cast<SequenceOpInterface>(op);
  if (!mixer)
    return false;
  PlacedRows rows{SmallVector<Value>(op->getOperands()), slots, positions, {}};
  SmallVector<unsigned> columns = mixer.getColumnOperands();
  SmallVector<Value> heads =
      llvm::map_to_vector(columns, [&](unsigned i) { return columnsOf(rows.operands[i]); });
  // Heads are shared by all columns, or by none.
  bool areShared =
      llvm::all_of(heads, [&](Value one) { return shapeOf(one)[1] == shapeOf(heads.front())[1]; });
  for (auto [i, one] : llvm::zip_equal(columns, heads)) {
    if (areShared)
      rows.operands[i] = one;
    rows.caches.push_back(addCache(rows.operands[i]));
  }
  for (auto [i, operand] : llvm::enumerate(rows.operands))
    if (i > 0 && !llvm::is_contained(columns, i))
      operand = addedTo(operand);
  op->getResult(0).replaceAllUsesWith(mixer.buildPlaced(builder, rows));
  return true;
}

/// The rows of a value that are picked: before the last product, which is the most of the work.
Value DecodingWriter::picked(Value value, RowPlace place) {
  Operation *op = value.getDefiningOp();
  auto gathered = [&] {
    builder.setInsertionPointAfterValue(value);
    return gatherRows(value, place, picks, pickCount);
  };
  if (!op || !value.hasOneUse() || !places.of(value) || op->getNumResults() != 1 || isa<graph::SliceOp>(op))
    return gathered();
  std::optional<RowPlace> own = place;
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op)) {
    own = places.of(reshape.getInput());
  } else {
    // Of others rows are picked of one operand alone.
    auto dims = rowLoop(op, op->getNumOperands(), place.dim);
    bool isFirst =
        dims && dims->front() &&
        llvm::none_of(ArrayRef(*dims).drop_back().drop_front(), [](auto dim) { return dim.has_value(); });
    own->dim = isFirst ? *dims->front() : -1;
  }
  if (!own || own->dim < 0)
    return gathered();
  writeBefore(op);
  Value first = op->getOperand(0);
  op->setOperand(0, isa<ProductOpInterface>(op) ? gatherRows(first, *own, picks, pickCount)
                                                : picked(first, *own));
  value.setType(withRows(value.getType(), place, pickCount));
  return value;
}

void DecodingWriter::pickRows(int64_t picked) {
  picks = addArgument(runtime::kPicksInput, picked);
  pickCount = picked;
  Operation *end = function.front().getTerminator();
  Value logits = end->getOperand(0);
  if (Operation *last = logits.getDefiningOp())
    writeBefore(last);
  end->setOperand(0, this->picked(logits, *places.of(logits)));
  function.setResultAttr(0, graph::kShapeAttr, builder.getDenseI64ArrayAttr(shapeOf(end->getOperand(0))));
}
