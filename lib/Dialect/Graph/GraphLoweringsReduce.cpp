//===- GraphLoweringsReduce.cpp - sums and extrema over axes --------------===//
//
// A mean has no lowering: it is decomposed into a sum and a division, so that
// the division is one a result.
//
//===----------------------------------------------------------------------===//

#include "GraphLowerings.h"

using namespace mlir;

namespace dsopt::graph {
namespace {

enum class Combine { Sum, Product, Max, Min };

FusionKind classify(int64_t rank, ArrayRef<int64_t> axes) {
  if (axes.empty())
    return FusionKind::Pointwise;
  int64_t count = axes.size();
  bool contiguous = axes.back() - axes.front() + 1 == count;
  if (contiguous && axes.back() == rank - 1)
    return FusionKind::RowReduction;
  if (contiguous && axes.front() == 0)
    return FusionKind::ColumnReduction;
  return FusionKind::Reduction;
}

TypedAttr neutral(Combine combine, Type type, bool isUnsigned) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    return FloatAttr::get(type, combine == Combine::Sum ? APFloat::getZero(semantics)
                                : combine == Combine::Product
                                    ? APFloat::getOne(semantics)
                                    : APFloat::getInf(semantics, /*Negative=*/combine == Combine::Max));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type,
                          combine == Combine::Sum       ? APInt::getZero(width)
                          : combine == Combine::Product ? APInt(width, 1)
                          : combine == Combine::Max
                              ? (isUnsigned ? APInt::getZero(width) : APInt::getSignedMinValue(width))
                              : (isUnsigned ? APInt::getAllOnes(width) : APInt::getSignedMaxValue(width)));
}

Value combined(Combine combine, Builder &b, Value total, Value x, bool isUnsigned) {
  bool isFloat = isa<FloatType>(x.getType());
  switch (combine) {
  case Combine::Sum:
    return isFloat ? Value(arith::AddFOp::create(b, total, x)) : Value(arith::AddIOp::create(b, total, x));
  case Combine::Product:
    return isFloat ? Value(arith::MulFOp::create(b, total, x)) : Value(arith::MulIOp::create(b, total, x));
  case Combine::Max:
    if (isUnsigned)
      return arith::MaxUIOp::create(b, total, x);
    return isFloat ? Value(arith::MaximumFOp::create(b, total, x))
                   : Value(arith::MaxSIOp::create(b, total, x));
  case Combine::Min:
    if (isUnsigned)
      return arith::MinUIOp::create(b, total, x);
    return isFloat ? Value(arith::MinimumFOp::create(b, total, x))
                   : Value(arith::MinSIOp::create(b, total, x));
  }
  llvm_unreachable("covered");
}

template <typename Op, Combine combine>
struct ReduceModel : LowerableOpInterface::ExternalModel<ReduceModel<Op, combine>, Op> {
  FusionKind getFusionKind(Operation *op) const {
    auto reduce = cast<Op>(op);
    return classify(cast<RankedTensorType>(reduce.getInput().getType()).getRank(), reduce.getAxes());
  }

  Value buildLinalg(Operation *op, OpBuilder &builder, ValueRange operands) const {
    auto reduce = cast<Op>(op);
    Location loc = op->getLoc();
    auto input = cast<RankedTensorType>(operands[0].getType());
    bool isUnsigned = graph::isUnsigned(op->getResult(0).getType());
    auto result = signless(cast<RankedTensorType>(op->getResult(0).getType()));
    FusionKind kind = getFusionKind(op);
    if (kind == FusionKind::Pointwise)
      return buildPointwise(builder, loc, result, operands,
                            [](Builder &, ValueRange args) { return args[0]; });

    MLIRContext *context = builder.getContext();
    int64_t rank = input.getRank();
    llvm::SmallDenseSet<int64_t> axes(reduce.getAxes().begin(), reduce.getAxes().end());
    // Loops in the input's order; a reduction of its own runs over what is kept first.
    SmallVector<int64_t> order;
    if (kind == FusionKind::Reduction) {
      for (int64_t dim = 0; dim < rank; ++dim)
        if (!axes.contains(dim))
          order.push_back(dim);
      llvm::append_range(order, reduce.getAxes());
    } else {
      order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    }
    SmallVector<AffineExpr> reads(rank), writes;
    SmallVector<utils::IteratorType> iterators;
    for (auto [loop, dim] : llvm::enumerate(order)) {
      reads[dim] = getAffineDimExpr(loop, context);
      iterators.push_back(axes.contains(dim) ? utils::IteratorType::reduction
                                             : utils::IteratorType::parallel);
    }
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!axes.contains(dim))
        writes.push_back(reads[dim]);
      else if (reduce.getKeepdims())
        writes.push_back(getAffineConstantExpr(0, context));

    Value init = arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(result, Attribute(neutral(combine, result.getElementType(), isUnsigned))));
    SmallVector<AffineMap> maps{AffineMap::get(rank, 0, reads, context),
                                AffineMap::get(rank, 0, writes, context)};
    return linalg::GenericOp::create(
               builder, loc, TypeRange(result), operands, ValueRange(init), maps, iterators,
               [&](OpBuilder &nested, Location nestedLoc, ValueRange args) {
                 Builder b(nestedLoc, nested);
                 linalg::YieldOp::create(b, combined(combine, b, args[1], args[0], isUnsigned));
               })
        .getResult(0);
  }
};
} // namespace

void registerReductionLowerings(GraphDialect *, MLIRContext *context) {
  ReduceSumOp::attachInterface<ReduceModel<ReduceSumOp, Combine::Sum>>(*context);
  ReduceProdOp::attachInterface<ReduceModel<ReduceProdOp, Combine::Product>>(*context);
  ReduceMaxOp::attachInterface<ReduceModel<ReduceMaxOp, Combine::Max>>(*context);
  ReduceMinOp::attachInterface<ReduceModel<ReduceMinOp, Combine::Min>>(*context);
}
} // namespace dsopt::graph
