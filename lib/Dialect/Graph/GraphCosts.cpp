//===- GraphCosts.cpp - floating-point operations of an execution ---------===//
//
// Each operation that may be in a block or kernel has its model here.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Branch.h"
#include "dsopt/Dialect/Graph/Convolution.h"
#include "dsopt/Dialect/Graph/Costs.h"
#include "dsopt/Dialect/Graph/Epilogue.h"
#include "dsopt/Dialect/Graph/LocalStep.h"
#include "dsopt/Dialect/Graph/OneBitLamb.h"
#include "dsopt/Interfaces/Interfaces.h"

#include "GraphSupport.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

namespace {
/// Two flops (a product and a sum) for each element of the result and each
/// element contracted.
struct MatMulCost : CostedOpInterface::ExternalModel<MatMulCost, MatMulOp> {
  int64_t getFlops(Operation *op) const {
    auto matmul = cast<MatMulOp>(op);
    RankedTensorType lhs = tensorType(matmul.getLhs());
    int64_t depth = lhs.getDimSize(lhs.getRank() - (matmul.getTransposeA() ? 2 : 1));
    return 2 * depth * numElements(matmul.getType());
  }
};

struct MatMulPartCost : CostedOpInterface::ExternalModel<MatMulPartCost, MatMulPartOp> {
  int64_t getFlops(Operation *op) const {
    auto [m, n, k] = cast<MatMulPartOp>(op).getExtents();
    return 2 * m * n * k;
  }
};

/// A number of products of rows, columns and the size of a head, for attention's scores.
template <typename Op, int64_t products>
struct AttentionCost : CostedOpInterface::ExternalModel<AttentionCost<Op, products>, Op> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<Op>(op);
    int64_t columns = tensorType(attention.getK()).getDimSize(2);
    return 2 * products * columns * numElements(attention.getQ().getType()) / (attention.getCausal() ? 2 : 1);
  }
};

/// As many columns as the cache has positions: no run reads more.
struct CachedAttentionCost : CostedOpInterface::ExternalModel<CachedAttentionCost, CachedAttentionOp> {
  int64_t getFlops(Operation *op) const {
    auto attention = cast<CachedAttentionOp>(op);
    auto cache = SymbolTable::lookupNearestSymbolFrom<CacheOp>(op, attention.getKeysAttr());
    int64_t columns = cache ? cast<ShapedType>(cache.getType()).getDimSize(2) : 0;
    return 4 * columns * numElements(attention.getQ().getType());
  }
};

/// A number of products of x and the weight.
template <typename Op, int64_t products>
struct LinearCost : CostedOpInterface::ExternalModel<LinearCost<Op, products>, Op> {
  int64_t getFlops(Operation *op) const {
    auto linear = cast<Op>(op);
    return 2 * products * tensorType(linear.getX()).getDimSize(0) * numElements(linear.getWeight().getType());
  }
};

/// A number of flops for each element of the first operand.
template <typename Op, int64_t flops>
struct OperandCost : CostedOpInterface::ExternalModel<OperandCost<Op, flops>, Op> {
  int64_t getFlops(Operation *op) const { return flops * numElements(op->getOperand(0).getType()); }
};

/// One flop for each element of the result.
template <typename Op> struct ResultCost : CostedOpInterface::ExternalModel<ResultCost<Op>, Op> {
  int64_t getFlops(Operation *op) const { return numElements(op->getResult(0).getType()); }
};

template <typename Op> struct FloatSum : FloatSumOpInterface::ExternalModel<FloatSum<Op>, Op> {};
template <typename Op> struct Product : ProductOpInterface::ExternalModel<Product<Op>, Op> {};

/// Nothing is computed.
template <typename Op> struct NoCost : CostedOpInterface::ExternalModel<NoCost<Op>, Op> {
  int64_t getFlops(Operation *) const { return 0; }
};

template <typename... Ops> void attachFloatSum(MLIRContext *context) {
  (Ops::template attachInterface<FloatSum<Ops>>(*context), ...);
}
template <typename... Ops> void attachNoCost(MLIRContext *context) {
  (Ops::template attachInterface<NoCost<Ops>>(*context), ...);
}
template <typename... Ops> void attachResultCost(MLIRContext *context) {
  (Ops::template attachInterface<ResultCost<Ops>>(*context), ...);
}
template <int64_t flops, typename... Ops> void attachOperandCost(MLIRContext *context) {
  (Ops::template attachInterface<OperandCost<Ops, flops>>(*context), ...);
}
} // namespace

FailureOr<int64_t> FlopCounter::count(Operation *op) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return count(symbols.lookup<func::FuncOp>(kernel.getCallee()));
  if (auto costed = dyn_cast<CostedOpInterface>(op))
    return costed.getFlops();
  return op->emitOpError("says nothing of its flops, expected CostedOpInterface"), failure();
}

FailureOr<int64_t> FlopCounter::count(func::FuncOp function) {
  if (auto known = functions.find(function); known != functions.end())
    return known->second;
  int64_t flops = 0;
  for (Operation &op : function.getBody().front().without_terminator()) {
    FailureOr<int64_t> cost = count(&op);
    if (failed(cost))
      return failure();
    flops += *cost;
  }
  return functions[function] = flops;
}

/// Of an argument that the kernel reads.
static int64_t bytesRead(BlockArgument argument) {
  int64_t gathered = 0;
  for (OpOperand &use : argument.getUses()) {
    auto gather = dyn_cast<GatherOp>(use.getOwner());
    if (!gather || use.getOperandNumber() != 0)
      return numBytes(argument.getType());
    gathered += numBytes(gather.getType());
  }
  return std::min(gathered, numBytes(argument.getType()));
}

int64_t dsopt::graph::bytesMoved(func::FuncOp kernel) {
  int64_t bytes = 0;
  for (BlockArgument argument : kernel.getArguments())
    bytes += bytesRead(argument);
  for (Type type : kernel.getResultTypes())
    bytes += numBytes(type);
  return bytes;
}

Type dsopt::graph::writtenType(func::FuncOp kernel) {
  return getElementTypeOrSelf(kernel.getResultTypes().empty() ? kernel.getArgumentTypes()[0]
                                                              : kernel.getResultTypes()[0]);
}

void dsopt::graph::registerCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    MatMulOp::attachInterface<MatMulCost>(*context);
    MatMulPartOp::attachInterface<MatMulPartCost>(*context);
    attachConvolutionCost(context);
    attachEpilogueCost(context);
    AttentionOp::attachInterface<AttentionCost<AttentionOp, 2>>(*context);
    AttentionGradOp::attachInterface<AttentionCost<AttentionGradOp, 5>>(*context);
    AttentionPartOp::attachInterface<AttentionCost<AttentionPartOp, 2>>(*context);
    AttentionPartGradOp::attachInterface<AttentionCost<AttentionPartGradOp, 5>>(*context);
    CachedAttentionOp::attachInterface<CachedAttentionCost>(*context);
    LinearNllOp::attachInterface<LinearCost<LinearNllOp, 1>>(*context);
    LinearNllGradOp::attachInterface<LinearCost<LinearNllGradOp, 3>>(*context);
    MatMulOp::attachInterface<Product<MatMulOp>>(*context);
    LinearNllOp::attachInterface<Product<LinearNllOp>>(*context);
    attachFloatSum<MatMulOp, LinearNllOp, AttentionOp, AttentionPartOp, CtcOp, ReduceSumOp, ReduceMeanOp,
                   ReduceProdOp, CumSumOp, WindowsSumOp, GatherGradOp, SoftmaxOp, LayerNormOp, RmsNormOp,
                   NllOp>(context);
    attachResultCost<UnpackBitsOp, NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, ReciprocalOp, FloorOp, CeilOp,
                     RoundOp, SinOp, CosOp, AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, CoshOp, SinhOp,
                     TanhOp, ErfOp, SigmoidOp, ReluOp, NotOp, IsNaNOp, AddOp, TreeAddOp, SubOp, MulOp, DivOp,
                     RemOp, PowOp, MinOp, MaxOp, AndOp, OrOp, EqualOp, LessOp, LessEqualOp, GreaterOp,
                     GreaterEqualOp, WhereOp, CastOp, RoundToOp, DropoutOp, UniformOp, CumSumOp>(context);
    // About so many, as targets are as many as classes are.
    attachOperandCost<20, CtcOp>(context);
    attachOperandCost<40, CtcGradOp>(context);
    // One addition or comparison for each element read.
    attachOperandCost<1, ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, WindowsSumOp,
                      GatherGradOp, AccumulateOp, SignBitsOp>(context);
    // As many as the operations they decompose into do for each element.
    attachOperandCost<4, SiluOp>(context);
    attachOperandCost<5, SoftmaxOp, NllOp, GeluOp, RmsNormOp>(context);
    attachOperandCost<7, LayerNormOp>(context);
    attachOperandCost<2, SgdOp>(context);
    attachOperandCost<4, MomentumOp>(context);
    attachOperandCost<12, AdamOp, OneBitAdamOp, ZeroOneAdamOp>(context);
    attachOperandCost<11, ZeroOneAdamLocalOp>(context);
    attachOperandCost<12, BranchUpdateOp>(context);
    attachOperandCost<6, ZeroOneAdamJoinOp>(context);
    attachOperandCost<7, OneBitAdamStepOp, OneBitLambFrozenOp>(context);
    attachOperandCost<9, LionOp>(context);
    attachOperandCost<8, AdagradOp>(context);
    attachOperandCost<15, LambOp, OneBitLambOp>(context);
    attachOperandCost<12, LambDirectionOp, OneBitLambDirectionOp>(context);
    attachOperandCost<3, LambStepOp>(context);
    attachOperandCost<8, MuonOp>(context);
    attachOperandCost<5, MuonDirectionOp>(context);
    attachOperandCost<4, MuonStepOp>(context);
    attachOperandCost<15, AdafactorOp>(context);
    attachOperandCost<1, AdafactorDirectionOp>(context);
    attachOperandCost<4, AdafactorStepOp>(context);
    attachNoCost<BitcastOp, IotaOp, ConstantOp, ReadOp, WriteOp, ReshapeOp, ExpandOp, TransposeOp, ConcatOp,
                 SliceOp, SliceGradOp, PadOp, GatherOp, GatherElementsOp, OneHotOp, WindowsOp, WindowsPlaceOp,
                 ScatterOp, StopGradientOp, CustomGradientOp>(context);
  });
}
