//===- ThreadLoops.cpp - a kernel's loops on a device's threads -----------===//
//
// Rows: a block each. Its threads take every so-manieth element; what they have of a
// reduction goes through a butterfly in each warp and then, in the order of warps,
// through shared memory, so that all threads have the same total. Columns: 32 at once,
// rows in blocks of 64 to the groups of threads in turn, the groups' sums in order.
// All orders follow from shapes alone.
//
//===----------------------------------------------------------------------===//

#include "ThreadLoops.h"

#include "KernelToLLVM/RowLoops.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dsopt {

/// Rows that one group of threads adds before the next group's.
static constexpr int64_t kBlock = 64;

//===----------------------------------------------------------------------===//
// Threads and what they share
//===----------------------------------------------------------------------===//

static Value threadId(KernelEmitter &e) { return gpu::ThreadIdOp::create(e.b, gpu::Dimension::x); }
static Value blockId(KernelEmitter &e) { return gpu::BlockIdOp::create(e.b, gpu::Dimension::x); }
static Value gridSize(KernelEmitter &e) { return gpu::GridDimOp::create(e.b, gpu::Dimension::x); }
static void barrier(KernelEmitter &e) { gpu::BarrierOp::create(e.b); }

/// LLVM reads neighbours together, up to so many bytes at a multiple of that.
static constexpr int64_t kSharedAlignment = 16;

Value SharedBuffers::get(KernelEmitter &e, Type elementType, int64_t elements) {
  Type stored = elementType.isInteger(1) ? e.b.getI8Type() : elementType;
  std::string name;
  llvm::raw_string_ostream(name) << function.getName() << ".shared." << stored;
  auto space = gpu::AddressSpaceAttr::get(e.b.getContext(), gpu::AddressSpace::Workgroup);
  int64_t bytes = llvm::divideCeil(stored.getIntOrFloatBitWidth(), 8);
  elements = llvm::alignTo(elements * bytes, kSharedAlignment) / bytes;
  auto global = module.lookupSymbol<memref::GlobalOp>(name);
  if (!global || global.getType().getNumElements() < elements) {
    if (global)
      global.erase();
    OpBuilder builder(function);
    auto type = MemRefType::get(elements, stored, MemRefLayoutAttrInterface(), space);
    global = memref::GlobalOp::create(builder, function.getLoc(), name, builder.getStringAttr("private"),
                                      type, builder.getUnitAttr(), /*constant=*/false,
                                      builder.getI64IntegerAttr(kSharedAlignment));
  }
  return memref::GetGlobalOp::create(e.b, global.getType(), name);
}

/// A loop from each thread's own start; `step` is the same for all.
static SmallVector<Value> strided(KernelEmitter &e, Value from, Value to, Value step, ValueRange carried,
                                  llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(e.b, from, to, step, carried, [](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  e.b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(e.b, next);
  return SmallVector<Value>(loop.getResults());
}

static void onlyIf(KernelEmitter &e, Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(e.b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(branch.thenBlock());
  body();
}

static Value equal(KernelEmitter &e, Value a, Value b) {
  return arith::CmpIOp::create(e.b, arith::CmpIPredicate::eq, a, b);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The one operation that adds a value to a total.
static Operation *combiner(linalg::GenericOp reduction) {
  Block *body = reduction.getBody();
  Value total = body->getArgument(reduction.getNumDpsInputs());
  Operation *made = body->getTerminator()->getOperand(0).getDefiningOp();
  bool isPlain = reduction->getNumResults() == 1 && made && made->getBlock() == body && total.hasOneUse() &&
                 *total.user_begin() == made && made->getNumOperands() == 2 && made->getNumResults() == 1;
  return isPlain ? made : nullptr;
}

static LogicalResult checkReductions(ArrayRef<linalg::GenericOp> generics) {
  for (linalg::GenericOp op : generics)
    if (op.getNumReductionLoops() && !combiner(op))
      return op.emitError(
          "a reduction is more than one operation on a total and a value: threads cannot join their totals");
  return success();
}

static Value combine(KernelEmitter &e, linalg::GenericOp reduction, Value total, Value value) {
  Operation *op = combiner(reduction);
  Value old = reduction.getBody()->getArgument(reduction.getNumDpsInputs());
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, operand == old ? total : value);
  return e.b.clone(*op, mapping)->getResult(0);
}

/// What the lane has whose number differs by `lanes`.
static Value exchange(KernelEmitter &e, Value value, int64_t lanes) {
  auto shuffled = [&](Value part) -> Value {
    return gpu::ShuffleOp::create(e.b, part, lanes, kWarp, gpu::ShuffleMode::XOR).getShuffleResult();
  };
  Type type = value.getType(), word = e.b.getI32Type();
  if (type.isF32() || type == word)
    return shuffled(value);
  // By words of its bits.
  unsigned width = type.getIntOrFloatBitWidth();
  Type bits = e.b.getIntegerType(width);
  Value whole = type == bits ? value : arith::BitcastOp::create(e.b, bits, value).getResult(), made;
  if (width < 32) {
    made = arith::TruncIOp::create(e.b, bits, shuffled(arith::ExtUIOp::create(e.b, word, whole)));
  } else {
    Value by = arith::ConstantIntOp::create(e.b, bits, 32);
    Value high = arith::TruncIOp::create(e.b, word, arith::ShRUIOp::create(e.b, whole, by));
    Value low = arith::TruncIOp::create(e.b, word, whole);
    Value upper = arith::ShLIOp::create(e.b, arith::ExtUIOp::create(e.b, bits, shuffled(high)), by);
    made = arith::OrIOp::create(e.b, upper, arith::ExtUIOp::create(e.b, bits, shuffled(low)));
  }
  return type == bits ? made : arith::BitcastOp::create(e.b, type, made).getResult();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
class ThreadRows : public RowLoops {
public:
  ThreadRows(KernelEmitter &e, ArrayRef<int64_t> range, int64_t threads, SharedBuffers &shared)
      : RowLoops(e, range), threads(threads), shared(shared), thread(threadId(e)) {}

protected:
  void overRows(llvm::function_ref<void(Value)> body) override {
    strided(e, e.add(e.low, blockId(e)), e.high, gridSize(e), {}, [&](Value row, ValueRange) {
      body(row);
      return SmallVector<Value>();
    });
  }
  SmallVector<Value> overRow(Nest &nest, ValueRange totals) override;
  void storeOnce(Value value, Value buffer, Value address) override {
    onlyIf(e, equal(e, thread, e.index(0)), [&] { e.store(value, buffer, address); });
  }
  void endStage() override { barrier(e); }
  /// Threads have nothing of their own to keep a row in: it is computed again.
  int64_t scratchBytes() const override { return 0; }

private:
  Value total(linalg::GenericOp reduction, Value value);

  int64_t threads;
  SharedBuffers &shared;
  Value thread;
};
} // namespace

/// The total of all threads, in all of them.
Value ThreadRows::total(linalg::GenericOp reduction, Value value) {
  for (int64_t lanes = kWarp / 2; lanes; lanes /= 2)
    value = combine(e, reduction, value, exchange(e, value, lanes));
  int64_t warps = threads / kWarp;
  if (warps == 1)
    return value;
  Type type = value.getType();
  Value buffer = shared.get(e, type, warps);
  Value lane = arith::RemUIOp::create(e.b, thread, e.index(kWarp));
  Value warp = arith::DivUIOp::create(e.b, thread, e.index(kWarp));
  onlyIf(e, equal(e, lane, e.index(0)), [&] { e.store(value, buffer, warp); });
  barrier(e);
  value = e.load(buffer, e.index(0), type);
  for (int64_t other = 1; other < warps; ++other)
    value = combine(e, reduction, value, e.load(buffer, e.index(other), type));
  // Before the next total takes the buffer.
  barrier(e);
  return value;
}

SmallVector<Value> ThreadRows::overRow(Nest &nest, ValueRange totals) {
  int64_t count = 1;
  for (int64_t size : nest.sizes)
    count *= size;
  Indices outer = rowIndices;
  SmallVector<Value> results =
      strided(e, thread, e.index(count), e.index(threads), totals, [&](Value linear, ValueRange carried) {
        Indices indices = outer;
        llvm::append_range(indices, e.pushCounter(linear, nest.sizes));
        SmallVector<Value> next = emitBody(nest, indices, carried);
        e.popCounter();
        return next;
      });
  for (auto [reduction, result] : llvm::zip_equal(nest.reductions, results))
    result = total(reduction, result);
  return results;
}

LogicalResult emitRowsOnThreads(KernelEmitter &emitter, ArrayRef<int64_t> range, int64_t threads,
                                SharedBuffers &shared) {
  if (failed(checkReductions(emitter.generics)))
    return failure();
  ThreadRows(emitter, range, threads, shared).emit();
  return success();
}

//===----------------------------------------------------------------------===//
// Columns and elements
//===----------------------------------------------------------------------===//

LogicalResult emitColumnsOnThreads(KernelEmitter &e, ArrayRef<int64_t> range, int64_t threads,
                                   SharedBuffers &shared) {
  if (failed(checkReductions(e.generics)))
    return failure();
  SmallVector<linalg::GenericOp> sums;
  for (linalg::GenericOp op : e.generics)
    if (op.getNumReductionLoops())
      sums.push_back(op);
  SmallVector<int64_t> shape = sums.front().getStaticLoopRanges();
  ArrayRef<int64_t> lead = ArrayRef(shape).drop_back(range.size());
  int64_t rows = 1, groups = threads / kWarp;
  for (int64_t size : lead)
    rows *= size;
  Value thread = threadId(e);
  Value lane = arith::RemUIOp::create(e.b, thread, e.index(kWarp));
  Value group = arith::DivUIOp::create(e.b, thread, e.index(kWarp));
  SmallVector<Value> neutral;
  for (linalg::GenericOp sum : sums)
    neutral.push_back(e.neutral(sum));

  // The sums of a column's blocks of rows that are this group's.
  auto groupTotals = [&](Value column) {
    Value first = e.mul(group, kBlock);
    return strided(e, first, e.index(rows), e.index(kBlock * groups), neutral,
                   [&](Value block, ValueRange totals) {
                     Value end = e.min(e.add(block, e.index(kBlock)), e.index(rows));
                     return strided(e, block, end, e.index(1), totals, [&](Value row, ValueRange running) {
                       e.forget();
                       Indices indices = e.pushCounter(row, lead);
                       llvm::append_range(indices, e.pushCounter(column, range));
                       SmallVector<Value> next;
                       for (auto [sum, total] : llvm::zip_equal(sums, running))
                         next.push_back(e.payload(sum, indices, total).front());
                       e.popCounter();
                       e.popCounter();
                       e.forget();
                       return next;
                     });
                   });
  };
  Value step = arith::MulIOp::create(e.b, gridSize(e), e.index(kWarp));
  Value first = e.add(e.low, arith::MulIOp::create(e.b, blockId(e), e.index(kWarp)));
  // All threads of a block come to its barriers, those behind the last column, too.
  strided(e, first, e.high, step, {}, [&](Value base, ValueRange) {
    Value column = e.add(base, lane);
    Value isInside = arith::CmpIOp::create(e.b, arith::CmpIPredicate::slt, column, e.high);
    Value last = arith::SubIOp::create(e.b, e.high, e.index(1));
    SmallVector<Value> totals = groupTotals(arith::SelectOp::create(e.b, isInside, column, last));
    for (auto [sum, total] : llvm::zip_equal(sums, totals)) {
      Type type = total.getType();
      Value buffer = groups > 1 ? shared.get(e, type, threads) : Value();
      if (buffer) {
        e.store(total, buffer, thread);
        barrier(e);
      }
      Value isFirst = equal(e, group, e.index(0));
      onlyIf(e, arith::AndIOp::create(e.b, isFirst, isInside), [&, sum = sum, total = total]() mutable {
        Value made = total;
        for (int64_t other = 1; other < groups; ++other)
          made = combine(e, sum, made, e.load(buffer, e.add(lane, e.index(other * kWarp)), type));
        e.store(made, e.outputOf(sum.getResult(0)), column);
      });
      if (buffer)
        barrier(e);
    }
    return SmallVector<Value>();
  });
  return success();
}

void emitFlatOnThreads(KernelEmitter &e, int64_t threads) {
  Value block = arith::MulIOp::create(e.b, blockId(e), e.index(threads));
  Value step = arith::MulIOp::create(e.b, gridSize(e), e.index(threads));
  strided(e, e.add(e.low, e.add(block, threadId(e))), e.high, step, {}, [&](Value i, ValueRange) {
    e.forget();
    SmallVector<Value> values;
    for (auto [value, buffer] : e.outputs())
      values.push_back(e.element(value, i));
    for (auto [output, value] : llvm::zip_equal(e.outputs(), values))
      e.store(value, output.second, i);
    e.forget();
    return SmallVector<Value>();
  });
}

int64_t blockThreads(func::FuncOp function, graph::Iteration iteration, int64_t rowDims) {
  if (iteration != graph::Iteration::Rows)
    return kMostThreads;
  int64_t longest = 1;
  for (auto op : function.getBody().getOps<linalg::GenericOp>()) {
    int64_t count = 1;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    for (int64_t size : ArrayRef(ranges).drop_front(rowDims))
      count *= size;
    longest = std::max(longest, count);
  }
  return std::min(kMostThreads, static_cast<int64_t>(llvm::alignTo(longest, kWarp)));
}
} // namespace dsopt
