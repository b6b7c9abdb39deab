//===- GraphRoutineShapes.cpp - verifiers of the routines -----------------===//

#include "GraphSupport.h"
#include "dsopt/Runtime/Gemm.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;

/// The broadcast of a mask to the scores, checked.
static LogicalResult verifyMask(Operation *op, Value mask, ArrayRef<int64_t> scores) {
  if (!mask)
    return success();
  auto shape = broadcastShapes(tensorType(mask).getShape(), scores);
  if (failed(shape) || ArrayRef(*shape) != scores)
    return op->emitOpError("has a mask of type ")
           << mask.getType() << ", expected one that broadcasts to "
           << RankedTensorType::get(scores, tensorType(mask).getElementType());
  return success();
}

/// q [batch, heads, T, D], k [batch, heads, S, D], v [batch, heads, S, E]; where heads are `shared`, those of
/// k and v may be fewer.
static LogicalResult verifyHeads(Operation *op, Value q, Value k, Value v, bool shared) {
  ArrayRef<int64_t> qs = tensorType(q).getShape(), ks = tensorType(k).getShape(),
                    vs = tensorType(v).getShape();
  if (qs.size() != 4 || ks.size() != 4 || vs.size() != 4 || ks.take_front(3) != vs.take_front(3) ||
      qs[0] != ks[0] || qs[3] != ks[3] || (shared ? ks[1] == 0 || qs[1] % ks[1] : qs[1] != ks[1]))
    return op->emitOpError("has operands of types ")
           << q.getType() << ", " << k.getType() << " and " << v.getType()
           << ", expected [batch, heads, T, D], [batch, heads, S, D] and [batch, heads, S, E]"
           << (shared ? ", heads of k and v dividing those of q" : "");
  return success();
}

static LogicalResult verifyOperands(Operation *op, Value q, Value k, Value v, Value mask) {
  if (failed(verifyHeads(op, q, k, v, /*shared=*/false)))
    return failure();
  ArrayRef<int64_t> qs = tensorType(q).getShape();
  return verifyMask(op, mask, {qs[0], qs[1], qs[2], tensorType(k).getDimSize(2)});
}

static LogicalResult verifyType(Operation *op, StringRef what, Value value, RankedTensorType expected) {
  if (value && value.getType() != expected)
    return op->emitOpError("has a ") << what << " of type " << value.getType() << ", expected " << expected;
  return success();
}

static RankedTensorType f32(MLIRContext *context, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, Float32Type::get(context));
}

int64_t MatMulPartOp::paddedColumns(int64_t columns, int64_t whole) {
  return columns + (whole - columns) % DSOPT_GEMM_ALIGNMENT;
}

std::array<int64_t, 3> MatMulPartOp::getExtents() {
  RankedTensorType a = tensorType(getLhs()), b = tensorType(getRhs());
  return {a.getDimSize(getTransposeA() ? 1 : 0), b.getDimSize(getTransposeB() ? 0 : 1),
          a.getDimSize(getTransposeA() ? 0 : 1)};
}

LogicalResult MatMulPartOp::verify() {
  RankedTensorType a = tensorType(getLhs()), b = tensorType(getRhs()), c = tensorType(getResult());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2 || a.getElementType() != b.getElementType())
    return emitOpError("has operands of types ")
           << a << " and " << b << " and a result of type " << c << ", expected matrices of one element type";
  auto [m, n, k] = getExtents();
  if (int64_t other = b.getDimSize(getTransposeB() ? 1 : 0); other != k)
    return emitOpError("contracts ") << k << " with " << other << " elements, expected equal sizes";
  ArrayRef<int64_t> whole = getWhole();
  if (whole.size() != 3 || whole[0] < m || whole[1] < n || whole[2] < k ||
      (whole[0] > m) + (whole[1] > n) + (whole[2] > k) > 1)
    return emitOpError("is the part ") << m << "x" << n << "x" << k << " of a product [" << whole
                                       << "], expected one that is cut along one dimension";
  if (SmallVector<int64_t> shape{m, paddedColumns(n, whole[1])}; c.getShape() != ArrayRef(shape))
    return emitOpError("has a result of type ")
           << c << ", expected " << RankedTensorType::get(shape, c.getElementType());
  if (getAddend() && (whole[2] == k || getAddend().getType() != f32(getContext(), c.getShape())))
    return emitOpError("adds to ") << getAddend().getType() << ", expected "
                                   << (whole[2] == k ? "nothing where all is contracted"
                                                     : "fp32 of the result's shape");
  return success();
}

/// Only what is causal has places for its rows.
template <typename Op> static LogicalResult verifyPlaces(Op op) {
  bool hasPlaces = op.getBegin() || op.getStep();
  if (hasPlaces && (!op.getCausal() || !op.getBegin()))
    return op.emitOpError("has ") << (op.getBegin() ? "begin" : "step") << " without "
                                  << (op.getBegin() ? "causal" : "begin");
  return success();
}

/// The type of attention's result, where it is no sum.
template <typename Op> static RankedTensorType resultOf(Op op) {
  RankedTensorType q = tensorType(op.getQ()), v = tensorType(op.getV());
  SmallVector<int64_t> shape(q.getShape());
  shape[3] = v.getDimSize(3);
  return RankedTensorType::get(shape, v.getElementType());
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyOperands(*this, getQ(), getK(), getV(), getMask())) || failed(verifyPlaces(*this)))
    return failure();
  if (failed(verifyType(*this, "result", getResult(), resultOf(*this))))
    return failure();
  return verifyType(*this, "lse", getLse(), f32(getContext(), tensorType(getQ()).getShape().drop_back()));
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyOperands(*this, getQ(), getK(), getV(), getMask())) || failed(verifyPlaces(*this)))
    return failure();
  RankedTensorType q = tensorType(getQ()), k = tensorType(getK()), v = tensorType(getV()),
                   result = resultOf(*this);
  if (failed(verifyType(*this, "result", getResult(), result)) ||
      failed(verifyType(*this, "gradient", getGrad(), result)) ||
      failed(verifyType(*this, "lse", getLse(), f32(getContext(), q.getShape().drop_back()))) ||
      failed(verifyType(*this, "gradient of q", getQGrad(), q)) ||
      failed(verifyType(*this, "gradient of k", getKGrad(), k)))
    return failure();
  return verifyType(*this, "gradient of v", getVGrad(), v);
}

/// Masks may be one for each shard, where batch entries are of several.
template <typename Op> static LogicalResult verifyPart(Op op) {
  if (failed(verifyHeads(op, op.getQ(), op.getK(), op.getV(), /*shared=*/true)))
    return failure();
  ArrayRef<int64_t> q = tensorType(op.getQ()).getShape();
  int64_t shards = op.getShards(), distance = op.getDistance(), entries = op.getEntries(),
          group = op.getGroup();
  if (distance < 0 || distance >= shards)
    return op.emitOpError("has columns ")
           << distance << " of " << shards << " shards before its rows, expected a distance below the shards";
  if (entries < 1 || q[0] % entries || shards % entries || group < 0 || (group == 0) != (entries == shards))
    return op.emitOpError("has ") << q[0] << " batch entries of " << entries << " of " << shards
                                  << " shards, in groups of " << group
                                  << ", expected as many of each shard, and groups where there are not all";
  SmallVector<int64_t> scores{q[0], q[1], q[2], tensorType(op.getK()).getDimSize(2)};
  if (Value mask = op.getMask();
      mask && tensorType(mask).getRank() == 4 && tensorType(mask).getDimSize(0) == entries)
    scores[0] = entries;
  return verifyMask(op, op.getMask(), scores);
}

LogicalResult AttentionPartOp::verify() {
  RankedTensorType result = resultOf(*this), sums = f32(getContext(), result.getShape()),
                   lse = f32(getContext(), result.getShape().drop_back());
  if (failed(verifyPart(*this)) ||
      failed(verifyType(*this, "result", getResult(), getPartial() ? sums : result)) ||
      failed(verifyType(*this, "previous result", getPrevious(), sums)) ||
      failed(verifyType(*this, "previous lse", getPreviousLse(), lse)))
    return failure();
  if (!getPrevious() != !getPreviousLse())
    return emitOpError("has ") << (getPrevious() ? "no lse of what came before"
                                                 : "but the lse of what came before")
                               << ", expected both or neither";
  return verifyType(*this, "lse", getLse(), lse);
}

LogicalResult AttentionPartGradOp::verify() {
  RankedTensorType q = tensorType(getQ()), k = tensorType(getK()), v = tensorType(getV()),
                   result = resultOf(*this);
  auto wide = [&](RankedTensorType type, bool isWide) {
    return isWide ? f32(getContext(), type.getShape()) : type;
  };
  if (failed(verifyPart(*this)) || failed(verifyType(*this, "result", getResult(), result)) ||
      failed(verifyType(*this, "gradient", getGrad(), result)) ||
      failed(verifyType(*this, "lse", getLse(), f32(getContext(), q.getShape().drop_back()))) ||
      failed(verifyType(*this, "previous gradient of q", getQPrevious(), wide(q, true))) ||
      failed(verifyType(*this, "previous gradient of k", getKPrevious(), wide(k, true))) ||
      failed(verifyType(*this, "previous gradient of v", getVPrevious(), wide(v, true))) ||
      failed(verifyType(*this, "gradient of q", getQGrad(), wide(q, getQPartial()))) ||
      failed(verifyType(*this, "gradient of k", getKGrad(), wide(k, getColumnPartial()))))
    return failure();
  return verifyType(*this, "gradient of v", getVGrad(), wide(v, getColumnPartial()));
}

template <typename Op> static LogicalResult verifyLinear(Op op) {
  RankedTensorType x = tensorType(op.getX()), weight = tensorType(op.getWeight()),
                   labels = tensorType(op.getLabels());
  if (x.getRank() != 2 || weight.getRank() != 2 || labels.getRank() != 1 ||
      labels.getDimSize(0) != x.getDimSize(0) ||
      weight.getDimSize(op.getTransposeB() ? 1 : 0) != x.getDimSize(1))
    return op.emitOpError("has operands of types ")
           << x << ", " << weight << " and " << labels << ", expected [N, D], "
           << (op.getTransposeB() ? "[C, D]" : "[D, C]") << " and [N]";
  int64_t classes = weight.getDimSize(op.getTransposeB() ? 0 : 1);
  if (failed(verifyType(op, "bias", op.getBias(), RankedTensorType::get({classes}, weight.getElementType()))))
    return failure();
  return verifyType(op, "loss", op.getLoss(), f32(op.getContext(), labels.getShape()));
}

LogicalResult LinearNllOp::verify() { return verifyLinear(*this); }

LogicalResult LinearNllGradOp::verify() {
  if (failed(verifyLinear(*this)))
    return failure();
  RankedTensorType x = tensorType(getX()), weight = tensorType(getWeight());
  int64_t classes = weight.getDimSize(getTransposeB() ? 0 : 1);
  if (failed(verifyType(*this, "gradient", getGrad(), f32(getContext(), {x.getDimSize(0)}))) ||
      failed(verifyType(*this, "gradient of x", getXGrad(), x)) ||
      failed(
          verifyType(*this, "gradient of the weight", getWeightGrad(), f32(getContext(), weight.getShape()))))
    return failure();
  return verifyType(*this, "gradient of the bias", getBiasGrad(), f32(getContext(), {classes}));
}

template <typename Op> static LogicalResult verifyCtc(Op op) {
  RankedTensorType logs = tensorType(op.getLogs()), targets = tensorType(op.getTargets());
  auto lengths = RankedTensorType::get({logs.getRank() == 3 ? logs.getDimSize(1) : 0},
                                       IntegerType::get(op.getContext(), 64));
  bool fits =
      logs.getRank() == 3 && targets.getElementType().isInteger(64) &&
      (targets.getRank() == 1 || (targets.getRank() == 2 && targets.getDimSize(0) == logs.getDimSize(1)));
  if (!fits || op.getInputLengths().getType() != lengths || op.getTargetLengths().getType() != lengths)
    return op.emitOpError("has operands of types ")
           << logs << ", " << targets << ", " << op.getInputLengths().getType() << " and "
           << op.getTargetLengths().getType()
           << ", expected [T, N, C], [N, S] or [S], [N] and [N], the last three in i64";
  int64_t blank = op.getBlank();
  if (blank < 0 || blank >= logs.getDimSize(2))
    return op.emitOpError("has blank ") << blank << ", expected 0 to " << logs.getDimSize(2) - 1;
  return success();
}

LogicalResult CtcOp::verify() {
  RankedTensorType logs = tensorType(getLogs());
  if (failed(verifyCtc(*this)))
    return failure();
  return verifyType(*this, "loss", getLoss(),
                    RankedTensorType::get({logs.getDimSize(1)}, logs.getElementType()));
}

LogicalResult CtcGradOp::verify() {
  RankedTensorType logs = tensorType(getLogs());
  if (failed(verifyCtc(*this)))
    return failure();
  if (failed(verifyType(*this, "gradient", getGrad(),
                        RankedTensorType::get({logs.getDimSize(1)}, logs.getElementType()))))
    return failure();
  return verifyType(*this, "gradient of logs", getLogsGrad(), logs);
}
