//===- AttentionOps.cpp - attention and rotary embeddings ------------------===//

#include "OpTable.h"

#include <cmath>

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// Attention's operands as [batch, heads, rows, size].
struct Heads {
  Value query, key, value;
  /// With what came before, as the node returns them.
  Value presentKey, presentValue;
  int64_t batch, heads, rows, columns, size;
  /// Keys before the first query's own.
  int64_t past = 0;
  bool isFlat;
};

/// Which keys a query may read, and what is added to its scores.
struct Mask {
  /// Every query may read its own place, as far as `fixed` says.
  bool readsItself = true;
  /// Known when compiled: [rows, columns]; null where all are allowed.
  Value fixed;
  /// Depending on data, broadcast to [batch, heads, rows, columns]; null where all are allowed.
  Value allowed;
  /// Added to the scores; none below the lowest number.
  Value bias;
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
  Heads h;
  h.query = n.input(0), h.key = n.input(1), h.value = n.input(2);
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
  if (n.has(4) != n.has(5) || (n.has(6) && n.has(4)))
    return n.error() << "has one of past_key and past_value, or nonpad_kv_seqlen beside them, expected both "
                     << "alone";
  if (n.has(4)) {
    Value pastKey = n.input(4), pastValue = n.input(5);
    if (!pastKey || !pastValue || Emitter::rankOf(pastKey) != 4)
      return failure();
    h.past = Emitter::shapeOf(pastKey)[2];
    h.key = n.e.concat({pastKey, h.key}, 2);
    h.value = n.e.concat({pastValue, h.value}, 2);
    if (!h.key || !h.value)
      return failure();
  }
  h.presentKey = h.key, h.presentValue = h.value;
  ArrayRef<int64_t> shape = Emitter::shapeOf(h.query);
  h.batch = shape[0], h.heads = shape[1], h.rows = shape[2], h.size = shape[3];
  h.columns = Emitter::shapeOf(h.key)[2];
  h.key = repeatHeads(n, h.key, h.heads);
  h.value = h.key ? repeatHeads(n, h.value, h.heads) : Value();
  return h.value ? FailureOr<Heads>(h) : FailureOr<Heads>();
}

static Value both(Emitter &e, Value lhs, Value rhs) {
  return lhs && rhs ? e.make<graph::AndOp>({lhs, rhs}) : lhs ? lhs : rhs;
}

/// The causal rule and the window around a query's own place.
static LogicalResult addRules(NodeBuilder &n, const Heads &h, Mask &mask) {
  Emitter &e = n.e;
  int64_t left = n.opset < 25 ? -1 : n.integerAttr("left_window_size", -1),
          right = n.opset < 25 ? -1 : n.integerAttr("right_window_size", -1);
  if (left < -1 || right < -1)
    return n.error() << "has windows of " << left << " and " << right << ", expected -1 or more";
  if (n.integerAttr("is_causal", 0))
    right = right < 0 ? 0 : std::min<int64_t>(right, 0);
  Type i64 = e.builder.getI64Type();
  if (n.has(6)) {
    // Each batch entry has keys of its own number, and its queries are the last of them.
    Value valid = n.input(6);
    if (!valid || Emitter::shapeOf(valid) != ArrayRef(h.batch))
      return valid ? n.error() << "has nonpad_kv_seqlen of type " << Emitter::typeOf(valid) << ", expected "
                               << h.batch << " integers"
                   : failure();
    valid = e.reshape(e.convert(valid, i64), {h.batch, 1, 1, 1});
    Value column = e.counting(i64, h.columns, 3, 4);
    Value own = e.add(e.sub(e.counting(i64, h.rows, 2, 4), e.splat(i64, h.rows)), valid);
    mask.allowed = e.less(column, valid);
    if (right >= 0)
      mask.allowed =
          both(e, mask.allowed, e.make<graph::LessEqualOp>({column, e.add(own, e.splat(i64, right))}));
    if (left >= 0)
      mask.allowed =
          both(e, mask.allowed, e.make<graph::LessEqualOp>({e.sub(own, e.splat(i64, left)), column}));
    return success(mask.allowed != nullptr);
  }
  if (left < 0 && right < 0)
    return success();
  // Every query has a place among the keys, which it may read.
  mask.readsItself = h.past + h.rows <= h.columns;
  auto window = [&](int64_t size, int64_t sign) {
    return size < 0 ? std::nullopt : std::optional(h.past + sign * size);
  };
  mask.fixed = e.band(h.rows, h.columns, window(left, -1), window(right, 1));
  return success(mask.fixed != nullptr);
}

/// The mask operand: bools, or numbers that are added. What it lacks at the end is masked. A number
/// stays at or above the lowest one, so that no row becomes NaN.
static LogicalResult addOperand(NodeBuilder &n, const Heads &h, Value lowest, Mask &mask) {
  Emitter &e = n.e;
  Value given = n.input(3);
  if (!given)
    return failure();
  bool isBool = Emitter::elementOf(given).isInteger(1);
  int64_t rank = Emitter::rankOf(given), width = rank ? Emitter::shapeOf(given).back() : 1;
  if (!isBool)
    given = e.maximum(given, lowest);
  if (rank && width < h.columns && (width > 1 || h.columns == 1)) {
    Value filler = isBool ? e.splat(e.builder.getI1Type(), 0) : lowest;
    auto constant = filler.getDefiningOp<graph::ConstantOp>();
    TypedAttr value = cast<TypedAttr>(*cast<DenseElementsAttr>(constant.getValue()).value_begin<Attribute>());
    SmallVector<int64_t> lows(rank, 0), highs(rank, 0);
    highs.back() = h.columns - width;
    given = e.make<graph::PadOp>(
        given, {e.attr("lows", ArrayRef(lows)), e.attr("highs", ArrayRef(highs)), e.attr("value", value)});
  }
  if (!given)
    return failure();
  SmallVector<int64_t> scores{h.batch, h.heads, h.rows, h.columns};
  auto shape = graph::broadcastShapes(Emitter::shapeOf(given), scores);
  if (failed(shape) || ArrayRef(*shape) != ArrayRef(scores))
    return n.error() << "has a mask of type " << Emitter::typeOf(given)
                     << ", expected one that broadcasts to [" << scores << "]";
  if (isBool)
    mask.allowed = both(e, mask.allowed, given);
  else
    mask.bias = given;
  return success();
}

/// The scores with the mask. A masked score is the lowest number rather than -inf, so that a row
/// without any valid entry doesn't become NaN.
static Value addMask(Emitter &e, const Mask &mask, Value scores, Value lowest) {
  Value zero = e.scalar(0, scores);
  if (mask.fixed)
    scores = e.add(scores, e.where(mask.fixed, zero, lowest));
  if (mask.allowed && mask.bias)
    return e.add(scores, e.where(mask.allowed, mask.bias, lowest));
  if (mask.allowed)
    return e.add(scores, e.where(mask.allowed, zero, lowest));
  return mask.bias ? e.add(scores, mask.bias) : scores;
}

/// Which rows have a valid entry, [..., rows, 1]; null where all have one for certain.
static Value validRows(Emitter &e, const Mask &mask, Value lowest) {
  if (mask.readsItself && !mask.allowed && !mask.bias)
    return {};
  Value valid = both(e, mask.fixed, mask.allowed);
  if (mask.bias)
    valid = both(e, valid, e.less(lowest, mask.bias));
  if (!valid)
    return {};
  Value counted = e.convert(valid, e.builder.getI32Type());
  int64_t rank = counted ? Emitter::rankOf(counted) : 0;
  if (rank < 2)
    return {};
  Value any = e.convert(e.reduce<graph::ReduceMaxOp>(counted, rank - 1), e.builder.getI1Type());
  auto known = constantIntegers(any);
  return known && !llvm::is_contained(*known, 0) ? Value() : any;
}

static LogicalResult attention(NodeBuilder &n) {
  Emitter &e = n.e;
  FailureOr<Heads> heads = headsOf(n);
  if (failed(heads))
    return failure();
  Heads &h = *heads;
  auto element = dyn_cast<FloatType>(Emitter::elementOf(h.query));
  if (!element)
    return n.error() << "has queries of type " << Emitter::typeOf(h.query) << ", expected floating point";
  Value lowest =
      e.constant(DenseElementsAttr::get(RankedTensorType::get({}, element),
                                        APFloat::getLargest(element.getFloatSemantics(), /*Negative=*/true)));
  Mask mask;
  if (failed(addRules(n, h, mask)) || (n.has(3) && failed(addOperand(n, h, lowest, mask))))
    return failure();

  double scale = n.floatAttr("scale", 0), softcap = n.floatAttr("softcap", 0);
  if (!n.attribute("scale"))
    scale = 1 / std::sqrt((double)h.size);
  Value query = e.mul(h.query, e.splat(element, scale));
  Value product = e.matmul(query, e.transpose(h.key, {0, 1, 3, 2})), capped = product;
  if (softcap > 0)
    capped =
        e.mul(e.make<graph::TanhOp>(e.div(product, e.splat(element, softcap))), e.splat(element, softcap));
  Value scores = capped ? addMask(e, mask, capped, lowest) : Value();
  Value weights = e.make<graph::SoftmaxOp>(scores, e.attr("axis", 3));
  Value result = e.matmul(weights, h.value);
  if (!result)
    return failure();
  // A row that may read nothing gives zeros.
  Value valid = validRows(e, mask, lowest), zero = e.splat(element, 0);
  if (valid)
    result = e.where(valid, result, zero);
  if (n.wants(3)) {
    int64_t mode = n.integerAttr("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      return n.error() << "has qk_matmul_output_mode " << mode << ", expected 0 to 3";
    Value shown = mode == 0 ? product : mode == 1 ? capped : scores;
    if (mode == 2) // what is masked is shown as -inf
      shown = e.where(e.make<graph::LessEqualOp>({scores, e.mul(lowest, e.splat(element, 0.5))}),
                      e.splat(element, -std::numeric_limits<double>::infinity()), scores);
    if (mode == 3)
      shown = valid ? e.where(valid, weights, zero) : weights;
    if (failed(n.set(3, shown)))
      return failure();
  }
  if (h.isFlat) {
    int64_t size = Emitter::shapeOf(result)[3];
    result = e.reshape(e.transpose(result, {0, 2, 1, 3}), {h.batch, h.rows, h.heads * size});
  }
  return failure(failed(n.set(0, result)) || failed(n.set(1, h.presentKey)) ||
                 failed(n.set(2, h.presentValue)));
}

/// Rotates pairs of each head's numbers by the angle of their place.
static LogicalResult rotaryEmbedding(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0), cosine = n.input(1), sine = n.input(2);
  if (!x || !cosine || !sine)
    return failure();
  SmallVector<int64_t> original(Emitter::shapeOf(x));
  if (original.size() == 3) {
    Value split = splitHeads(n, x, n.integerAttr("num_heads", 0));
    if (!split)
      return failure();
    x = split;
  } else if (original.size() != 4) {
    return n.error() << "has an input of type " << Emitter::typeOf(x) << ", expected rank 3 or 4";
  }
  SmallVector<int64_t> shape(Emitter::shapeOf(x)); // [batch, heads, rows, size]
  int64_t rotated = n.integerAttr("rotary_embedding_dim", 0);
  if (rotated == 0)
    rotated = shape[3];
  if (rotated < 2 || rotated > shape[3] || rotated % 2)
    return n.error() << "rotates " << rotated << " of " << shape[3]
                     << " numbers, expected an even number of them";
  int64_t half = rotated / 2;
  bool interleaved = n.integerAttr("interleaved", 0) != 0;
  auto cache = [&](Value table) -> Value {
    if (n.has(3)) {
      Value places = n.input(3);
      table = places ? e.gather(table, places, 0) : Value();
    }
    if (!table)
      return {};
    ArrayRef<int64_t> own = Emitter::shapeOf(table);
    if (own.size() != 3 || (own[0] != 1 && own[0] != shape[0]) || own[1] != shape[2] || own[2] != half) {
      n.error() << "has a cache of type " << Emitter::typeOf(table) << ", expected [" << shape[0] << " or 1, "
                << shape[2] << ", " << half << "]";
      return {};
    }
    SmallVector<int64_t> spread{own[0], 1, own[1], own[2]};
    spread.insert(spread.end() - !interleaved, 1);
    return e.reshape(table, spread);
  };
  cosine = cache(cosine);
  sine = cosine ? cache(sine) : Value();
  if (!sine)
    return failure();
  // Halves or neighbours are the two sides of a dimension of their own; turned, the sides are read
  // backwards and the first is negative.
  SmallVector<int64_t> pairs{shape[0], shape[1], shape[2], half};
  pairs.insert(pairs.end() - !interleaved, 2);
  SmallVector<int64_t> starts(5, 0), steps(5, 1), sides{2};
  int64_t side = interleaved ? 4 : 3;
  starts[side] = 1;
  steps[side] = -1;
  if (!interleaved)
    sides.push_back(1);
  Value turning = e.reshape(e.slice(x, 3, 0, rotated), pairs);
  Value turned = turning ? e.make<graph::SliceOp>(turning, {e.attr("starts", starts), e.attr("sizes", pairs),
                                                            e.attr("steps", steps)})
                         : Value();
  Value signs = e.convert(
      e.sub(e.mul(e.counting(e.builder.getI64Type(), 2, 0, sides.size()), e.splat(e.builder.getI64Type(), 2)),
            e.splat(e.builder.getI64Type(), 1)),
      Emitter::elementOf(x));
  Value result = e.add(e.mul(turning, cosine), e.mul(turned, e.mul(sine, signs)));
  result = result ? e.reshape(result, {shape[0], shape[1], shape[2], rotated}) : Value();
  if (rotated < shape[3])
    result = e.concat({result, e.slice(x, 3, rotated, shape[3] - rotated)}, 3);
  if (original.size() == 3 && result)
    result = e.reshape(e.transpose(result, {0, 2, 1, 3}), original);
  return n.set(0, result);
}

ArrayRef<OpRow> attentionOps() {
  static const OpRow rows[] = {
      {"Attention", 23, kMaxOpset, attention},
      {"RotaryEmbedding", 23, kMaxOpset, rotaryEmbedding},
  };
  return rows;
}

} // namespace dsopt::onnx_import
