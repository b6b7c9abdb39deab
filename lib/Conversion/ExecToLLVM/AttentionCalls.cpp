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

/// Whether what is stored in fp32 is a sum of a narrower type.
static bool isWide(Value memref) { return memrefType(memref).getElementType().isF32(); }

template <typename Op>
constexpr bool isGradient =
    std::is_same_v<Op, exec::AttentionGradOp> || std::is_same_v<Op, exec::AttentionPartGradOp>;
template <typename Op>
constexpr bool isPart =
    std::is_same_v<Op, exec::AttentionPartOp> || std::is_same_v<Op, exec::AttentionPartGradOp>;

/// What attention has in every form: types, strides of what is read and written, threads, scale and mask.
template <typename Op> static LogicalResult setOperands(Op attention, dsopt_attention &d) {
  auto type = elementTypeOf(attention, attention.getQ());
  if (failed(type) || failed(rowStrides(attention, attention.getQ(), d.q)) ||
      failed(rowStrides(attention, attention.getK(), d.k)) ||
      failed(rowStrides(attention, attention.getV(), d.v)) ||
      failed(rowStrides(attention, attention.getResult(), d.out)))
    return failure();
  d.type = d.mask_type = *type;
  d.threads = attention.getThreads();
  d.scale = attention.getScale().convertToDouble();
  auto target =
      attention->template getParentOfType<ModuleOp>()->template getAttrOfType<TargetAttr>(kTargetAttr);
  d.widens = target && target.getKind() == TargetKind::CPU &&
             widensVectors(target, memrefType(attention.getQ()).getElementType());
  if (!attention.getMask())
    return success();
  auto maskType = elementTypeOf(attention, attention.getMask());
  if (failed(maskType))
    return failure();
  d.mask_type = *maskType;
  maskStrides(memrefType(attention.getMask()), d.mask);
  return success();
}

static Value descriptorOf(const dsopt_attention &d, StringRef name, RuntimeCallBuilder &builder) {
  static_assert(sizeof(d) % sizeof(int64_t) == 0, "every field takes 8 bytes");
  int64_t fields[sizeof(d) / sizeof(int64_t)];
  std::memcpy(fields, &d, sizeof(d));
  return builder.descriptor(name, fields);
}

template <typename Op> static LogicalResult buildAttention(Op attention, RuntimeCallBuilder &builder) {
  std::optional<int64_t> pairs;
  if constexpr (isPart<Op>)
    pairs = attention.getPairs();
  dsopt_attention d = attentionSizes(memrefType(attention.getQ()), memrefType(attention.getV()), pairs);
  if (failed(setOperands(attention, d)))
    return failure();
  d.causal = attention.getCausal();
  if constexpr (isPart<Op>) {
    d.begin = attention.getBegin();
    d.row_step = d.rows;
    d.column_step = d.columns;
    d.shards = attention.getShards();
    d.distance = attention.getDistance();
    d.entries = attention.getEntries();
    d.group = attention.getGroup();
  } else {
    d.begin = attention.getBegin().value_or(d.columns - d.rows);
    d.row_step = attention.getStep().value_or(0);
    d.group = 1;
  }
  if (attention.getMask()) {
    MemRefType mask = memrefType(attention.getMask());
    // One for each shard, or each batch entry of each.
    bool ofShards = mask.getRank() == 4 && mask.getDimSize(0) == d.entries;
    d.mask_shard = d.mask[0] * (ofShards ? 1 : d.batch / d.entries);
    d.mask[0] = ofShards ? 0 : d.mask[0];
  }
  if constexpr (isGradient<Op>) {
    d.q_partial = isWide(attention.getQGrad());
    d.column_partial = isWide(attention.getKGrad());
    if (failed(rowStrides(attention, attention.getGrad(), d.grad)) ||
        failed(rowStrides(attention, attention.getQGrad(), d.q_grad)) ||
        failed(rowStrides(attention, attention.getKGrad(), d.k_grad)) ||
        failed(rowStrides(attention, attention.getVGrad(), d.v_grad)))
      return failure();
  } else {
    d.partial = isWide(attention.getResult());
  }
  if (failed(verifyWorkspace(attention, attention.getWorkspace(),
                             attentionWorkspace(d, isGradient<Op>, isForDevice(attention)))))
    return failure();

  SmallVector<Value> memrefs{attention.getQ(), attention.getK(), attention.getV(), attention.getMask()};
  SmallVector<Value> previous(isGradient<Op> ? 3 : 2);
  if constexpr (std::is_same_v<Op, exec::AttentionPartOp>)
    previous = {attention.getPrevious(), attention.getPreviousLse()};
  if constexpr (std::is_same_v<Op, exec::AttentionPartGradOp>)
    previous = {attention.getQPrevious(), attention.getKPrevious(), attention.getVPrevious()};
  if constexpr (!isGradient<Op>)
    memrefs.append(previous);
  memrefs.append({attention.getResult(), attention.getLse()});
  if constexpr (isGradient<Op>) {
    memrefs.push_back(attention.getGrad());
    memrefs.append(previous);
    memrefs.append({attention.getQGrad(), attention.getKGrad(), attention.getVGrad()});
  }
  memrefs.push_back(attention.getWorkspace());
  SmallVector<Value> arguments{descriptorOf(d, "attention", builder)};
  for (Value memref : memrefs)
    arguments.push_back(builder.pointer(memref));
  builder.call(isGradient<Op> ? "dsopt_rt_attention_grad" : "dsopt_rt_attention", arguments);
  return success();
}

static LogicalResult buildCached(exec::CachedAttentionOp attention, RuntimeCallBuilder &builder) {
  dsopt_attention d = attentionSizes(memrefType(attention.getQ()), memrefType(attention.getV()));
  MemRefType keys = memrefType(attention.getKeys());
  d.batch = keys.getDimSize(0);
  d.columns = keys.getDimSize(2);
  if (isForDevice(attention))
    return attention.emitOpError("has no code for a device: programs that generate run on the CPU so far");
  if (failed(setOperands(attention, d)))
    return failure();
  if (failed(verifyWorkspace(attention, attention.getWorkspace(), attentionWorkspace(d, false, false))))
    return failure();
  SmallVector<Value> arguments{descriptorOf(d, "cached_attention", builder)};
  for (Value memref : {attention.getQ(), attention.getK(), attention.getV(), attention.getSlots(),
                       attention.getPositions(), attention.getMask(), attention.getKeys(),
                       attention.getValues(), attention.getResult(), attention.getWorkspace()})
    arguments.push_back(builder.pointer(memref));
  builder.call("dsopt_rt_cached_attention", arguments);
  return success();
}

/// Batch, heads, rows, columns and the sizes of q's and v's rows. Parts are calls of the same routine.
template <typename Op> static CallDescription describeAttention(Op op) {
  MemRefType q = memrefType(op.getQ()), v = memrefType(op.getV());
  SmallVector<int64_t> shape(q.getShape().drop_back());
  shape.append({v.getDimSize(2), q.getDimSize(3), v.getDimSize(3)});
  // All but the workspace.
  CallDescription call{isGradient<Op> ? "attention_grad" : "attention",
                       shapeText(shape) + (op.getCausal() ? " causal" : ""), q.getElementType(),
                       sumBytes(op->getOperands().drop_back())};
  call.head = std::max(q.getDimSize(3), v.getDimSize(3));
  return call;
}

/// As attention over all that the caches have room for; what is read is less.
static CallDescription describeCached(exec::CachedAttentionOp op) {
  MemRefType q = memrefType(op.getQ()), values = memrefType(op.getValues());
  SmallVector<int64_t> shape(q.getShape().drop_back());
  shape.append({values.getDimSize(2), q.getDimSize(3), values.getDimSize(3)});
  CallDescription call{"cached_attention", shapeText(shape), q.getElementType(),
                       sumBytes(op->getOperands().drop_back())};
  call.head = std::max(q.getDimSize(3), values.getDimSize(3));
  return call;
}

namespace {
struct CachedAttentionCall
    : RuntimeCallOpInterface::ExternalModel<CachedAttentionCall, exec::CachedAttentionOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildCached(cast<exec::CachedAttentionOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const {
    return describeCached(cast<exec::CachedAttentionOp>(op));
  }
};
template <typename Op> struct AttentionCall : RuntimeCallOpInterface::ExternalModel<AttentionCall<Op>, Op> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildAttention(cast<Op>(op), builder);
  }
  CallDescription describeCall(Operation *op) const { return describeAttention(cast<Op>(op)); }
};
} // namespace

void dsopt::registerAttentionCalls(MLIRContext *context) {
  exec::CachedAttentionOp::attachInterface<CachedAttentionCall>(*context);
  exec::AttentionOp::attachInterface<AttentionCall<exec::AttentionOp>>(*context);
  exec::AttentionGradOp::attachInterface<AttentionCall<exec::AttentionGradOp>>(*context);
  exec::AttentionPartOp::attachInterface<AttentionCall<exec::AttentionPartOp>>(*context);
  exec::AttentionPartGradOp::attachInterface<AttentionCall<exec::AttentionPartGradOp>>(*context);
}
