//===- AttentionCalls.cpp - attention and its gradients as calls ----------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Interfaces/CompiledProducts.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;

/// The strides of attention's operand but that of its last dimension.
static LogicalResult rowStrides(Operation *op, Value memref, int64_t (&strides)[3]) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> found;
  int64_t offset;
  if (type.getRank() != 4 || failed(type.getStridesAndOffset(found, offset)) ||
      (found[3] != 1 && type.getDimSize(3) != 1))
    return op->emitOpError("has an operand of type ")
           << type << ", expected contiguous rows of four dimensions";
  std::copy_n(found.begin(), 3, strides);
  return success();
}

/// The strides of a contiguous mask, 0 where it broadcasts.
static void maskStrides(MemRefType type, int64_t (&strides)[4]) {
  int64_t stride = 1;
  for (int64_t dim = type.getRank(), at = 3; dim-- > 0; --at) {
    strides[at] = type.getDimSize(dim) == 1 ? 0 : stride;
    stride *= type.getDimSize(dim);
  }
}

template <typename Op> static LogicalResult buildAttention(Op attention, RuntimeCallBuilder &builder) {
  constexpr bool isGradient = std::is_same_v<Op, exec::AttentionGradOp>;
  dsopt_attention d =
      attentionSizes(memrefType(attention.getQ()), memrefType(attention.getV()), attention.getWholeHeads());
  auto type = elementTypeOf(attention, attention.getQ());
  if (failed(type) || failed(rowStrides(attention, attention.getQ(), d.q)) ||
      failed(rowStrides(attention, attention.getK(), d.k)) ||
      failed(rowStrides(attention, attention.getV(), d.v)) ||
      failed(rowStrides(attention, attention.getResult(), d.out)))
    return failure();
  d.type = d.mask_type = *type;
  d.causal = attention.getCausal();
  d.begin = attention.getBegin().value_or(d.columns - d.rows);
  d.step = attention.getStep().value_or(0);
  d.threads = attention.getThreads();
  d.scale = attention.getScale().convertToDouble();
  auto target =
      attention->template getParentOfType<ModuleOp>()->template getAttrOfType<TargetAttr>(kTargetAttr);
  d.widens = target && target.getKind() == TargetKind::CPU &&
             widensVectors(target, memrefType(attention.getQ()).getElementType());
  if (attention.getMask()) {
    auto maskType = elementTypeOf(attention, attention.getMask());
    if (failed(maskType))
      return failure();
    d.mask_type = *maskType;
    maskStrides(cast<MemRefType>(attention.getMask().getType()), d.mask);
  }
  if constexpr (isGradient)
    if (failed(rowStrides(attention, attention.getGrad(), d.grad)) ||
        failed(rowStrides(attention, attention.getQGrad(), d.q_grad)) ||
        failed(rowStrides(attention, attention.getKGrad(), d.k_grad)) ||
        failed(rowStrides(attention, attention.getVGrad(), d.v_grad)))
      return failure();
  if (failed(verifyWorkspace(attention, attention.getWorkspace(),
                             attentionWorkspace(d, isGradient, isForDevice(attention)))))
    return failure();

  static_assert(sizeof(d) % sizeof(int64_t) == 0, "every field takes 8 bytes");
  int64_t fields[sizeof(d) / sizeof(int64_t)];
  std::memcpy(fields, &d, sizeof(d));
  SmallVector<Value> arguments{builder.descriptor("attention", fields)};
  for (Value memref : {attention.getQ(), attention.getK(), attention.getV(), attention.getMask(),
                       attention.getResult(), attention.getLse()})
    arguments.push_back(builder.pointer(memref));
  if constexpr (isGradient)
    for (Value memref :
         {attention.getGrad(), attention.getQGrad(), attention.getKGrad(), attention.getVGrad()})
      arguments.push_back(builder.pointer(memref));
  arguments.push_back(builder.pointer(attention.getWorkspace()));
  builder.call(isGradient ? "dsopt_rt_attention_grad" : "dsopt_rt_attention", arguments);
  return success();
}

/// Batch, heads, rows, columns and the sizes of q's and v's rows.
template <typename Op> static CallDescription describeAttention(Op op) {
  MemRefType q = memrefType(op.getQ()), v = memrefType(op.getV());
  SmallVector<int64_t> shape(q.getShape().drop_back());
  shape.append({v.getDimSize(2), q.getDimSize(3), v.getDimSize(3)});
  // All but the workspace.
  CallDescription call{op->getName().stripDialect(), shapeText(shape) + (op.getCausal() ? " causal" : ""),
                       q.getElementType(), sumBytes(op->getOperands().drop_back())};
  call.head = std::max(q.getDimSize(3), v.getDimSize(3));
  return call;
}

namespace {
template <typename Op> struct AttentionCall : RuntimeCallOpInterface::ExternalModel<AttentionCall<Op>, Op> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildAttention(cast<Op>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeAttention(cast<Op>(op)); }
};
} // namespace

void dsopt::registerAttentionCalls(MLIRContext *context) {
  exec::AttentionOp::attachInterface<AttentionCall<exec::AttentionOp>>(*context);
  exec::AttentionGradOp::attachInterface<AttentionCall<exec::AttentionGradOp>>(*context);
}
