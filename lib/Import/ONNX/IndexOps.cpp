//===- IndexOps.cpp - gathers, scatters, one-hot, the largest k ------------===//
//
// What has indices of several dimensions becomes one index into flattened data:
// gathers and scatters of rows are the primitives.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "RefusedOperators.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Along more elements than this the largest are not sorted out.
static constexpr int64_t kMaxTopK = 4096;

/// Checks constant indices; those of data are checked where the data is read.
static LogicalResult checkIndices(NodeBuilder &n, Value indices, Value data, int64_t axis) {
  auto known = constantIntegers(indices);
  int64_t size = Emitter::shapeOf(data)[axis];
  for (int64_t index : known.value_or(SmallVector<int64_t>()))
    if (index < -size || index >= size)
      return n.error() << "has index " << index << " along axis " << axis << " of " << Emitter::typeOf(data)
                       << ", expected " << -size << " to " << size - 1;
  return success();
}

template <typename Op> static LogicalResult gather(NodeBuilder &n) {
  Value data = n.input(0), indices = n.input(1);
  if (!data || !indices)
    return failure();
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(data));
  if (failed(axis) || failed(checkIndices(n, indices, data, *axis)))
    return failure();
  return n.set(0, n.e.make<Op>({data, indices}, n.e.attr("axis", *axis)));
}

/// Rows of flattened data that tuples of indices, the last dimension of `indices`, name: the row
/// among the `depth` dimensions of `data` from `batch` on; null after an error.
static Value rowsOf(NodeBuilder &n, Value data, Value indices, int64_t batch) {
  Emitter &e = n.e;
  ArrayRef<int64_t> shape = Emitter::shapeOf(indices);
  int64_t last = shape.size() - 1, depth = shape.back();
  SmallVector<int64_t> outer(shape.drop_back());
  Value rows;
  for (int64_t i = 0; i < depth; ++i) {
    int64_t size = Emitter::shapeOf(data)[batch + i];
    Value index = e.slice(indices, last, i, 1);
    if (!index || failed(checkIndices(n, index, data, batch + i)))
      return {};
    index = e.countedFromFront(e.reshape(index, outer), size);
    rows = rows ? e.add(e.mul(rows, e.scalar(size, rows)), index) : index;
  }
  return rows;
}

static LogicalResult checkTuples(NodeBuilder &n, Value data, Value indices, int64_t batch) {
  int64_t rank = Emitter::rankOf(data), indexRank = Emitter::rankOf(indices);
  int64_t depth = indexRank ? Emitter::shapeOf(indices).back() : 0;
  if (batch < 0 || batch >= std::min(rank, indexRank) || depth < 1 || depth > rank - batch ||
      Emitter::shapeOf(data).take_front(batch) != Emitter::shapeOf(indices).take_front(batch))
    return n.error() << "has data of type " << Emitter::typeOf(data) << " and indices of type "
                     << Emitter::typeOf(indices) << ", expected " << batch
                     << " equal batch dimensions and at most as many indices as data has others";
  return success();
}

static LogicalResult gatherND(NodeBuilder &n) {
  Emitter &e = n.e;
  Value data = n.input(0), indices = n.input(1);
  int64_t batch = n.integerAttr("batch_dims", 0);
  if (!data || !indices || failed(checkTuples(n, data, indices, batch)))
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(data), indexShape = Emitter::shapeOf(indices);
  int64_t depth = indexShape.back(), batches = ShapedType::getNumElements(shape.take_front(batch));
  int64_t perBatch = ShapedType::getNumElements(shape.slice(batch, depth));
  Value rows = rowsOf(n, data, indices, batch);
  if (rows && batch > 0) {
    Value first = e.mul(e.counting(e.builder.getI64Type(), batches, 0, 1), e.scalar(perBatch, rows));
    SmallVector<int64_t> outer(Emitter::rankOf(rows), 1);
    llvm::copy(shape.take_front(batch), outer.begin());
    rows = e.add(rows, e.reshape(first, outer));
  }
  SmallVector<int64_t> flat{batches * perBatch};
  llvm::append_range(flat, shape.drop_front(batch + depth));
  return n.set(0, e.gather(e.reshape(data, flat), rows, 0));
}

/// The mode of graph.scatter; fails with an error.
static FailureOr<ScatterMode> scatterMode(NodeBuilder &n) {
  StringRef reduction = n.opset < 16 ? "none" : n.stringAttr("reduction", "none");
  if (reduction == "none")
    return ScatterMode::Set;
  std::optional<ScatterMode> mode = symbolizeScatterMode(reduction);
  if (!mode || mode == ScatterMode::Set ||
      (n.opset < 18 && (mode == ScatterMode::Min || mode == ScatterMode::Max)))
    return n.error() << "has reduction '" << reduction << "', expected none, add, mul"
                     << (n.opset < 18 ? "" : ", min or max");
  return *mode;
}

static Value scatterRows(NodeBuilder &n, Value data, Value rows, Value updates, ScatterMode mode) {
  Emitter &e = n.e;
  return e.make<graph::ScatterOp>({data, rows, updates},
                                  e.attr("mode", ScatterModeAttr::get(e.builder.getContext(), mode)));
}

static LogicalResult scatterND(NodeBuilder &n) {
  Emitter &e = n.e;
  Value data = n.input(0), indices = n.input(1), updates = n.input(2);
  FailureOr<ScatterMode> mode = scatterMode(n);
  if (!data || !indices || !updates || failed(mode) || failed(checkTuples(n, data, indices, 0)))
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(data), indexShape = Emitter::shapeOf(indices);
  int64_t depth = indexShape.back();
  SmallVector<int64_t> expected(indexShape.drop_back());
  llvm::append_range(expected, shape.drop_front(depth));
  if (Emitter::shapeOf(updates) != ArrayRef(expected))
    return n.error() << "has updates of type " << Emitter::typeOf(updates) << ", expected shape [" << expected
                     << "]";
  int64_t rows = ShapedType::getNumElements(shape.take_front(depth)),
          width = ShapedType::getNumElements(shape.drop_front(depth)),
          count = ShapedType::getNumElements(indexShape.drop_back());
  Value places = e.reshape(rowsOf(n, data, indices, 0), count);
  Value result =
      scatterRows(n, e.reshape(data, {rows, width}), places, e.reshape(updates, {count, width}), *mode);
  return n.set(0, e.reshape(result, shape));
}

static LogicalResult scatterElements(NodeBuilder &n) {
  Emitter &e = n.e;
  Value data = n.input(0), indices = n.input(1), updates = n.input(2);
  FailureOr<ScatterMode> mode = scatterMode(n);
  if (!data || !indices || !updates || failed(mode))
    return failure();
  ArrayRef<int64_t> shape = Emitter::shapeOf(data), indexShape = Emitter::shapeOf(indices);
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", 0), shape.size());
  if (failed(axis) || failed(checkIndices(n, indices, data, *axis)))
    return failure();
  if (indexShape.size() != shape.size() || Emitter::shapeOf(updates) != indexShape)
    return n.error() << "has data of type " << Emitter::typeOf(data) << ", indices of type "
                     << Emitter::typeOf(indices) << " and updates of type " << Emitter::typeOf(updates)
                     << ", expected equal ranks and updates of the indices' shape";
  // Row-major places: the index along the axis, the element's own position along others.
  Value places;
  for (int64_t dim = 0; dim < (int64_t)shape.size(); ++dim) {
    Value along = dim == *axis ? e.countedFromFront(indices, shape[dim])
                               : e.counting(e.builder.getI64Type(), indexShape[dim], dim, shape.size());
    places = places ? e.add(e.mul(places, e.scalar(shape[dim], places)), along) : along;
  }
  int64_t count = ShapedType::getNumElements(indexShape), all = ShapedType::getNumElements(shape);
  places = e.reshape(e.expand(places, indexShape), count);
  Value result = scatterRows(n, e.reshape(data, {all, 1}), places, e.reshape(updates, {count, 1}), *mode);
  return n.set(0, e.reshape(result, shape));
}

static LogicalResult oneHot(NodeBuilder &n) {
  Emitter &e = n.e;
  Value indices = n.input(0), values = n.input(2);
  if (!indices || !values)
    return failure();
  DenseElementsAttr given = n.constant(1, "depth");
  if (!given)
    return failure();
  auto depths = constantIntegers(e.convert(e.constant(given), e.builder.getI64Type()));
  if (!depths || depths->size() != 1 || depths->front() < 1)
    return n.error() << "has depth " << given << ", expected one number of 1 or more";
  int64_t depth = depths->front(), rank = Emitter::rankOf(indices) + 1;
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", -1), rank);
  if (failed(axis))
    return failure();
  if (Emitter::shapeOf(values) != ArrayRef<int64_t>(2))
    return n.error() << "has values of type " << Emitter::typeOf(values) << ", expected off and on";
  SmallVector<int64_t> shape(Emitter::shapeOf(indices));
  shape.insert(shape.begin() + *axis, 1);
  Value places = e.reshape(e.countedFromFront(indices, depth), shape);
  Value isHot = e.equal(places, e.counting(e.builder.getI64Type(), depth, *axis, rank));
  Value off = e.reshape(e.slice(values, 0, 0, 1), {}), on = e.reshape(e.slice(values, 0, 1, 1), {});
  return n.set(0, e.where(isHot, on, off), n.narrow(2));
}

/// The largest k along an axis, in order: an element's rank is how many come before it, equal ones
/// in the order of their places.
static LogicalResult topK(NodeBuilder &n) {
  Emitter &e = n.e;
  Value x = n.input(0);
  FailureOr<int64_t> k = x ? n.integer(1, "k") : FailureOr<int64_t>();
  if (failed(k))
    return failure();
  int64_t rank = Emitter::rankOf(x);
  FailureOr<int64_t> axis = n.axis(n.integerAttr("axis", -1), rank);
  if (failed(axis))
    return failure();
  int64_t size = Emitter::shapeOf(x)[*axis];
  if (*k < 0 || *k > size || size > kMaxTopK)
    return n.error() << "takes " << *k << " of " << size << " elements along axis " << *axis
                     << ", expected as many at most, and of no more than " << kMaxTopK;
  bool largest = n.integerAttr("largest", 1) != 0;
  Value last = e.moveAxis(x, *axis, rank - 1);
  SmallVector<int64_t> lead(Emitter::shapeOf(last).drop_back());
  int64_t rows = ShapedType::getNumElements(lead);
  Value flat = e.reshape(last, {rows, size});
  Type i64 = e.builder.getI64Type();
  Value own = e.reshape(flat, {rows, size, 1}), other = e.reshape(flat, {rows, 1, size});
  Value better = largest ? e.less(own, other) : e.less(other, own);
  Value earlier = e.less(e.counting(i64, size, 2, 3), e.counting(i64, size, 1, 3));
  Value before = e.make<graph::OrOp>({better, e.make<graph::AndOp>({e.equal(own, other), earlier})});
  Value ranks = e.sum(e.convert(before, i64), 2, /*keepdims=*/false);
  Value isChosen = e.equal(e.reshape(ranks, {rows, 1, size}), e.counting(i64, *k, 1, 3));
  Value zero = e.splat(i64, 0);
  Value places = e.sum(e.where(isChosen, e.counting(i64, size, 2, 3), zero), 2, /*keepdims=*/false);
  Value values = e.make<graph::GatherElementsOp>({flat, places}, e.attr("axis", 1));
  lead.push_back(*k);
  auto finish = [&](Value result) { return e.moveAxis(e.reshape(result, lead), rank - 1, *axis); };
  return failure(failed(n.set(0, finish(values))) || failed(n.set(1, finish(places))));
}

/// Of a constant only: the number of results is a shape.
static LogicalResult nonZero(NodeBuilder &n) {
  DenseElementsAttr given = n.constant(0, "data", remedyForChoice());
  if (!given)
    return failure();
  Value isOther = n.e.convert(n.e.constant(given), n.e.builder.getI1Type());
  auto flags = constantIntegers(isOther);
  if (!flags)
    return n.error() << "has data of type " << given.getType() << ", expected numbers, at most 2^24";
  ArrayRef<int64_t> shape = given.getType().getShape();
  int64_t rank = shape.size(), count = llvm::count(*flags, 1);
  SmallVector<int64_t> places(rank * count);
  int64_t found = 0;
  for (auto [at, flag] : llvm::enumerate(*flags)) {
    if (!flag)
      continue;
    for (int64_t rest = at, dim = rank - 1; dim >= 0; rest /= shape[dim--])
      places[dim * count + found] = rest % shape[dim];
    ++found;
  }
  return n.set(0, n.e.reshape(n.e.integers(places), {rank, count}));
}

/// By a constant only: the number of results is a shape.
static LogicalResult compress(NodeBuilder &n) {
  Emitter &e = n.e;
  Value data = n.input(0);
  FailureOr<SmallVector<int64_t>> condition = n.integers(1, "a condition", remedyForChoice());
  if (!data || failed(condition))
    return failure();
  FailureOr<int64_t> axis = 0;
  if (n.attribute("axis"))
    axis = n.axis(n.integerAttr("axis", 0), Emitter::rankOf(data));
  else
    data = e.reshape(data, graph::numElements(data.getType()));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> places;
  for (auto [place, holds] : llvm::enumerate(*condition))
    if (holds)
      places.push_back(place);
  int64_t size = Emitter::shapeOf(data)[*axis];
  if ((int64_t)condition->size() > size)
    return n.error() << "has a condition of " << condition->size() << " elements for " << size << " of axis "
                     << *axis << ", expected no more";
  return n.set(0, e.gather(data, e.integers(places), *axis));
}

/// The first elements of each sequence, backwards; what is behind them stays.
static LogicalResult reverseSequence(NodeBuilder &n) {
  Emitter &e = n.e;
  Value data = n.input(0), lengths = n.input(1);
  if (!data || !lengths)
    return failure();
  int64_t time = n.integerAttr("time_axis", 0), batch = n.integerAttr("batch_axis", 1);
  ArrayRef<int64_t> shape = Emitter::shapeOf(data);
  if (shape.size() < 2 || time + batch != 1 || std::min(time, batch) != 0 ||
      Emitter::shapeOf(lengths) != ArrayRef(shape[batch]) || !isa<IntegerType>(Emitter::elementOf(lengths)))
    return n.error() << "has data of type " << Emitter::typeOf(data) << " and lengths of type "
                     << Emitter::typeOf(lengths) << " for time_axis " << time << " and batch_axis " << batch
                     << ", expected the axes 0 and 1, and a length for each of the batch";
  SmallVector<int64_t> along(shape.size(), 1);
  along[batch] = shape[batch];
  Value length = e.reshape(e.convert(lengths, e.builder.getI64Type()), along);
  Value place = e.counting(e.builder.getI64Type(), shape[time], time, shape.size());
  Value from = e.where(e.less(place, length), e.sub(e.sub(length, place), e.scalar(1, place)), place);
  return n.set(0, e.make<graph::GatherElementsOp>({data, e.expand(from, shape)}, e.attr("axis", time)));
}

ArrayRef<OpRow> indexOps() {
  static const OpRow rows[] = {
      {"Compress", 9, kMaxOpset, compress},
      {"Gather", 1, kMaxOpset, gather<graph::GatherOp>},
      {"GatherElements", 11, kMaxOpset, gather<graph::GatherElementsOp>},
      {"GatherND", 11, kMaxOpset, gatherND},
      {"NonZero", 9, kMaxOpset, nonZero},
      {"OneHot", 9, kMaxOpset, oneHot},
      {"ReverseSequence", 10, kMaxOpset, reverseSequence},
      {"Scatter", 9, 10, scatterElements},
      {"ScatterElements", 11, kMaxOpset, scatterElements},
      {"ScatterND", 11, kMaxOpset, scatterND},
      {"TopK", 1, kMaxOpset, topK},
  };
  return rows;
}

} // namespace dsopt::onnx_import
