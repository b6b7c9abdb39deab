//===- RowLoops.cpp - one loop over rows, loops inside of each ------------===//
//
// Inside a row the kernel is a list of steps: scalars of the row, then loops over
// the dimensions that are left. A reduction is complete after its loop, so what
// uses it belongs to a later stage. Loops of equal extents in one stage are one.
// A value that several loops need is computed again in each, or, where that is
// dear, kept in a row of scratch or in a result's own row.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dsopt {
namespace {
/// Scratch of a kernel in all; what does not fit is computed again.
constexpr int64_t kScratchBytes = 256 * 1024;
/// Below this extent the last loop is one with those around it.
constexpr int64_t kShortLoop = 16;

struct Nest {
  int64_t stage = 0;
  SmallVector<int64_t> sizes;
  SmallVector<linalg::GenericOp> reductions;
  /// Values computed here and stored: the buffer and its first dimension.
  struct Store {
    linalg::GenericOp generic;
    Value buffer;
    int64_t firstDim;
  };
  SmallVector<Store> stores;
};

class RowLoops {
public:
  RowLoops(KernelEmitter &e, ArrayRef<int64_t> range) : e(e), rows(range.size()), range(range) {}
  void emit();

private:
  bool reduces(linalg::GenericOp op) { return op.getNumReductionLoops() != 0; }
  SmallVector<int64_t> sizesOf(linalg::GenericOp op) {
    return SmallVector<int64_t>(ArrayRef(op.getStaticLoopRanges()).drop_front(rows));
  }
  /// One element a row, computed outside of loops.
  bool isScalar(linalg::GenericOp op) {
    return !reduces(op) && llvm::all_of(sizesOf(op), [](int64_t size) { return size == 1; });
  }
  bool isDear(linalg::GenericOp op);
  linalg::GenericOp producer(Value value) { return value.getDefiningOp<linalg::GenericOp>(); }
  unsigned nestFor(int64_t stage, ArrayRef<int64_t> sizes);
  void findStages();
  void placeValues();
  void shareResults();
  void emitNest(Nest &nest);
  void emitBody(Nest &nest, const Indices &indices, ValueRange totals, SmallVector<Value> &next);
  void storeScalar(linalg::GenericOp op, Value value);

  KernelEmitter &e;
  size_t rows;
  ArrayRef<int64_t> range;
  Indices rowIndices;
  Value row;
  llvm::DenseMap<Operation *, int64_t> stages;
  std::vector<Nest> nests;
  /// The loops that need a value.
  llvm::DenseMap<Operation *, llvm::SmallSetVector<unsigned, 4>> demands;
  /// Values kept for later loops, without a buffer yet, and the loop that computes each.
  SmallVector<std::pair<linalg::GenericOp, unsigned>> kept;
};

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
      } else if (needed.size() > 1 && isDear(op) && scratch + bytes <= kScratchBytes) {
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
    e.store(value, buffer, row);
}

void RowLoops::emitBody(Nest &nest, const Indices &indices, ValueRange totals, SmallVector<Value> &next) {
  e.forget();
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
}

void RowLoops::emitNest(Nest &nest) {
  SmallVector<Value> totals;
  for (linalg::GenericOp reduction : nest.reductions)
    totals.push_back(e.neutral(reduction));
  Indices indices = rowIndices;
  SmallVector<Value> results;
  if (!nest.sizes.empty() && nest.sizes.back() < kShortLoop && nest.sizes.size() > 1) {
    int64_t count = 1;
    for (int64_t size : nest.sizes)
      count *= size;
    results = e.loop(e.index(0), e.index(count), 1, totals, [&](Value linear, ValueRange carried) {
      llvm::append_range(indices, e.pushCounter(linear, nest.sizes));
      SmallVector<Value> next;
      emitBody(nest, indices, carried, next);
      e.popCounter();
      return next;
    });
  } else {
    std::function<SmallVector<Value>(size_t, ValueRange)> level = [&](size_t dim, ValueRange carried) {
      SmallVector<Value> next;
      if (dim == nest.sizes.size()) {
        emitBody(nest, indices, carried, next);
        return next;
      }
      if (nest.sizes[dim] == 1) {
        indices.push_back(e.index(0));
        return level(dim + 1, carried);
      }
      return e.loop(e.index(0), e.index(nest.sizes[dim]), 1, carried, [&](Value i, ValueRange inner) {
        indices.push_back(i);
        return level(dim + 1, inner);
      });
    };
    results = level(0, totals);
  }
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

  // Not vectorized over rows and not unrolled: each row runs the same code
  // wherever the range is cut.
  e.loop(
      e.low, e.high, 1, {},
      [&](Value linear, ValueRange) {
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
          for (; next != order.end() && (*next)->stage == stage; ++next)
            emitNest(**next);
        }
        e.popCounter();
        return SmallVector<Value>();
      },
      /*plain=*/true);
}
} // namespace

void emitRows(KernelEmitter &emitter, ArrayRef<int64_t> range) { RowLoops(emitter, range).emit(); }
} // namespace dsopt
