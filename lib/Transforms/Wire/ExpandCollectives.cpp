//===- ExpandCollectives.cpp - collectives that stand for several actions -===//
//
// What a gather or reduction in another type or by another method is made of. Its
// result is there in front of the first action that needs it, not earlier: until then
// the runs of other blocks go on.
//
//===----------------------------------------------------------------------===//

#include "CompressedReduction.h"
#include "PowerSgd.h"
#include "QuantizedReduction.h"
#include "WireKernels.h"
#include "dsopt/Analysis/Exec/Accesses.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"
#include "dsopt/Transforms/Wire/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {
#define GEN_PASS_DEF_EXPANDCOLLECTIVES
#include "dsopt/Transforms/Wire/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Expands the collectives of one program.
class Expander {
public:
  Expander(ProgramOp program, WireKernels &kernels, CompressionKernels &compressionKernels,
           AccessAnalysis &analysis, const std::optional<Compression> &compression)
      : schedule(getSchedule(program)), kernels(kernels), compressionKernels(compressionKernels),
        compression(compression), analysis(analysis), out(program) {}
  LogicalResult expand();

private:
  /// A result in its own buffer (or a sum's parts, one of each rank) that `target` still has to get.
  struct Result {
    RefAttr source, target;
    int64_t parts, elements;
    Type wire, type;
    bool accumulate;
    int64_t slice = 0; ///< elements of those slices that it is quantized by; 0: of none
  };
  LogicalResult start(GatherOp gather);
  LogicalResult start(ReduceOp reduce);
  LogicalResult startQuantized(ReduceOp reduce);
  LogicalResult startCompressed(ReduceOp reduce);
  /// The bucket whose gradient it adds, and what of that lies between parameters, in elements. Fails with a
  /// message where there is none.
  FailureOr<dist::BucketOp> bucketOf(ReduceOp reduce, SmallVectorImpl<std::pair<int64_t, int64_t>> &gaps);
  void finish(const Result &result);
  /// Finishes what has to be written to a buffer.
  LogicalResult finish(StringAttr target);
  void map(SymbolRefAttr kernel, ArrayRef<Attribute> refs, int64_t elements, int64_t grain = 4096) {
    out.emit<MapOp>(kernel, ArrayAttr::get(out.context, refs), elements, grain, kComputeStream);
  }
  /// Writes what makes blocks of a slice from their multiples and scales, or these from it.
  void mapBlocks(RefAttr values, RefAttr wire, int64_t elements, Type type, bool quantizes);
  BufferOp buffer(RefAttr ref) { return analysis.buffer(out.program, ref.getBuffer().getAttr()); }
  RefAttr declare(RefAttr whole, StringRef suffix, int64_t elements, Type type, int64_t payload = -1,
                  BufferKind kind = BufferKind::Buffers) {
    ProgramBuilder::BufferTraits traits;
    traits.payload = payload;
    return out.ref(
        out.buffer(whole.getBuffer().getValue() + suffix, MemRefType::get({elements}, type), kind, traits));
  }

  ScheduleOp schedule;
  WireKernels &kernels;
  CompressionKernels &compressionKernels;
  const std::optional<Compression> &compression; ///< of gradients
  AccessAnalysis &analysis;
  ProgramBuilder out;
  llvm::MapVector<StringAttr, Result> results;                ///< by the buffer of their target
  llvm::MapVector<StringAttr, QuantizedReduction> reductions; ///< likewise
  llvm::MapVector<StringAttr, std::unique_ptr<CompressedReduction>> compressed; ///< likewise
  llvm::SetVector<BufferOp> replaced; ///< by others of the wire's type
};
} // namespace

/// Bytes without padding of as many elements in another type; -1 where the buffer says nothing.
static int64_t payloadAs(Type to, BufferOp buffer) {
  std::optional<int64_t> payload = buffer.getPayload();
  Type from = getElementTypeOrSelf(buffer.getType());
  return payload ? *payload / bytesOf(1, from) * bytesOf(1, to) : -1;
}

void Expander::mapBlocks(RefAttr values, RefAttr wire, int64_t elements, Type type, bool quantizes) {
  // Whole blocks, and a shorter one at the end.
  int64_t whole = elements / kWireBlock, rest = elements % kWireBlock;
  for (auto [first, blocks, row] : {std::tuple(int64_t(0), whole, kWireBlock), {whole, int64_t(1), rest}}) {
    if (!blocks || !row)
      continue;
    RefAttr part = shifted(values, bytesOf(first * kWireBlock, type)),
            multiples = shifted(wire, first * kWireBlock),
            scales = shifted(wire, elements + first * (int64_t)sizeof(float));
    if (quantizes)
      map(kernels.quantize(type, row), {part, multiples, scales}, blocks, /*grain=*/1);
    else
      map(kernels.dequantize(type, row), {multiples, scales, part}, blocks, /*grain=*/1);
  }
}

LogicalResult Expander::start(GatherOp gather) {
  if (failed(analysis.members.axes(gather)))
    return failure();
  RefAttr slice = gather.getSlice(), target = gather.getTarget();
  BufferOp from = buffer(slice), to = buffer(target);
  Type type = getElementTypeOrSelf(to.getType()), wire = *gather.getWire();
  bool quantized = wire.isInteger(8);
  if (quantized ? !isa<FloatType>(type) : !type.isF32())
    return gather.emitOpError("of ") << type << " travels as " << wire
                                     << (quantized ? ", expected floats as i8" : ", expected f32 as bf16");
  int64_t elements = gather.getBytes() / bytesOf(1, type), part = wireBytes(elements, wire);
  int64_t whole = bytesOf(to.getType()) / gather.getBytes(); // slices
  out.insertBefore(gather);
  // What a node keeps is kept as it travels.
  auto isKept = [](BufferOp buffer) { return buffer.getKind() == BufferKind::Secondary; };
  auto onWire = [&](RefAttr ref, BufferOp buffer, int64_t slices) {
    int64_t payload = payloadAs(wire, buffer);
    if (payload >= 0 && quantized)
      payload += slices * (usedWireBytes(elements, wire) - elements);
    RefAttr made = declare(ref, ".wire", quantized ? slices * part : slices * elements, wire, payload,
                           isKept(buffer) ? BufferKind::Secondary : BufferKind::Buffers);
    return shifted(made, ref.getOffset() / gather.getBytes() * part);
  };
  if (isKept(from)) {
    gather.setSliceAttr(onWire(slice, from, bytesOf(from.getType()) / gather.getBytes()));
  } else {
    gather.setSliceAttr(declare(slice, ".wire", quantized ? part : elements, wire));
    if (quantized) {
      mapBlocks(slice, gather.getSlice(), elements, type, /*quantizes=*/true);
      if (int64_t used = usedWireBytes(elements, wire); used < part)
        map(kernels.clear(/*inPlace=*/false), {slice, shifted(gather.getSlice(), used)},
            (part - used) / (int64_t)sizeof(int32_t));
    } else {
      map(kernels.convert("narrow", type, wire), {slice, gather.getSlice()}, elements);
    }
  }
  gather.setTargetAttr(onWire(target, to, whole));
  gather.setLogical(gather.getBytes());
  gather.setBytes(part);
  gather.removeWireAttr();
  if (isKept(to))
    replaced.insert(to);
  else
    results[target.getBuffer().getAttr()] = {out.ref(gather.getTarget().getBuffer()),
                                             out.ref(target.getBuffer(), target.getSlot()),
                                             1,
                                             whole * elements,
                                             wire,
                                             type,
                                             false,
                                             quantized ? elements : 0};
  return success();
}

FailureOr<dist::BucketOp> Expander::bucketOf(ReduceOp reduce,
                                             SmallVectorImpl<std::pair<int64_t, int64_t>> &gaps) {
  BufferOp whole = buffer(reduce.getWhole());
  dist::BucketOp bucket = whole.getOf() ? analysis.bucket(whole.getOfAttr().getAttr()) : dist::BucketOp();
  if (!bucket) {
    auto error = reduce.emitOpError("of ") << reduce.getWhole().getBuffer() << " travels ";
    return reduce.getWire() ? error << "as " << *reduce.getWire() << ", expected the gradient of a bucket"
                            : error << "by a method, expected the gradient of a bucket";
  }
  int64_t end = 0;
  auto reach = [&](int64_t begin) {
    if (begin > end)
      gaps.push_back({end, begin});
  };
  for (auto range : bucket.getRanges().getAsRange<dist::RangeAttr>()) {
    reach(range.getOffset());
    end = range.getOffset() + range.getElements();
  }
  reach(bucket.getPadded());
  return bucket;
}

LogicalResult Expander::startCompressed(ReduceOp reduce) {
  SmallVector<std::pair<int64_t, int64_t>> gaps;
  FailureOr<dist::BucketOp> bucket = bucketOf(reduce, gaps);
  if (failed(bucket))
    return failure();
  if (Type type = reduce.getType(); !type.isF32())
    return reduce.emitOpError("of ") << type << " travels by a method, expected f32";
  std::unique_ptr<CompressedReduction> reduction;
  if (compression->method.factorRank)
    reduction = std::make_unique<FactoredReduction>(reduce, *bucket, *compression);
  else
    reduction = std::make_unique<CompressedReduction>(reduce, *bucket, *compression);
  StringAttr target = reduce.getTarget().getBuffer().getAttr();
  if (failed(reduction->start(out, kernels, compressionKernels, gaps)))
    return failure();
  compressed.insert({target, std::move(reduction)});
  return success();
}

LogicalResult Expander::startQuantized(ReduceOp reduce) {
  SmallVector<std::pair<int64_t, int64_t>> gaps;
  if (failed(bucketOf(reduce, gaps)))
    return failure();
  if (int64_t sp = analysis.members.grid().size(Axis::sp); sp > 1)
    return reduce.emitOpError("goes as int4 by nodes of data-parallel ranks, but there are ")
           << sp << " ranks along sp, too: expected one";
  // What was reduced before has come as far as its first exchange, and goes on.
  out.insertBefore(reduce);
  for (auto &[target, reduction] : reductions)
    reduction.proceed(out, kernels);
  int64_t ranks = analysis.members.grid().dataParallel();
  QuantizedReduction reduction(reduce, ranks,
                               options::node_size(out.program->getParentOfType<ModuleOp>()).value_or(ranks));
  StringAttr target = reduce.getTarget().getBuffer().getAttr();
  reduction.start(out, kernels, gaps);
  reductions.insert({target, reduction});
  return success();
}

LogicalResult Expander::start(ReduceOp reduce) {
  if (auto wire = reduce.getWire(); wire && wire->isInteger(4))
    return startQuantized(reduce);
  if (compression && reduce.getMethod() == ReductionMethod::AllToAll && analysis.members.grid().slices() > 1)
    return startCompressed(reduce);
  FailureOr<int64_t> count = analysis.members.count(reduce);
  if (failed(count))
    return failure();
  int64_t members = *count, slice = reduce.getElements();
  Type type = reduce.getType(), wire = reduce.getWire().value_or(type);
  bool apart = reduce.getMethod() == ReductionMethod::AllToAll && members > 1;
  RefAttr whole = reduce.getWhole(), sent = whole;
  Result sum{{}, reduce.getTarget(), 1, slice, wire, type, reduce.getAccumulate()};
  out.insertBefore(reduce);
  if (wire != type) {
    BufferOp buffer = analysis.buffer(out.program, whole.getBuffer().getAttr());
    sent = declare(whole, ".wire", slice * members, wire, payloadAs(wire, buffer));
    map(kernels.convert("narrow", type, wire), {whole, sent}, slice * members);
  }
  if (apart) {
    sum.parts = members;
    sum.source = declare(whole, ".parts", slice * members, wire);
    auto exchange = out.emit<AllToAllOp>(sent, sum.source, bytesOf(slice, wire), reduce.getOrder(),
                                         reduce.getCommunicator(), reduce.getStream());
    if (wire != type)
      exchange.setLogical(bytesOf(slice, type));
    reduce.getEvent().replaceAllUsesWith(exchange.getEvent());
    reduce.erase();
  } else {
    reduce.setMethod(ReductionMethod::ReduceScatter);
    reduce.removeWireAttr();
    // The engine can only store what it adds in its own order.
    bool behind = reduce.getFast() && reduce.getAccumulate();
    if (wire == type && !behind)
      return success();
    sum.source = declare(whole, ".sum", slice, wire);
    reduce.setWholeAttr(sent);
    reduce.setTargetAttr(sum.source);
    reduce.setType(wire);
    reduce.setAccumulate(false);
  }
  results[sum.target.getBuffer().getAttr()] = sum;
  return success();
}

void Expander::finish(const Result &sum) {
  if (sum.slice) {
    for (int64_t first = 0, at = 0; first < sum.elements;
         first += sum.slice, at += wireBytes(sum.slice, sum.wire))
      mapBlocks(shifted(sum.target, bytesOf(first, sum.type)), shifted(sum.source, at), sum.slice, sum.type,
                /*quantizes=*/false);
    return;
  }
  auto part = [&](int64_t index) {
    return out.ref(sum.source.getBuffer(), 0, index * bytesOf(sum.elements, sum.wire));
  };
  auto add = [&](RefAttr target, RefAttr source) {
    out.emit<AddOp>(target, source, sum.elements, sum.wire, kComputeStream);
  };
  // Neighbours level by level, an odd one carried up (DESIGN 2.1 rule 4); the last edge may be the target's.
  int64_t step = 1;
  for (; 2 * step < sum.parts; step *= 2)
    for (int64_t index = 0; index + step < sum.parts; index += 2 * step)
      add(part(index), part(index + step));
  if (sum.parts > 1 && !sum.accumulate)
    return map(kernels.sum(sum.wire, sum.type), {part(0), part(step), sum.target}, sum.elements);
  if (sum.parts > 1)
    add(part(0), part(step));
  if (!sum.accumulate)
    map(kernels.convert("widen", sum.wire, sum.type), {part(0), sum.target}, sum.elements);
  else if (sum.wire == sum.type)
    add(sum.target, part(0));
  else
    map(kernels.accumulate(sum.type, sum.wire), {sum.target, part(0)}, sum.elements);
}

LogicalResult Expander::finish(StringAttr target) {
  if (auto result = results.find(target); result != results.end()) {
    finish(result->second);
    results.erase(result);
  }
  if (auto reduction = reductions.find(target); reduction != reductions.end()) {
    reduction->second.finish(out, kernels);
    reductions.erase(reduction);
  }
  if (auto reduction = compressed.find(target); reduction != compressed.end()) {
    if (failed(reduction->second->finish(out, kernels, compressionKernels)))
      return failure();
    compressed.erase(reduction);
  }
  return success();
}

LogicalResult Expander::expand() {
  Block &body = schedule.getBody().front();
  if (llvm::none_of(body, [](Operation &op) { return isComposite(&op); }))
    return success();
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (!(results.empty() && reductions.empty() && compressed.empty()) && isAction(&op)) {
      FailureOr<ArrayRef<Access>> accesses = analysis.of(&op);
      if (failed(accesses))
        return failure();
      out.insertBefore(&op);
      // Several gathers may make parts of one buffer.
      auto gather = isComposite(&op) ? dyn_cast<GatherOp>(op) : GatherOp();
      for (const Access &access : *accesses)
        if ((!gather || gather.getTarget().getBuffer().getAttr() != access.buffer) &&
            failed(finish(access.buffer)))
          return failure();
    }
    if (!isComposite(&op))
      continue;
    auto gather = dyn_cast<GatherOp>(op);
    if (failed(gather ? start(gather) : start(cast<ReduceOp>(op))))
      return failure();
  }
  out.insertAfter(&body.back());
  for (auto &[target, result] : results)
    finish(result);
  for (auto &[target, reduction] : reductions)
    reduction.finish(out, kernels);
  for (auto &[target, reduction] : compressed)
    if (failed(reduction->finish(out, kernels, compressionKernels)))
      return failure();
  renumberCollectives(schedule);
  for (BufferOp buffer : replaced)
    buffer.erase();
  return success();
}

/// Whether reductions of some rank go by way of its node.
static bool reducesByNode(ModuleOp module, int64_t nodeSize) {
  if (nodeSize <= 1 || nodeSize >= dist::getGrid(module).dataParallel())
    return false;
  return module
      .walk([](ReduceOp reduce) {
        return reduce.getWire() && reduce.getWire()->isInteger(4) ? WalkResult::interrupt()
                                                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult dsopt::expandCollectives(ModuleOp module) {
  if (int64_t nodeSize = options::node_size(module).value_or(0); reducesByNode(module, nodeSize))
    declareNodes(module, nodeSize);
  std::optional<Compression> compression;
  if (StringRef method = options::compress_gradients(module); method != "none") {
    std::string problem;
    if (compression = getCompression(method, &problem); !compression)
      return module.emitError("option compress_gradients ") << problem;
  }
  WireKernels kernels(module);
  CompressionKernels compressionKernels(module);
  AccessAnalysis analysis(module);
  for (auto program : llvm::to_vector(module.getOps<ProgramOp>()))
    if (getSchedule(program) &&
        failed(Expander(program, kernels, compressionKernels, analysis, compression).expand()))
      return failure();
  return success();
}

namespace {
struct ExpandCollectives : dsopt::impl::ExpandCollectivesBase<ExpandCollectives> {
  void runOnOperation() override {
    if (failed(expandCollectives(getOperation())))
      signalPassFailure();
  }
};
} // namespace
