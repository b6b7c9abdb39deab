//===- DeriveDecoding.cpp - rows at positions of sequences ----------------===//

#include "DecodingWriter.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Generate/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_DERIVEDECODING
#include "dsopt/Transforms/Generate/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
/// The first sequence of a batch whose sequences are alike.
class SequenceTaker : public RowsWriter {
public:
  SequenceTaker(func::FuncOp function, const RowPlaces &places) : RowsWriter(function, places, 1) {}

private:
  Value numbers(int64_t) override {
    return graph::ConstantOp::create(builder, loc, builder.getI64TensorAttr({0}));
  }
  LogicalResult checkTaken(Value whole, RowPlace place) override {
    if (hasEqualRows(whole, place))
      return success();
    return emitError(whole.getLoc()) << "has others of " << whole.getType()
                                     << " for each sequence of a batch of " << places.length()
                                     << ": no answer would be by itself";
  }
  static bool hasEqualRows(Value whole, RowPlace place) {
    auto constant = whole.getDefiningOp<graph::ConstantOp>();
    auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
    if (!elements)
      return false;
    ArrayRef<int64_t> shape = elements.getType().getShape();
    int64_t inner = ShapedType::getNumElements(shape.drop_front(place.dim + 1)) * place.inner;
    auto values = elements.getValues<Attribute>();
    for (int64_t i = 0; i < elements.getNumElements(); ++i)
      if (values[i] != values[i - i / inner % place.length * inner])
        return false;
    return true;
  }
};

struct DeriveDecoding : public dsopt::impl::DeriveDecodingBase<DeriveDecoding> {
  using DeriveDecodingBase::DeriveDecodingBase;
  void runOnOperation() override;
};
} // namespace

/// Positions of a sequence: as many as the function has, or fewer that were asked for.
static FailureOr<int64_t> contextOf(ModuleOp module, func::FuncOp function, int64_t positions) {
  int64_t context = options::max_context(module).value_or(positions);
  if (context > positions)
    return function.emitError("is of ")
           << positions << " positions, expected at least the " << context << " of -max-context";
  setOption(module, "max_context", Builder(module.getContext()).getI64IntegerAttr(context));
  return context;
}

static LogicalResult derive(func::FuncOp function, int64_t rows, int64_t slots) {
  RowPlaces sequences(RowPlaces::Sequences);
  if (failed(sequences.find(function)) ||
      (sequences.length() > 1 && failed(SequenceTaker(function, sequences).write())))
    return failure();
  RowPlaces positions(RowPlaces::Positions);
  if (failed(positions.find(function)))
    return failure();
  auto module = function->getParentOfType<ModuleOp>();
  FailureOr<int64_t> context = contextOf(module, function, positions.length());
  if (failed(context))
    return failure();
  DecodingWriter writer(function, positions, rows, slots, *context);
  if (failed(writer.write()))
    return failure();
  writer.pickRows(std::min(rows, slots));
  function.setType(FunctionType::get(function.getContext(), function.front().getArgumentTypes(),
                                     function.front().getTerminator()->getOperandTypes()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success();
}

void DeriveDecoding::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "chunk", rows, /*unset=*/0);
  giveOption(module, "max_batch", sequences, /*unset=*/0);
  auto function = module.lookupSymbol<func::FuncOp>(graph::kEvaluateFunction);
  if (!function || !function.getBody().hasOneBlock() || function.getNumResults() != 1) {
    module.emitError("derive-decoding expects a function @evaluate with one body and one result");
    return signalPassFailure();
  }
  // Of one row dimensions of one element would meet others that are no rows, and kernels be formed otherwise.
  constexpr int64_t kFewestRows = 2;
  if (failed(derive(function, std::max(options::chunk(module), kFewestRows), options::max_batch(module))))
    signalPassFailure();
}
