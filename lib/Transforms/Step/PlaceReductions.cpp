//===- PlaceReductions.cpp - gradients along the canonical tree -----------===//
//
// DESIGN 2.1 rule 4. A rank's shards are leaves of a binary tree; their sums lie
// on a stack of whole gradients, and two of the same level are added at once, as
// a binary counter carries. What is left at the end is added from the top, which
// carries odd ones up. Then the ranks' parts are added by one reduction.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/Bucket.h"
#include "dsopt/Transforms/Step/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace dsopt {
#define GEN_PASS_DEF_PLACEREDUCTIONS
#include "dsopt/Transforms/Step/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// How many micro-batches there are and how their gradients are added (DESIGN 2.1 rule 4).
struct ReductionShape {
  int64_t ranks = 1;        ///< dp
  int64_t microBatches = 1; ///< M, a rank
  int64_t shards = 1;       ///< V
  bool local = true;        ///< else sharded
  int64_t shardsPerRank() const { return shards / ranks; }
  int64_t perShard() const { return microBatches / shardsPerRank(); }
  /// The shard, within the rank, and the index in it of position `p` of the run order.
  int64_t shardOf(int64_t p) const { return local ? p / perShard() : p % shardsPerRank(); }
  int64_t indexOf(int64_t p) const { return local ? p % perShard() : p / shardsPerRank(); }
};
} // namespace

/// Shards of a sequence are leaves below those of the batch, and lie on several ranks: a rank's sums are no
/// subtree where it has several of the batch's, and none of micro-batches where it has several of a sequence.
static LogicalResult checkSequence(ModuleOp module, const ReductionShape &shape, int64_t sp) {
  if (shape.shards != shape.ranks)
    return module.emitError("reduction-shards is ")
           << shape.shards << " with dp " << shape.ranks << " and sp " << sp
           << ": expected V = dp where sp is above 1";
  if (shape.ranks > 1 && !llvm::isPowerOf2_64(sp))
    return module.emitError("sp is ")
           << sp << " with dp " << shape.ranks << ": expected a power of two where dp is above 1";
  if (int64_t shards = options::sequence_shards(module).value_or(sp);
      shape.local && shards > sp && shape.perShard() > 1)
    return module.emitError("accumulate is local with ")
           << shape.perShard() << " micro-batches and " << shards / sp
           << " sequence shards a rank, whose sums it would have to keep apart: expected sharded";
  return success();
}

/// That of the module's options; emits an error and fails where they do not fit each other.
static FailureOr<ReductionShape> readReductionShape(ModuleOp module) {
  ReductionShape shape;
  shape.ranks = dist::getGrid(module).dataParallel();
  shape.microBatches = options::micro_batches(module).value_or(1);
  shape.shards = options::reduction_shards(module).value_or(shape.ranks);
  StringRef byStage = options::zero(module) < 2 ? "local" : "sharded";
  shape.local = options::accumulate(module).value_or(byStage) == "local";
  int64_t K = shape.ranks * shape.microBatches;
  if (shape.shards < 1 || K % shape.shards)
    return module.emitError("reduction-shards is ")
               << shape.shards << ", expected a divisor of the step's " << K << " micro-batches",
           failure();
  if (int64_t sp = dist::getGrid(module).size(Axis::sp); sp > 1 && failed(checkSequence(module, shape, sp)))
    return failure();
  if (shape.shards % shape.ranks || (shape.ranks > 1 && !llvm::isPowerOf2_64(shape.shardsPerRank())))
    return module.emitError("reduction-shards is ")
               << shape.shards << ", expected " << shape.ranks << " (dp) times a power of two",
           failure();
  return shape;
}

namespace {
/// The gradients of one program.
class ReductionPlacer {
public:
  ReductionPlacer(ProgramOp program, const ReductionShape &shape,
                  const llvm::DenseMap<Attribute, Bucket *> &holders, const SymbolTable &symbols)
      : shape(shape), holders(holders), symbols(symbols), out(program), buffers(out),
        schedule(getSchedule(program)) {}
  LogicalResult place();

private:
  /// The accumulator of a use of a bucket, and how far its tree is.
  struct Gradient {
    Bucket *bucket = nullptr;
    int64_t use = 0;
    SmallVector<int64_t> levels; ///< of the partial sums on the stack
    int64_t open = -1;           ///< the micro-batch that runs add to and nothing has reduced yet
  };
  /// Arguments of a segment that are gradients.
  using Arguments = SmallVector<std::pair<unsigned, Gradient *>>;
  FailureOr<Arguments *> argumentsOf(RunOp run);
  /// The whole gradient at `depth` of the tree's stack, for index `index`.
  FlatSymbolRefAttr wholeGradient(const Gradient &gradient, int64_t depth, int64_t index);
  LogicalResult redirect(RunOp run, const Arguments &arguments);
  /// Continues the tree when the rank's part of the gradient of `p` is complete. `reduce` is its own
  /// reduction where there are several ranks: it becomes the shards', or goes.
  void finish(Gradient &gradient, int64_t p, ReduceOp reduce);

  const ReductionShape &shape;
  const llvm::DenseMap<Attribute, Bucket *> &holders; ///< by gradient state
  const SymbolTable &symbols;
  ProgramBuilder out;
  BucketBuffers buffers;
  ScheduleOp schedule;
  llvm::DenseMap<Attribute, std::unique_ptr<Arguments>> segments;
  std::map<std::pair<Bucket *, int64_t>, Gradient> gradients; ///< found, never gone through
};
} // namespace

FailureOr<ReductionPlacer::Arguments *> ReductionPlacer::argumentsOf(RunOp run) {
  std::unique_ptr<Arguments> &arguments = segments[run.getSegmentAttr()];
  if (arguments)
    return arguments.get();
  arguments = std::make_unique<Arguments>();
  auto segment = symbols.lookup<func::FuncOp>(run.getSegment());
  if (!segment)
    return run.emitOpError("runs ") << run.getSegmentAttr() << ", which is no segment of this module",
           failure();
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    auto state = segment.getArgAttrOfType<FlatSymbolRefAttr>(i, kGradientAttr);
    if (!state)
      continue;
    Bucket *bucket = holders.lookup(state.getAttr());
    PartAttr part = getPart(segment);
    std::optional<int64_t> use = bucket && part ? bucket->useOf(part.getBlock()) : std::nullopt;
    if (!use)
      return run.emitOpError("adds to ") << state << ", the gradient of what no bucket of its block holds",
             failure();
    Gradient &gradient = gradients[{bucket, *use}];
    gradient.bucket = bucket;
    gradient.use = *use;
    arguments->push_back({i, &gradient});
  }
  return arguments.get();
}

FlatSymbolRefAttr ReductionPlacer::wholeGradient(const Gradient &gradient, int64_t depth, int64_t index) {
  // The bottom of the stack is the state itself where that is whole and not yet
  // in use for an earlier index.
  if (depth == 0 && gradient.bucket->wholeGradients() && (shape.local || index == 0))
    return buffers.gradient(*gradient.bucket, gradient.use);
  return buffers.passingGradient(*gradient.bucket, gradient.use, depth);
}

LogicalResult ReductionPlacer::redirect(RunOp run, const Arguments &arguments) {
  int64_t p = run.getMicroBatch();
  SmallVector<Attribute> refs(run.getBuffers().begin(), run.getBuffers().end());
  for (auto [i, gradient] : arguments) {
    if (gradient->open >= 0 && gradient->open != p)
      return run.emitOpError("adds to the gradient of bucket @")
             << gradient->bucket->name() << " on micro-batch " << p << " before that of micro-batch "
             << gradient->open << " is reduced";
    gradient->open = p;
    auto ref = cast<RefAttr>(refs[i]);
    refs[i] =
        out.ref(wholeGradient(*gradient, gradient->levels.size(), shape.indexOf(p)), 0, ref.getOffset());
  }
  // Runs on the same buffers were given one list, and are given one list again.
  if (!llvm::equal(refs, run.getBuffers()))
    run.setBuffersAttr(ArrayAttr::get(out.context, refs));
  run.setAccumulate(shape.local && shape.indexOf(p) > 0);
  return success();
}

void ReductionPlacer::finish(Gradient &gradient, int64_t p, ReduceOp reduce) {
  gradient.open = -1;
  Bucket &bucket = *gradient.bucket;
  int64_t index = shape.indexOf(p), shard = shape.shardOf(p);
  auto leave = [&] {
    if (reduce)
      reduce.erase();
  };
  if (shape.local && index + 1 < shape.perShard())
    return leave();
  // Adds the top of the stack to what lies under it.
  SmallVector<int64_t> &levels = gradient.levels;
  auto carry = [&] {
    levels.pop_back();
    int64_t depth = levels.size();
    out.emit<AddOp>(out.ref(wholeGradient(gradient, depth - 1, index)),
                    out.ref(wholeGradient(gradient, depth, index)), bucket.padded, bucket.gradientType(),
                    kComputeStream);
    ++levels.back();
  };
  levels.push_back(0);
  while (levels.size() > 1 && levels[levels.size() - 2] == levels.back())
    carry();
  if (shard + 1 < shape.shardsPerRank())
    return leave();
  while (levels.size() > 1)
    carry();
  levels.clear();
  bool adds = !shape.local && index > 0;
  FlatSymbolRefAttr sum = wholeGradient(gradient, 0, index);
  if (reduce) {
    reduce.setWholeAttr(out.ref(sum));
    reduce.setAccumulate(adds);
  } else if (adds) {
    out.emit<AddOp>(out.ref(buffers.gradient(bucket, gradient.use)), out.ref(sum), bucket.padded,
                    bucket.gradientType(), kComputeStream);
  }
}

LogicalResult ReductionPlacer::place() {
  // With one rank nothing says when a micro-batch's gradient is complete: behind the last run that adds to
  // it.
  llvm::DenseMap<std::pair<Gradient *, int64_t>, Operation *> last; ///< by micro-batch
  // Those of several ranks have a reduction for each micro-batch, which says so by its source.
  llvm::DenseMap<Attribute, Gradient *> passing;
  for (auto run : schedule.getBody().front().getOps<RunOp>()) {
    FailureOr<Arguments *> arguments = argumentsOf(run);
    if (failed(arguments))
      return failure();
    for (auto [i, gradient] : **arguments)
      if (gradient->bucket->ranks > 1)
        passing[cast<RefAttr>(run.getBuffers()[i]).getBuffer()] = gradient;
      else
        last[{gradient, (int64_t)run.getMicroBatch()}] = run;
  }
  for (Operation &op : llvm::make_early_inc_range(schedule.getBody().front())) {
    if (auto run = dyn_cast<RunOp>(op)) {
      Arguments &arguments = **argumentsOf(run);
      if (arguments.empty())
        continue;
      if (failed(redirect(run, arguments)))
        return failure();
      out.insertAfter(run);
      for (auto [i, gradient] : arguments)
        if (gradient->open >= 0 && last.lookup({gradient, (int64_t)run.getMicroBatch()}) == run)
          finish(*gradient, run.getMicroBatch(), {});
    } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
      Gradient *gradient = passing.lookup(reduce.getWhole().getBuffer());
      if (!gradient || gradient->open < 0)
        return reduce.emitOpError("of ")
               << reduce.getWhole().getBuffer() << ", to which no run before it adds";
      out.insertBefore(reduce);
      finish(*gradient, gradient->open, reduce);
    }
  }
  renumberCollectives(schedule);
  // Runs may all have been given the accumulators themselves.
  llvm::DenseSet<Attribute> used;
  for (Operation &op : schedule.getBody().front()) {
    if (auto run = dyn_cast<RunOp>(op))
      for (auto ref : run.getBuffers().getAsRange<RefAttr>())
        used.insert(ref.getBuffer());
  }
  for (auto buffer : llvm::make_early_inc_range(out.program.getBody().front().getOps<BufferOp>()))
    if (auto symbol = FlatSymbolRefAttr::get(buffer); passing.contains(symbol) && !used.contains(symbol))
      buffer.erase();
  return success();
}

LogicalResult dsopt::placeReductions(ModuleOp module) {
  FailureOr<ReductionShape> shape = readReductionShape(module);
  if (failed(shape))
    return failure();
  SymbolTable symbols(module);
  std::vector<std::unique_ptr<Bucket>> buckets;
  llvm::DenseMap<Attribute, Bucket *> holders; ///< by parameter
  for (auto op : module.getOps<dist::BucketOp>()) {
    buckets.push_back(std::make_unique<Bucket>(op));
    for (auto range : op.getRanges().getAsRange<dist::RangeAttr>())
      holders[range.getParameter()] = buckets.back().get();
  }
  llvm::DenseMap<Attribute, Bucket *> states;
  for (auto state : module.getOps<graph::StateOp>())
    if (Bucket *bucket = holders.lookup(state.getParameterAttr()))
      states[state.getSymNameAttr()] = bucket;
  for (ProgramOp program : llvm::to_vector(module.getOps<ProgramOp>()))
    if (getSchedule(program) && failed(ReductionPlacer(program, *shape, states, symbols).place()))
      return failure();
  keepOptions(module);
  return success();
}

namespace {
struct PlaceReductions : dsopt::impl::PlaceReductionsBase<PlaceReductions> {
  void runOnOperation() override {
    if (failed(placeReductions(getOperation())))
      signalPassFailure();
  }
};
} // namespace
