//===- GraphFold.cpp - folding of operations on constants -----------------===//

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }
#define FOLD(Op)                                                                                                       \
  OpFoldResult Op::fold(FoldAdaptor adaptor) { return {}; }
FOLD(NegOp) FOLD(AbsOp) FOLD(SignOp) FOLD(ExpOp) FOLD(LogOp) FOLD(SqrtOp) FOLD(ReciprocalOp) FOLD(TanhOp) FOLD(ErfOp)
FOLD(SigmoidOp) FOLD(ReluOp) FOLD(NotOp) FOLD(IsNaNOp) FOLD(AddOp) FOLD(SubOp) FOLD(MulOp) FOLD(DivOp) FOLD(PowOp)
FOLD(MinOp) FOLD(MaxOp) FOLD(AndOp) FOLD(OrOp) FOLD(EqualOp) FOLD(LessOp) FOLD(LessEqualOp) FOLD(GreaterOp)
FOLD(GreaterEqualOp) FOLD(WhereOp) FOLD(CastOp) FOLD(MatMulOp) FOLD(ReduceSumOp) FOLD(ReduceMeanOp) FOLD(ReduceMaxOp)
FOLD(ReduceMinOp) FOLD(CumSumOp) FOLD(ReshapeOp) FOLD(ExpandOp) FOLD(TransposeOp) FOLD(ConcatOp) FOLD(SliceOp)
FOLD(SliceGradOp) FOLD(PadOp) FOLD(GatherOp) FOLD(GatherGradOp) FOLD(GatherElementsOp) FOLD(GatherNDOp) FOLD(OneHotOp)
FOLD(SoftmaxOp) FOLD(GeluOp)
LogicalResult LayerNormOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &) { return failure(); }
LogicalResult NllOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &) { return failure(); }
