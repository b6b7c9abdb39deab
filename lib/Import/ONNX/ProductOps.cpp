//===- ProductOps.cpp - matrix products and attention ----------------------===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

static LogicalResult matMul(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  return n.set(0, n.e.matmul(lhs, rhs));
}

static LogicalResult gemm(NodeBuilder &n) {
  Value lhs = n.input(0), rhs = n.input(1);
  if (!lhs || !rhs)
    return failure();
  if (Emitter::rankOf(lhs) != 2 || Emitter::rankOf(rhs) != 2)
    return n.error() << "multiplies " << Emitter::typeOf(lhs) << " by " << Emitter::typeOf(rhs)
                     << ", expected two matrices";
  SmallVector<NamedAttribute> flags;
  if (n.integerAttr("transA", 0))
    flags.push_back(n.e.flag("transpose_a"));
  if (n.integerAttr("transB", 0))
    flags.push_back(n.e.flag("transpose_b"));
  Value result = n.e.make<graph::MatMulOp>({lhs, rhs}, flags);
  auto scaled = [&](Value value, double factor) {
    if (!value || factor == 1)
      return value;
    return n.e.make<graph::MulOp>({value, n.e.splat(Emitter::elementOf(value), factor)});
  };
  result = scaled(result, n.floatAttr("alpha", 1));
  double beta = n.floatAttr("beta", 1);
  if (!n.has(2) || beta == 0)
    return n.set(0, result);
  Value sum = n.e.make<graph::AddOp>({result, scaled(n.input(2), beta)});
  if (sum && Emitter::typeOf(sum) != Emitter::typeOf(result))
    return n.error() << "adds " << Emitter::typeOf(n.input(2)) << " to a product of type "
                     << Emitter::typeOf(result) << ", expected a shape that broadcasts to it";
  return n.set(0, sum);
}

namespace {
/// Attention's operands as [batch, heads, rows, size].
struct Heads {
  Value query, key, value;
  int64_t batch, heads, rows, columns, size;
  bool isFlat;
};
} // namespace

/// [batch, rows, heads * size] as [batch, heads, rows, size].
static Value splitHeads(NodeBuilder &n, Value value, int64_t heads) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(value);
  if (heads < 1 || shape[2] % heads) {
    n.error() << "cuts " << Emitter::typeOf(value) << " into " << heads << " heads, expected a divisor of "
              << shape[2];
    return {};
  }
  Value split = n.e.reshape(value, {shape[0], shape[1], heads, shape[2] / heads});
  return split ? n.e.transpose(split, {0, 2, 1, 3}) : Value();
}

/// Repeats each head until there are `heads`.
static Value repeatHeads(NodeBuilder &n, Value value, int64_t heads) {
  SmallVector<int64_t> shape(Emitter::shapeOf(value));
  int64_t own = shape[1];
  if (own == heads)
    return value;
  if (own == 0 || heads % own) {
    n.error() << "has " << heads << " heads of queries and " << own
              << " of keys or values, expected a multiple";
    return {};
  }
  Value single = n.e.reshape(value, {shape[0], own, 1, shape[2], shape[3]});
  Value repeated = single ? n.e.expand(single, {shape[0], own, heads / own, shape[2], shape[3]}) : Value();
  return n.e.reshape(repeated, {shape[0], heads, shape[2], shape[3]});
}

static FailureOr<Heads> headsOf(NodeBuilder &n) {
  Heads h{n.input(0), n.input(1), n.input(2), 0, 0, 0, 0, 0, false};
  Value *operands[] = {&h.query, &h.key, &h.value};
  for (Value *operand : operands) {
    if (!*operand)
      return failure();
    int64_t rank = Emitter::rankOf(*operand);
    if (rank != Emitter::rankOf(h.query) || (rank != 3 && rank != 4))
      return n.error() << "has queries, keys and values of types " << Emitter::typeOf(h.query) << " and "
                       << Emitter::typeOf(*operand) << ", expected rank 3 or 4 for all";
  }
  h.isFlat = Emitter::rankOf(h.query) == 3;
  if (h.isFlat) {
    h.query = splitHeads(n, h.query, n.integerAttr("q_num_heads", 0));
    h.key = splitHeads(n, h.key, n.integerAttr("kv_num_heads", 0));
    h.value = splitHeads(n, h.value, n.integerAttr("kv_num_heads", 0));
    if (!h.query || !h.key || !h.value)
      return failure();
  }
  ArrayRef<int64_t> shape = Emitter::shapeOf(h.query);
  h.batch = shape[0], h.heads = shape[1], h.rows = shape[2], h.size = shape[3];
  h.columns = Emitter::shapeOf(h.key)[2];
  h.key = repeatHeads(n, h.key, h.heads);
  h.value = h.key ? repeatHeads(n, h.value, h.heads) : Value();
  return h.value ? FailureOr<Heads>(h) : FailureOr<Heads>();
}

/// What is added to the scores: from the mask operand or the causal rule. A
/// masked score is the lowest number rather than -inf, so that a row without any
/// valid entry (padding, as a rule) doesn't become NaN.
static LogicalResult addMask(NodeBuilder &n, const Heads &h, Value &scores) {
  Type element = Emitter::elementOf(scores);
  Value zero = n.e.splat(element, 0);
  auto semantics = &cast<FloatType>(element).getFloatSemantics();
  Value lowest = n.e.constant(DenseElementsAttr::get(RankedTensorType::get({}, element),
                                                     APFloat::getLargest(*semantics, /*Negative=*/true)));
  auto add = [&](Value mask) {
    if (mask && Emitter::elementOf(mask).isInteger(1))
      mask = n.e.make<graph::WhereOp>({mask, zero, lowest});
    Value sum = n.e.make<graph::AddOp>({scores, mask});
    if (sum && sum.getType() != scores.getType()) {
      n.error() << "has a mask of type " << Emitter::typeOf(mask) << ", expected one that broadcasts to "
                << Emitter::typeOf(scores);
      sum = {};
    }
    return sum;
  };
  if (n.integerAttr("is_causal", 0)) {
    if (h.columns && h.rows > (1 << 26) / h.columns)
      return n.error() << "has scores of " << h.rows << " by " << h.columns << ", expected at most 2^26";
    SmallVector<bool> keeps;
    for (int64_t i = 0; i < h.rows; ++i)
      for (int64_t j = 0; j < h.columns; ++j)
        keeps.push_back(j <= i);
    scores = add(n.e.bools(keeps, {h.rows, h.columns}));
  }
  if (scores && n.has(3))
    scores = add(n.input(3));
  return success(scores != nullptr);
}

static LogicalResult attention(NodeBuilder &n) {
  FailureOr<Heads> heads = headsOf(n);
  if (failed(heads))
    return failure();
  Heads &h = *heads;
  if (n.has(4) || n.has(5))
    return n.error() << "has past keys or values, which are not available";
  if (n.floatAttr("softcap", 0) != 0)
    return n.error() << "has softcap " << std::to_string(n.floatAttr("softcap", 0)) << ", expected 0";

  double scale = n.floatAttr("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt((double)h.size);
  Value query = n.e.make<graph::MulOp>({h.query, n.e.splat(Emitter::elementOf(h.query), scale)});
  Value scores = n.e.matmul(query, n.e.transpose(h.key, {0, 1, 3, 2}));
  if (!scores || failed(addMask(n, h, scores)))
    return failure();
  Value weights = n.e.make<graph::SoftmaxOp>(scores, n.e.attr("axis", 3));
  Value result = n.e.matmul(weights, h.value);
  if (!result || !h.isFlat)
    return n.set(0, result);
  int64_t size = Emitter::shapeOf(result)[3];
  return n.set(0, n.e.reshape(n.e.transpose(result, {0, 2, 1, 3}), {h.batch, h.rows, h.heads * size}));
}

ArrayRef<OpRow> productOps() {
  static const OpRow rows[] = {
      {"Attention", 23, kMaxOpset, attention},
      {"Gemm", 13, kMaxOpset, gemm},
      {"MatMul", 13, kMaxOpset, matMul},
  };
  return rows;
}

} // namespace dsopt::onnx_import
