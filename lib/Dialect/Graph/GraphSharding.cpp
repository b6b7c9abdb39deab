//===- GraphSharding.cpp - loops and maps of the operations ---------------===//
//
// Each operation is a nest of loops, and each dimension of its operands and results
// belongs to one of them: what shares a loop is sharded alike. A dimension of one
// element that is broadcast has a loop of its own, so that it is never cut. What
// cannot be cut at all (the axis of a softmax) is a reduction of kind generic.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Sharding.h"

#include "GraphSupport.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterfaceImpl.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using mlir::shard::ReductionKind;

namespace {
using Dims = SmallVector<int64_t>;

/// The loops of an operation, and for each operand and result the loops of its dimensions.
class Nest {
public:
  explicit Nest(Operation *op) : op(op), maps(op->getNumOperands() + op->getNumResults()) { build(); }

  SmallVector<utils::IteratorType> iteratorTypes() const {
    return llvm::map_to_vector(kinds, [](std::optional<ReductionKind> kind) {
      return kind ? utils::IteratorType::reduction : utils::IteratorType::parallel;
    });
  }
  SmallVector<ReductionKind> reductionKinds() const {
    SmallVector<ReductionKind> reductions;
    for (std::optional<ReductionKind> kind : kinds)
      if (kind)
        reductions.push_back(*kind);
    return reductions;
  }
  SmallVector<AffineMap> indexingMaps() const {
    return llvm::map_to_vector(maps, [&](const Dims &dims) {
      return AffineMap::getMultiDimMapWithTargets(
          kinds.size(), SmallVector<unsigned>(dims.begin(), dims.end()), op->getContext());
    });
  }

private:
  static constexpr ReductionKind kWhole = ReductionKind::Generic;

  int64_t loop(std::optional<ReductionKind> kind = std::nullopt) {
    kinds.push_back(kind);
    return kinds.size() - 1;
  }
  Dims loops(int64_t count, std::optional<ReductionKind> kind = std::nullopt) {
    Dims result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(loop(kind));
    return result;
  }
  ArrayRef<int64_t> shape(Value value) const { return tensorType(value).getShape(); }
  Dims &operand(unsigned i) { return maps[i]; }
  Dims &result(unsigned i = 0) { return maps[op->getNumOperands() + i]; }

  /// The loops of an operand of `own` dimensions that broadcasts to the dimensions with `loops`.
  Dims broadcast(ArrayRef<int64_t> own, ArrayRef<int64_t> whole, const Dims &loops) {
    Dims dims;
    for (auto [i, size] : llvm::enumerate(own)) {
      size_t at = whole.size() - own.size() + i;
      dims.push_back(size == 1 && whole[at] != 1 ? loop() : loops[at]);
    }
    return dims;
  }

  void build();
  void pointwise();
  void reduce(ReductionKind kind, ArrayRef<int64_t> axes, bool keepdims);
  void matmul(MatMulOp matmul);
  void reshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to);
  void rows(int64_t axis, int64_t count);
  void gather(GatherOp gather);
  void windows(int64_t axis, int64_t inputDims, int64_t resultDims);
  void attention(AttentionOp attention);
  void keep(llvm::function_ref<bool(int64_t)> isKept);

  Operation *op;
  /// Of each loop: how it reduces, none for a parallel one.
  SmallVector<std::optional<ReductionKind>> kinds;
  SmallVector<Dims> maps;
};
} // namespace

/// One loop for each dimension of the result; operands broadcast.
void Nest::pointwise() {
  ArrayRef<int64_t> whole = shape(op->getResult(0));
  result() = loops(whole.size());
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    operand(i) = broadcast(shape(value), whole, result());
}

void Nest::reduce(ReductionKind kind, ArrayRef<int64_t> axes, bool keepdims) {
  for (int64_t dim = 0, rank = shape(op->getOperand(0)).size(); dim < rank; ++dim) {
    bool isReduced = llvm::is_contained(axes, dim);
    operand(0).push_back(isReduced ? loop(kind) : loop());
    if (!isReduced)
      result().push_back(operand(0).back());
    else if (keepdims)
      result().push_back(loop());
  }
}

void Nest::matmul(MatMulOp matmul) {
  int64_t batch = shape(matmul.getResult()).size() - 2;
  Dims lead = loops(batch);
  int64_t row = loop(), column = loop(), depth = loop(ReductionKind::Sum);
  for (Dims &dims : maps)
    dims = lead;
  operand(0).append(matmul.getTransposeA() ? Dims{depth, row} : Dims{row, depth});
  operand(1).append(matmul.getTransposeB() ? Dims{column, depth} : Dims{depth, column});
  result().append({row, column});
}

/// Dimensions that stay share a loop; of those that are split or merged the outermost of each side do:
/// cutting them cuts the same elements off, where the numbers divide.
void Nest::reshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    int64_t left = from[i], right = to[j], shared = loop();
    operand(0).push_back(shared);
    result().push_back((left == 1) != (right == 1) ? loop() : shared);
    ++i, ++j;
    while (left != right)
      if (left < right && i < from.size()) {
        // After leading ones the first larger dimension is the outermost.
        bool isOutermost = left == 1;
        left *= from[i++];
        operand(0).push_back(isOutermost && left > 1 ? result().back() : loop(kWhole));
      } else if (right < left && j < to.size()) {
        bool isOutermost = right == 1;
        right *= to[j++];
        result().push_back(isOutermost && right > 1 ? operand(0).back() : loop(kWhole));
      } else {
        break; // an empty tensor
      }
  }
  for (; i < from.size(); ++i)
    operand(0).push_back(loop());
  for (; j < to.size(); ++j)
    result().push_back(loop());
}

/// `count` dimensions of the first operand from `axis` on stay whole; other operands have just those
/// dimensions, results all or rows with ones.
void Nest::rows(int64_t axis, int64_t count) {
  ArrayRef<int64_t> whole = shape(op->getOperand(0));
  for (int64_t dim = 0, rank = whole.size(); dim < rank; ++dim)
    operand(0).push_back(dim >= axis && dim < axis + count ? loop(kWhole) : loop());
  Dims own(ArrayRef(operand(0)).slice(axis, count));
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    operand(i) = own;
  for (auto [i, value] : llvm::enumerate(op->getResults())) {
    result(i) = operand(0);
    for (int64_t dim = axis; dim < axis + count; ++dim)
      if (shape(value)[dim] != whole[dim])
        result(i)[dim] = loop();
  }
}

void Nest::gather(GatherOp gather) {
  int64_t axis = gather.getAxis(), rank = shape(gather.getData()).size();
  operand(0) = loops(rank);
  kinds[operand(0)[axis]] = kWhole;
  operand(1) = loops(shape(gather.getIndices()).size());
  result().append(operand(0).begin(), operand(0).begin() + axis);
  result().append(operand(1));
  result().append(operand(0).begin() + axis + 1, operand(0).end());
}

/// The dimensions that windows move over stay whole, and so do those that windows have.
void Nest::windows(int64_t axis, int64_t inputDims, int64_t resultDims) {
  operand(0) = result() = loops(axis);
  operand(0).append(loops(inputDims, kWhole));
  result().append(loops(resultDims, kWhole));
  Dims behind = loops(shape(op->getResult(0)).size() - result().size());
  operand(0).append(behind);
  result().append(behind);
}

void Nest::attention(AttentionOp attention) {
  int64_t batch = loop(), heads = loop(), row = attention.getCausal() ? loop(kWhole) : loop(),
          size = loop(kWhole), column = loop(kWhole), width = loop();
  operand(0) = {batch, heads, row, size};
  operand(1) = {batch, heads, column, size};
  operand(2) = {batch, heads, column, width};
  result(0) = {batch, heads, row, width};
  result(1) = {batch, heads, row};
  if (Value mask = attention.getMask()) {
    Dims scores{batch, heads, row, column}, sizes(shape(attention.getQ()).take_front(3));
    sizes.push_back(shape(attention.getK())[2]);
    operand(3) = broadcast(shape(mask), sizes, scores);
  }
}

/// Dimensions that are kept share a loop between the operands and the result, others stay whole.
void Nest::keep(llvm::function_ref<bool(int64_t)> isKept) {
  int64_t rank = shape(op->getResult(0)).size();
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t shared = isKept(dim) ? loop() : -1;
    for (Dims &dims : maps)
      dims.push_back(shared >= 0 ? shared : loop(kWhole));
  }
}

void Nest::build() {
  llvm::TypeSwitch<Operation *>(op)
      .Case<MatMulOp>([&](MatMulOp op) { matmul(op); })
      .Case<ReduceSumOp>([&](auto op) { reduce(ReductionKind::Sum, op.getAxes(), op.getKeepdims()); })
      .Case<ReduceMeanOp>([&](auto op) { reduce(ReductionKind::Average, op.getAxes(), op.getKeepdims()); })
      .Case<ReduceMaxOp>([&](auto op) { reduce(ReductionKind::Max, op.getAxes(), op.getKeepdims()); })
      .Case<ReduceMinOp>([&](auto op) { reduce(ReductionKind::Min, op.getAxes(), op.getKeepdims()); })
      .Case<ReduceProdOp>([&](auto op) { reduce(ReductionKind::Product, op.getAxes(), op.getKeepdims()); })
      .Case<ReshapeOp>([&](auto op) { reshape(shape(op.getInput()), shape(op.getResult())); })
      .Case<TransposeOp>([&](TransposeOp op) {
        operand(0) = loops(op.getPerm().size());
        for (int64_t from : op.getPerm())
          result().push_back(operand(0)[from]);
      })
      .Case<SoftmaxOp, CumSumOp>([&](auto op) { rows(op.getAxis(), 1); })
      .Case<LayerNormOp, RmsNormOp>(
          [&](auto op) { rows(op.getAxis(), shape(op.getInput()).size() - op.getAxis()); })
      .Case<NllOp>([&](NllOp op) {
        operand(0) = {loop(), loop(kWhole)};
        for (unsigned i = 1; i < maps.size(); ++i)
          maps[i] = {operand(0)[0]};
      })
      .Case<AttentionOp>([&](AttentionOp op) { attention(op); })
      .Case<GatherOp>([&](GatherOp op) { gather(op); })
      .Case<GatherElementsOp>([&](GatherElementsOp op) {
        int64_t axis = op.getAxis();
        keep([&](int64_t dim) {
          return dim != axis && shape(op.getData())[dim] == shape(op.getResult())[dim];
        });
        operand(1) = result();
      })
      .Case<OneHotOp>([&](OneHotOp op) {
        operand(0) = loops(shape(op.getIndices()).size());
        result() = operand(0);
        result().push_back(loop(kWhole));
      })
      .Case<DropoutOp>([&](DropoutOp) {
        operand(0) = result() = loops(shape(op->getResult(0)).size());
        operand(1) = {loop()};
        operand(2) = {loop()};
      })
      .Case<ConcatOp>([&](ConcatOp op) {
        int64_t axis = op.getAxis();
        keep([&](int64_t dim) { return dim != axis; });
      })
      .Case<SliceOp, SliceGradOp>([&](Operation *op) {
        ArrayRef<int64_t> from = shape(op->getOperand(0)), to = shape(op->getResult(0));
        auto slice = dyn_cast<SliceOp>(op);
        keep([&](int64_t dim) { return from[dim] == to[dim] && (!slice || slice.getSteps()[dim] == 1); });
      })
      .Case<PadOp>([&](PadOp op) {
        // As many may be cut off on one side as are added on the other.
        keep([&](int64_t dim) { return op.getLows()[dim] == 0 && op.getHighs()[dim] == 0; });
      })
      .Case<WindowsOp>([&](WindowsOp op) {
        int64_t count = op.getKernel().size();
        windows(op.getAxis(), count, 2 * count);
      })
      .Case<WindowsSumOp>([&](WindowsSumOp op) {
        int64_t count = op.getStrides().size();
        windows(op.getAxis(), 2 * count, count);
      })
      .Default([&](Operation *) { pointwise(); });
}

namespace {
template <typename Op> struct ShardModel : shard::ShardingInterface::ExternalModel<ShardModel<Op>, Op> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return Nest(op).iteratorTypes();
  }
  SmallVector<ReductionKind> getReductionLoopIteratorKinds(Operation *op) const {
    return Nest(op).reductionKinds();
  }
  SmallVector<AffineMap> getIndexingMaps(Operation *op) const { return Nest(op).indexingMaps(); }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<ShardModel<Ops>>(*context), ...);
}
} // namespace

void dsopt::graph::registerShardings(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, GraphDialect *) {
    attach<ConstantOp, ReadOp>(context);
    attach<NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, ReciprocalOp, FloorOp, CeilOp, RoundOp, SinOp, CosOp,
           AcosOp, AcoshOp, AsinOp, AsinhOp, AtanOp, AtanhOp, CoshOp, SinhOp, TanhOp, ErfOp, SigmoidOp,
           ReluOp, NotOp, IsNaNOp, AddOp, SubOp, MulOp, DivOp, RemOp, PowOp, MinOp, MaxOp, AndOp, OrOp,
           EqualOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp, WhereOp, CastOp, RoundToOp, ExpandOp,
           GeluOp, SiluOp, StopGradientOp>(context);
    attach<MatMulOp, ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, CumSumOp, SoftmaxOp,
           LayerNormOp, RmsNormOp, NllOp, AttentionOp>(context);
    attach<ReshapeOp, TransposeOp, ConcatOp, SliceOp, SliceGradOp, PadOp, GatherOp, GatherElementsOp,
           OneHotOp, DropoutOp, WindowsOp, WindowsSumOp>(context);
  });
}
