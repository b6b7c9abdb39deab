//===- VerifyCompleteness.cpp - everything of a step happens once ---------===//
//
// The micro-batches of a step are as many as the losses that are agreed on. Each
// phase of each block runs once on each of them, in the order that gradients need;
// each trained bucket is measured and updated once, where it is owned.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Options.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
class Completeness {
public:
  Completeness(ModuleOp module, ArrayRef<ProgramOp> programs, AccessAnalysis &analysis)
      : module(module), programs(programs), analysis(analysis) {}
  LogicalResult verify();

private:
  LogicalResult countMicroBatches();
  LogicalResult verifyRuns(ProgramOp program);
  LogicalResult verifyOnce(ProgramOp program);
  LogicalResult verifyOrder();
  LogicalResult verifyBuckets();
  LogicalResult verifyParts(ArrayRef<UpdateOp> updates);
  LogicalResult verifyUpdate(UpdateOp update, NormOp norm);
  LogicalResult verifyTransforms(dist::BucketOp bucket, ArrayRef<UpdateOp> parts,
                                 ArrayRef<UpdateOp> directions);
  /// Whether an update that lags uses the pending gradient, which that of this step then replaces.
  LogicalResult verifyPending(UpdateOp update, NormOp norm);
  /// Whether a copy behind an update takes the new values in `staged` to the bucket's parameters, or what
  /// else is kept of it; to where the last copy before the update brought it from, if it `reads` that.
  bool isTakenBack(UpdateOp update, RefAttr staged, Type type, bool parameters, bool reads);
  /// The last copy to `target` before `before`, null where there is none.
  CopyOp lastCopyTo(RefAttr target, Operation *before);
  bool evaluates() { return ProgramOp(programs.front()).getKind() == ProgramKind::Evaluation; }

  ModuleOp module;
  ArrayRef<ProgramOp> programs;
  AccessAnalysis &analysis;
  int64_t microBatches = 0;
  /// Of all programs, in their order, by schedule and what they copy to and from.
  using Copied = std::pair<Block *, Attribute>;
  llvm::DenseMap<Copied, SmallVector<CopyOp>> copiesTo, copiesFrom;
  /// A program's runs in order, by block, phase, part and segment.
  using Part = std::tuple<int64_t, int, int64_t, StringAttr>;
  llvm::MapVector<Part, SmallVector<RunOp>> parts;
  llvm::DenseMap<Operation *, int64_t> places; ///< of the program's runs in its order
};
} // namespace

/// An agreement's records or losses, each of its own.
static LogicalResult verifyDistinct(AgreeOp agree, ArrayAttr refs, StringRef what) {
  llvm::SmallDenseSet<Attribute> known;
  for (auto ref : refs.getAsRange<RefAttr>())
    if (!known.insert(ref).second)
      return agree.emitOpError("takes the ") << what << " in " << describe(ref) << " twice";
  return success();
}

/// Elements of all metrics that a module has.
static int64_t countMeasured(ModuleOp module) {
  int64_t elements = 0;
  if (auto metrics = module->getAttrOfType<ArrayAttr>(kMetricsAttr))
    for (auto metric : metrics.getAsRange<DictionaryAttr>())
      for (int64_t part : metric.getAs<DenseI64ArrayAttr>("parts").asArrayRef())
        elements += part;
  return elements;
}

LogicalResult Completeness::countMicroBatches() {
  AgreeOp taker;
  SmallVector<char> measured(countMeasured(module), 0);
  auto outputs = module->getAttrOfType<ArrayAttr>(kOutputsAttr);
  SmallVector<char> delivered(outputs ? outputs.size() : 0, 0);
  for (ProgramOp program : programs) {
    SmallVector<AgreeOp> agreements(getSchedule(program).getBody().front().getOps<AgreeOp>());
    if (agreements.size() != 1)
      return program.emitOpError("agrees ") << agreements.size() << " times in a step, expected once";
    AgreeOp agree = agreements.front();
    if (failed(verifyDistinct(agree, agree.getNorms(), "record")) ||
        failed(verifyDistinct(agree, agree.getLosses(), "loss")))
      return failure();
    for (auto [place, length] : llvm::zip_equal(agree.getPlaces(), agree.getLengths()))
      for (int64_t element = place; element < place + length; ++element)
        if (element >= (int64_t)measured.size() || measured[element]++)
          return agree.emitOpError("measures element ")
                 << element << " of the metrics, expected each of " << measured.size() << " once in a step ("
                 << kMetricsAttr << ")";
    for (int64_t number : agree.getNumbers()) {
      if (number < 0 || number >= (int64_t)delivered.size() || delivered[number]++)
        return agree.emitOpError("has output ") << number << ", expected each of " << delivered.size()
                                                << " once in a step (" << kOutputsAttr << ")";
      microBatches = agree.getOutputs()->size() / agree.getNumbers().size();
    }
    if (agree.getLosses().empty())
      continue;
    if (taker) {
      InFlightDiagnostic diag = agree.emitOpError("takes losses, but those of a step are of one position");
      diag.attachNote(taker.getLoc()) << "the other agreement is here";
      return diag;
    }
    taker = agree;
    microBatches = agree.getLosses().size();
  }
  if (llvm::is_contained(delivered, 0))
    return ProgramOp(programs.front()).emitOpError("and no other position has output ")
           << llvm::find(delivered, 0) - delivered.begin() << " (" << kOutputsAttr << ")";
  if (llvm::is_contained(measured, 0))
    return ProgramOp(programs.front()).emitOpError("and no other position measures element ")
           << llvm::find(measured, 0) - measured.begin() << " of the metrics (" << kMetricsAttr << ")";
  if (!taker && delivered.empty())
    return ProgramOp(programs.front())
        .emitOpError("and no other position agrees on losses, expected one for "
                     "each micro-batch of the position that computes them");
  return success();
}

LogicalResult Completeness::verifyRuns(ProgramOp program) {
  parts.clear();
  places.clear();
  for (RunOp run : getSchedule(program).getBody().front().getOps<RunOp>()) {
    PartAttr part = analysis.part(run);
    if (!part)
      return run.emitOpError("runs ")
             << run.getSegmentAttr() << ", which is of no block and phase (graph.block, graph.phase)";
    if (!program.hasBlock(part.getBlock())) {
      InFlightDiagnostic diag = run.emitOpError("runs block ")
                                << part.getBlock() << " at position " << program.getPosition()
                                << ", which has blocks ";
      llvm::interleaveComma(program.getChunks(), diag,
                            [&](auto chunk) { diag << chunk.first << " to " << chunk.second - 1; });
      return diag;
    }
    if ((part.getPhase() == Phase::E) != evaluates())
      return run.emitOpError("runs phase ")
             << stringifyPhase(part.getPhase()) << " of block " << part.getBlock() << " in a program that "
             << (evaluates() ? "evaluates" : "trains");
    if ((int64_t)run.getMicroBatch() < 0 || (int64_t)run.getMicroBatch() >= microBatches)
      return run.emitOpError("is on micro-batch ")
             << run.getMicroBatch() << ", but the step agrees on the losses of " << microBatches;
    places[run] = places.size();
    parts[{part.getBlock(), (int)part.getPhase(), part.getPart(), run.getSegmentAttr().getAttr()}].push_back(
        run);
  }
  return failure(failed(verifyOnce(program)) || failed(verifyOrder()));
}

/// Each part runs once on each micro-batch, and in a step that trains every block has a forward.
LogicalResult Completeness::verifyOnce(ProgramOp program) {
  llvm::SmallDenseSet<int64_t> forward;
  for (auto &[part, runs] : parts) {
    auto [block, phase, number, segment] = part;
    if (phase == (int)Phase::F)
      forward.insert(block);
    SmallVector<RunOp> done(microBatches);
    for (RunOp run : runs) {
      RunOp &other = done[run.getMicroBatch()];
      if (!other) {
        other = run;
        continue;
      }
      InFlightDiagnostic diag = run.emitOpError("repeats the ") << describe(other);
      diag.attachNote(other.getLoc()) << "the other is here";
      return diag;
    }
    for (auto [m, run] : llvm::enumerate(done)) {
      if (run)
        continue;
      InFlightDiagnostic diag = program.emitOpError("never runs block ")
                                << block << " " << stringifyPhase((Phase)phase) << " on micro-batch " << m;
      diag.attachNote(runs.front().getLoc())
          << "its run on micro-batch " << runs.front().getMicroBatch() << " is here";
      return diag;
    }
  }
  if (!evaluates())
    for (auto [first, last] : program.getChunks())
      for (int64_t block = first; block < last; ++block)
        if (!forward.contains(block))
          return program.emitOpError("never runs block ") << block << " F";
  return success();
}

/// Backward comes after what it needs; gradients are added in order of micro-batches.
LogicalResult Completeness::verifyOrder() {
  // The last run of each block and phase by micro-batch: several segments may share one.
  llvm::DenseMap<std::pair<int64_t, int>, SmallVector<RunOp>> last;
  for (auto &[part, runs] : parts) {
    auto &list = last[{std::get<0>(part), std::get<1>(part)}];
    list.resize(microBatches);
    for (RunOp run : runs)
      if (RunOp &other = list[run.getMicroBatch()]; !other || places.lookup(other) < places.lookup(run))
        other = run;
  }
  for (auto &[part, runs] : parts) {
    auto [block, phase, number, segment] = part;
    for (int before = 0; before < phase; ++before) {
      auto it = last.find({block, before});
      if (it == last.end())
        continue;
      for (RunOp run : runs) {
        RunOp other = it->second[run.getMicroBatch()];
        if (places.lookup(other) < places.lookup(run))
          continue;
        InFlightDiagnostic diag = run.emitOpError("comes before the ")
                                  << describe(other) << ", expected F, B and W in this order";
        diag.attachNote(other.getLoc()) << "the other is here";
        return diag;
      }
    }
    if (analysis.gradients(runs.front()).empty())
      continue;
    for (auto [before, run] : llvm::zip(runs, ArrayRef(runs).drop_front())) {
      RunOp after = run;
      if (before.getMicroBatch() < after.getMicroBatch())
        continue;
      InFlightDiagnostic diag = after.emitOpError("adds gradients of micro-batch ")
                                << after.getMicroBatch() << " after those of micro-batch "
                                << before.getMicroBatch() << ", expected them ascending";
      diag.attachNote(before.getLoc()) << "the earlier run is here";
      return diag;
    }
  }
  return success();
}

/// The parts of an update follow each other from the first element to the last.
LogicalResult Completeness::verifyParts(ArrayRef<UpdateOp> updates) {
  UpdateOp first = updates.front();
  dist::BucketOp bucket = analysis.bucket(first.getBucketAttr().getAttr());
  int64_t all = first.getSliced() ? bucket.getSlice() : (int64_t)bucket.getPadded(), next = 0;
  for (UpdateOp update : updates) {
    if ((int64_t)update.getFrom() != next || update.getSliced() != first.getSliced())
      return update.emitOpError("updates elements of @")
             << bucket.getSymName() << " from " << (int64_t)update.getFrom() << ", expected " << next
             << ", where the part before it ends";
    next += update.getElements();
  }
  if (next == all)
    return success();
  return UpdateOp(updates.back()).emitOpError("updates ")
         << next << " elements, expected " << all << ", " << (first.getSliced() ? "a slice" : "the whole")
         << " of @" << bucket.getSymName();
}

static bool comesBefore(Operation *a, Operation *b) {
  return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b);
}

CopyOp Completeness::lastCopyTo(RefAttr target, Operation *before) {
  auto known = copiesTo.find({before->getBlock(), target});
  if (known == copiesTo.end())
    return {};
  ArrayRef<CopyOp> copies = known->second;
  const CopyOp *behind =
      llvm::partition_point(copies, [&](CopyOp copy) { return copy->isBeforeInBlock(before); });
  return behind == copies.begin() ? CopyOp() : *std::prev(behind);
}

bool Completeness::isTakenBack(UpdateOp update, RefAttr staged, Type type, bool parameters, bool reads) {
  auto program = update->getParentOfType<ProgramOp>();
  int64_t bytes = bytesOf(update.getElements(), type), at = bytesOf(update.getFrom(), type);
  CopyOp before = lastCopyTo(staged, update);
  RefAttr home = before ? before.getSource() : RefAttr();
  auto known = copiesFrom.find({update->getBlock(), staged});
  if (known == copiesFrom.end())
    return false;
  ArrayRef<CopyOp> copies = known->second;
  const CopyOp *behind =
      llvm::partition_point(copies, [&](CopyOp copy) { return copy->isBeforeInBlock(update); });
  return std::any_of(behind, copies.end(), [&](CopyOp copy) {
    RefAttr to = copy.getTarget();
    BufferOp target = analysis.buffer(program, to.getBuffer().getAttr());
    return (int64_t)copy.getBytes() == bytes && target && target.getPersistent() &&
           target.getOf() == update.getBucket() && to.getOffset() == at &&
           (!parameters || target.getRole() == BufferRole::Stored) && (!reads || to == home);
  });
}

LogicalResult Completeness::verifyPending(UpdateOp update, NormOp norm) {
  auto gradient = cast<RefAttr>(update.getBuffers()[kUpdateGradient]), measured = norm.getGradient();
  auto program = update->getParentOfType<ProgramOp>();
  BufferOp pending = analysis.buffer(program, gradient.getBuffer().getAttr());
  // Of what lies on disk a copy brings the part.
  if (CopyOp copy = lastCopyTo(gradient, update); copy && pending && !pending.getPersistent()) {
    gradient = copy.getSource();
    pending = analysis.buffer(program, gradient.getBuffer().getAttr());
  }
  if (!pending || pending.getRole() != BufferRole::Pending || pending.getOf() != update.getBucket())
    return update.emitOpError("uses gradient ") << gradient.getBuffer() << ", expected the pending one of @"
                                                << update.getBucket() << " in a program that is delayed";
  Type type = getElementTypeOrSelf(pending.getType());
  int64_t at = bytesOf(update.getFrom(), type), part = bytesOf(update.getElements(), type);
  if (gradient.getOffset() != at || !gradient.isUniform())
    return update.emitOpError("uses ")
           << describe(gradient) << " of the pending gradient, expected byte " << at;
  auto source = [&](int64_t offset) {
    return RefAttr::get(measured.getContext(), measured.getBuffer(), measured.getSlot(),
                        measured.getOffset() + offset,
                        update.getSliced() ? measured.getSteps() : AxisSteps{});
  };
  RefAttr whole = RefAttr::get(measured.getContext(), gradient.getBuffer(), 0, 0, {});
  auto isBehind = [&](CopyOp copy) { return comesBefore(update, copy) && comesBefore(norm, copy); };
  auto replaces = [&](CopyOp copy) {
    return isBehind(copy) && copy.getSource() == source(0) &&
           (int64_t)copy.getBytes() == bytesOf(pending.getType());
  };
  auto replacesPart = [&](CopyOp copy) {
    CopyOp staged = isBehind(copy) ? lastCopyTo(copy.getSource(), copy) : CopyOp();
    return staged && (int64_t)copy.getBytes() == part && staged.getSource() == source(at) &&
           (int64_t)staged.getBytes() == part && comesBefore(norm, staged);
  };
  if (llvm::any_of(copiesTo.lookup({update->getBlock(), whole}), replaces) ||
      llvm::any_of(copiesTo.lookup({update->getBlock(), gradient}), replacesPart))
    return success();
  InFlightDiagnostic diag = update.emitOpError("uses the pending gradient of @")
                            << update.getBucket() << ", but no copy puts that of this step, "
                            << describe(source(0)) << ", in its place";
  diag.attachNote(norm.getLoc()) << "the norm is here";
  return diag;
}

LogicalResult Completeness::verifyUpdate(UpdateOp update, NormOp norm) {
  dist::BucketOp bucket = analysis.bucket(update.getBucketAttr().getAttr());
  auto program = update->getParentOfType<ProgramOp>();
  FailureOr<ArrayRef<Access>> accesses = analysis.of(update);
  if (failed(accesses))
    return failure();
  // Where copies bring what is updated, they take it back.
  for (auto [i, ref] : llvm::enumerate(update.getBuffers().getAsRange<RefAttr>())) {
    BufferOp updated = analysis.buffer(program, ref.getBuffer().getAttr());
    if (i == kUpdateGradient || !(*accesses)[i].writes || !updated || updated.getPersistent())
      continue;
    bool isParameter = i == kUpdatedParameter;
    bool reads = !isParameter || (*accesses)[i].reads;
    if (isTakenBack(update, ref, getElementTypeOrSelf(updated.getType()), isParameter, reads))
      continue;
    InFlightDiagnostic diag = update.emitOpError("updates ")
                              << describe(ref) << ", but no copy takes its " << (int64_t)update.getElements()
                              << " elements to the " << (isParameter ? "parameters" : "state") << " of @"
                              << bucket.getSymName()
                              << (reads ? ", from where one before brings what is updated" : "");
    diag.attachNote(updated.getLoc()) << "the buffer is here";
    return diag;
  }
  if (program.getKind() == ProgramKind::DelayedStep)
    return verifyPending(update, norm);
  auto gradient = cast<RefAttr>(update.getBuffers()[kUpdateGradient]), measured = norm.getGradient();
  // Each rank measures its slice, also of what all of them update whole.
  RefAttr part = RefAttr::get(measured.getContext(), measured.getBuffer(), measured.getSlot(),
                              measured.getOffset() + bytesOf(update.getFrom(), bucket.getGradientType()),
                              update.getSliced() ? measured.getSteps() : AxisSteps{});
  CopyOp copied = lastCopyTo(gradient, update);
  // What was made of it is verified with the bucket.
  if (update.getUnpadded() || gradient.getBuffer() == measured.getBuffer() ||
      (copied && copied.getSource() == part))
    return success();
  InFlightDiagnostic diag = update.emitOpError("uses gradient ")
                            << gradient.getBuffer() << ", but the norm is that of "
                            << norm.getGradient().getBuffer();
  diag.attachNote(norm.getLoc()) << "the norm is here";
  return diag;
}

/// Each matrix of the bucket is transformed once, at its place, from the direction to what the update takes:
/// of tensor shards all together, at the places of all ranks that have them.
LogicalResult Completeness::verifyTransforms(dist::BucketOp bucket, ArrayRef<UpdateOp> parts,
                                             ArrayRef<UpdateOp> directions) {
  auto bytes = [&](int64_t elements) { return bytesOf(elements, bucket.getGradientType()); };
  dist::AxesAttr distinct = bucket.getDistinctAttr();
  int64_t holders = distinct ? dist::getGrid(bucket).count(distinct.getParts()) : 1;
  llvm::MapVector<StringAttr, SmallVector<dist::RangeAttr, 1>> matrices;
  for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
    auto parameter = module.lookupSymbol<graph::ParameterOp>(range.getParameter());
    matrices[parameter ? graph::seenWhole(parameter) : range.getParameter().getAttr()].push_back(range);
  }
  /// By their first elements, where they lie.
  llvm::DenseMap<int64_t, SmallVector<int64_t, 1>> places;
  for (const auto &[parameter, ranges] : matrices)
    for (int64_t holder = 0; holder < holders; ++holder)
      for (dist::RangeAttr range : ranges)
        places[ranges.front().getOffset()].push_back(holder * bytes(bucket.getPadded()) +
                                                     bytes(range.getOffset()));
  llvm::DenseMap<int64_t, TransformOp> found; ///< by their first elements
  for (auto transform :
       getSchedule(parts.front()->getParentOfType<ProgramOp>()).getBody().front().getOps<TransformOp>()) {
    if (transform.getBucketAttr().getAttr() != bucket.getSymNameAttr())
      continue;
    SmallVector<RefAttr> refs(transform.getBuffers().getAsRange<RefAttr>());
    auto at = places.find(transform.getFrom());
    auto areAt = [&](ArrayRef<RefAttr> some) {
      return llvm::equal(llvm::map_range(some, [](RefAttr ref) { return (int64_t)ref.getOffset(); }),
                         at->second);
    };
    size_t number = at == places.end() ? 0 : at->second.size();
    if (number == 0 || refs.size() < 2 * number || !areAt(ArrayRef(refs).take_front(number)) ||
        !areAt(ArrayRef(refs).take_back(number)) ||
        transform.getSliced() != UpdateOp(parts.front()).getSliced() ||
        !found.try_emplace(transform.getFrom(), transform).second ||
        !llvm::all_of(directions, [&](UpdateOp part) { return comesBefore(part, transform); }) ||
        !llvm::all_of(parts, [&](UpdateOp part) { return comesBefore(transform, part); }))
      return transform.emitOpError("of @")
             << bucket.getSymName() << " from " << describe(refs.front()) << " to " << describe(refs.back())
             << ", expected one for each place, between direction "
             << "and update, sliced as they are";
  }
  for (const auto &[parameter, ranges] : matrices) {
    int64_t from = ranges.front().getOffset(), end = ranges.back().getOffset() + ranges.back().getElements();
    if (TransformOp transform = found.lookup(from);
        !transform || (int64_t)transform.getElements() != end - from)
      return UpdateOp(parts.front()).emitOpError("takes what is made of @")
             << parameter.getValue() << " whole, but nothing "
             << "makes it";
  }
  return success();
}

LogicalResult Completeness::verifyBuckets() {
  llvm::DenseMap<StringAttr, SmallVector<NormOp, 1>> norms;
  llvm::DenseMap<StringAttr, SmallVector<UpdateOp, 1>> updates, directions;
  for (ProgramOp program : programs)
    for (Operation &op : getSchedule(program).getBody().front()) {
      if (auto norm = dyn_cast<NormOp>(op))
        norms[norm.getBucketAttr().getAttr()].push_back(norm);
      else if (auto update = dyn_cast<UpdateOp>(op))
        (update.getDirection() ? directions : updates)[update.getBucketAttr().getAttr()].push_back(update);
      else if (auto copy = dyn_cast<CopyOp>(op)) {
        copiesTo[{op.getBlock(), copy.getTarget()}].push_back(copy);
        copiesFrom[{op.getBlock(), copy.getSource()}].push_back(copy);
      }
    }
  for (auto bucket : module.getOps<dist::BucketOp>()) {
    bool trained = !bucket.getFrozen() && !evaluates();
    ProgramOp owner;
    for (ProgramOp program : programs)
      if (!bucket.getBlocks().empty() && program.hasBlock(bucket.getBlocks().front()))
        owner = program;
    if (trained && !owner)
      return bucket.emitOpError("is trained, but no position has its first block");
    auto check = [&](StringRef what, auto found) -> LogicalResult {
      if (!trained && found.empty())
        return success();
      if (!trained)
        return found.front().emitOpError("is of @")
               << bucket.getSymName() << ", which "
               << (evaluates() ? "a program that evaluates leaves as it is" : "is frozen");
      for (Operation *op : found)
        if (op->getParentOfType<ProgramOp>() != owner) {
          InFlightDiagnostic diag = op->emitOpError("is at position ")
                                    << op->getParentOfType<ProgramOp>().getPosition() << ", but @"
                                    << bucket.getSymName() << " is owned by position " << owner.getPosition()
                                    << ", which has its first block";
          diag.attachNote(bucket.getLoc()) << "the bucket is here";
          return diag;
        }
      if (found.size() == 1)
        return success();
      InFlightDiagnostic diag = owner.emitOpError("has ")
                                << found.size() << " " << what << "s of trained bucket @"
                                << bucket.getSymName() << ", expected one";
      diag.attachNote(bucket.getLoc()) << "the bucket is here";
      return diag;
    };
    auto norm = norms.lookup(bucket.getSymNameAttr());
    if (failed(check("norm", norm)))
      return failure();
    auto verifyAll = [&](StringRef what, ArrayRef<UpdateOp> parts) {
      auto wholes =
          llvm::to_vector(llvm::make_filter_range(parts, [](UpdateOp part) { return !part.getFrom(); }));
      return success(succeeded(check(what, wholes)) &&
                     (!trained || (succeeded(verifyParts(parts)) && llvm::all_of(parts, [&](UpdateOp part) {
                                     return succeeded(verifyUpdate(part, norm.front()));
                                   }))));
    };
    auto parts = updates.lookup(bucket.getSymNameAttr());
    if (failed(verifyAll("update", parts)))
      return failure();
    if (trained && parts.front().getRecord() && options::freeze_step(module).value_or(0) > 0 &&
        !parts.front().getCoefficients())
      return parts.front().emitOpError("goes by norms and names no coefficients, expected those of @")
             << bucket.getSymName() << ", which it changes: the rule freezes";
    // Norms that an update sees are of directions before it.
    auto before = directions.lookup(bucket.getSymNameAttr());
    bool expected = trained && (parts.front().getRecord() || parts.front().getUnpadded());
    if ((expected || !before.empty()) && failed(verifyAll("direction", before)))
      return failure();
    if (trained && parts.front().getUnpadded() && failed(verifyTransforms(bucket, parts, before)))
      return failure();
  }
  return success();
}

LogicalResult Completeness::verify() {
  if (programs.empty() || failed(countMicroBatches()))
    return failure(!programs.empty());
  for (ProgramOp program : programs)
    if (failed(verifyRuns(program)))
      return failure();
  return verifyBuckets();
}

LogicalResult dsopt::verifyCompleteness(ModuleOp module, ArrayRef<ProgramOp> programs,
                                        AccessAnalysis &analysis) {
  return Completeness(module, programs, analysis).verify();
}
