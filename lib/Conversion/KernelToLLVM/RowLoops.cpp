//===- RowLoops.cpp - one loop over rows, loops inside of each ------------===//

#include "RowLoops.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dsopt {
/// Below this extent the last loop is one with those around it.
static constexpr int64_t kShortLoop = 16;

bool RowLoops::isDear(linalg::GenericOp op) {
  auto payload = op.getBody()->without_terminator();
  return llvm::any_of(payload, [](Operation &part) {
    return isa<arith::DivFOp>(part) ||
           (isa<math::MathDialect>(part.getDialect()) && !isa<math::AbsFOp, math::AbsIOp, math::FmaOp>(part));
  });
}

unsigned RowLoops::nestFor(int64_t stage, ArrayRef<int64_t> sizes) {
  for (auto [i, nest] : llvm::enumerate(nests))
    if (nest.stage == stage && ArrayRef(nest.sizes) == sizes)
      return i;
  Nest &nest = nests.emplace_back();
  nest.stage = stage;
  nest.sizes.assign(sizes);
  return nests.size() - 1;
}

void RowLoops::findStages() {
  for (linalg::GenericOp op : e.generics) {
    int64_t stage = 0;
    for (Value input : op.getDpsInputs())
      if (linalg::GenericOp from = producer(input)) {
        bool later = reduces(from) || (!isScalar(from) && sizesOf(from) != sizesOf(op));
        stage = std::max(stage, stages[from] + later);
      }
    stages[op] = stage;
  }
}

/// From the last operation to the first: who needs a value decides where it is computed.
void RowLoops::placeValues() {
  int64_t scratch = 0;
  for (linalg::GenericOp op : llvm::reverse(e.generics)) {
    if (isScalar(op))
      continue;
    Value result = op.getResult(0);
    auto needed = demands[op];
    SmallVector<unsigned> computedIn;
    if (reduces(op)) {
      computedIn.push_back(nestFor(stages[op], sizesOf(op)));
      nests[computedIn[0]].reductions.push_back(op);
    } else {
      SmallVector<int64_t> sizes = sizesOf(op);
      auto first = [&] {
        std::optional<unsigned> best;
        for (unsigned nest : needed) {
          if (nests[nest].sizes != sizes)
            return nestFor(stages[op], sizes);
          if (!best || nests[nest].stage < nests[*best].stage)
            best = nest;
        }
        return best ? *best : nestFor(stages[op], sizes);
      };
      int64_t bytes = graph::elementBytes(getElementTypeOrSelf(result.getType()));
      for (int64_t size : sizes)
        bytes *= size;
      if (Value buffer = e.outputOf(result)) {
        unsigned nest = first();
        nests[nest].stores.push_back({op, buffer, 0});
        computedIn.push_back(nest);
      } else if (needed.size() > 1 && isDear(op) && scratch + bytes <= scratchBytes()) {
        scratch += bytes;
        unsigned nest = first();
        kept.push_back({op, nest});
        computedIn.push_back(nest);
      } else {
        computedIn = llvm::to_vector(needed.getArrayRef());
      }
    }
    for (Value input : op.getDpsInputs())
      if (linalg::GenericOp from = producer(input))
        demands[from].insert(computedIn.begin(), computedIn.end());
  }
}

/// Gives what is kept a buffer: the row of a result that is stored no earlier than
/// the kept value is last read, else scratch.
void RowLoops::shareResults() {
  llvm::SmallDenseSet<Value> taken;
  for (auto [op, home] : kept) {
    Type element = getElementTypeOrSelf(op.getResult(0).getType());
    int64_t last = nests[home].stage;
    bool sameLoops = true;
    for (unsigned nest : demands[op]) {
      last = std::max(last, nests[nest].stage);
      sameLoops &= nests[nest].sizes == nests[home].sizes;
    }
    Nest::Store store{op, {}, 0};
    if (sameLoops)
      for (Nest &nest : nests)
        for (Nest::Store &other : nest.stores)
          if (nest.stage >= last && nest.sizes == nests[home].sizes && other.firstDim == 0 && !store.buffer &&
              getElementTypeOrSelf(other.generic.getResult(0).getType()) == element &&
              other.buffer == e.outputOf(other.generic.getResult(0)) && taken.insert(other.buffer).second)
            store.buffer = other.buffer;
    if (!store.buffer) {
      int64_t elements = 1;
      for (int64_t size : nests[home].sizes)
        elements *= size;
      store.buffer = e.scratch(elements, element);
      store.firstDim = rows;
    }
    nests[home].stores.push_back(store);
  }
}

void RowLoops::storeScalar(linalg::GenericOp op, Value value) {
  Value result = op.getResult(0);
  e.hold(result, value);
  if (Value buffer = e.outputOf(result))
    storeOnce(value, buffer, row);
}

SmallVector<Value> RowLoops::emitBody(Nest &nest, const Indices &indices, ValueRange totals) {
  e.forget();
  SmallVector<Value> next;
  // Stores follow all loads: a result's row may hold what is read here.
  SmallVector<Value> values;
  for (Nest::Store &store : nest.stores)
    values.push_back(e.element(store.generic.getResult(0), indices));
  for (auto [reduction, total] : llvm::zip_equal(nest.reductions, totals))
    next.push_back(e.payload(reduction, indices, total).front());
  for (auto [store, value] : llvm::zip_equal(nest.stores, values)) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(store.generic.getResult(0).getType()).getShape();
    e.store(value, store.buffer,
            e.address(shape.drop_front(store.firstDim), ValueRange(indices).drop_front(store.firstDim)));
  }
  e.forget();
  return next;
}

SmallVector<Value> RowLoops::overRow(Nest &nest, ValueRange totals) {
  Indices indices = rowIndices;
  if (!nest.sizes.empty() && nest.sizes.back() < kShortLoop && nest.sizes.size() > 1) {
    int64_t count = 1;
    for (int64_t size : nest.sizes)
      count *= size;
    return e.loop(e.index(0), e.index(count), 1, totals, [&](Value linear, ValueRange carried) {
      llvm::append_range(indices, e.pushCounter(linear, nest.sizes));
      SmallVector<Value> next = emitBody(nest, indices, carried);
      e.popCounter();
      return next;
    });
  }
  std::function<SmallVector<Value>(size_t, ValueRange)> level = [&](size_t dim, ValueRange carried) {
    if (dim == nest.sizes.size())
      return emitBody(nest, indices, carried);
    if (nest.sizes[dim] == 1) {
      indices.push_back(e.index(0));
      return level(dim + 1, carried);
    }
    return e.loop(e.index(0), e.index(nest.sizes[dim]), 1, carried, [&](Value i, ValueRange inner) {
      indices.push_back(i);
      return level(dim + 1, inner);
    });
  };
  return level(0, totals);
}

void RowLoops::overRows(llvm::function_ref<void(Value)> body) {
  // Not vectorized over rows and not unrolled: each row runs the same code
  // wherever the range is cut.
  e.loop(
      e.low, e.high, 1, {},
      [&](Value linear, ValueRange) {
        body(linear);
        return SmallVector<Value>();
      },
      /*plain=*/true);
}

void RowLoops::emitNest(Nest &nest) {
  SmallVector<Value> totals;
  for (linalg::GenericOp reduction : nest.reductions)
    totals.push_back(e.neutral(reduction));
  SmallVector<Value> results = overRow(nest, totals);
  for (auto [reduction, total] : llvm::zip_equal(nest.reductions, results))
    storeScalar(reduction, total);
  for (Nest::Store &store : nest.stores)
    e.settle(store.generic.getResult(0), store.buffer, store.firstDim);
}

void RowLoops::emit() {
  findStages();
  placeValues();
  shareResults();
  SmallVector<Nest *> order;
  int64_t lastStage = 0;
  for (Nest &nest : nests)
    order.push_back(&nest);
  llvm::stable_sort(order, [](Nest *a, Nest *b) { return a->stage < b->stage; });
  for (linalg::GenericOp op : e.generics)
    lastStage = std::max(lastStage, stages[op]);

  overRows([&](Value linear) {
    row = linear;
    rowIndices = e.pushCounter(linear, range);
    auto next = order.begin();
    for (int64_t stage = 0; stage <= lastStage; ++stage) {
      e.forget();
      for (linalg::GenericOp op : e.generics)
        if (stages[op] == stage && isScalar(op)) {
          Indices indices = rowIndices;
          indices.append(sizesOf(op).size(), e.index(0));
          storeScalar(op, e.payload(op, indices, {}).front());
        }
      bool stores = false;
      for (; next != order.end() && (*next)->stage == stage; ++next) {
        emitNest(**next);
        stores |= !(*next)->stores.empty();
      }
      if (stores && stage < lastStage)
        endStage();
    }
    e.popCounter();
  });
}

void emitRows(KernelEmitter &emitter, ArrayRef<int64_t> range) { RowLoops(emitter, range).emit(); }
} // namespace dsopt
