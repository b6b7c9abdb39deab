//===- StageWriter.cpp - a micro-batch's function as one stage's schedule -===//

#include "StageWriter.h"
#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Transforms/Order/Communicators.h"

#include <numeric>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Transfers between ranks that cannot read each other's memory go through
/// pieces of this many bytes; larger ones between devices, where each costs a
/// start of several kernels.
static constexpr int64_t kStagingBytes = 256 * 1024, kDeviceStagingBytes = 4 << 20;
/// Lists of buffers are kept for runs whose buffers come again after this many micro-batches.
static constexpr int64_t kLongestPeriod = 64;

/// As exec.program has them.
static SmallVector<int64_t> boundsOf(ArrayRef<Chunk> chunks) {
  SmallVector<int64_t> bounds;
  for (const Chunk &chunk : chunks)
    bounds.append({chunk.first, chunk.last});
  return bounds;
}

StageWriter::StageWriter(ModuleOp module, const MicroBatch &graph, int64_t ranks, int64_t microBatches,
                         int64_t stage)
    : graph(graph), ranks(ranks), microBatches(microBatches), stage(stage),
      stagingBytes(isForDevice(module) ? kDeviceStagingBytes : kStagingBytes),
      out(module, stage, boundsOf(graph.chunksAt(stage)), graph.evaluates, graph.variant), buckets(out),
      values(graph.values.size()), runs(graph.runs.size()), gathersOf(graph.runs.size()),
      usersOf(graph.gathers.size(), 0), gathers(graph.gathers.size()) {
  for (auto [id, gather] : llvm::enumerate(graph.gathers))
    for (int64_t run = gather.first; gather.stage == stage && run <= gather.last; ++run)
      if (graph.runs[run].stage == stage) {
        gathersOf[run].push_back(id);
        ++usersOf[id];
      }
  for (SmallVector<int64_t> &gathers : gathersOf)
    llvm::sort(gathers, [&](int64_t a, int64_t b) {
      return std::make_pair(graph.gathers[a].bucket, a) < std::make_pair(graph.gathers[b].bucket, b);
    });
}

void StageWriter::declareState() {
  Builder builder(out.context);
  if (!graph.evaluates)
    out.buffer("seed", MemRefType::get({}, builder.getF32Type()), BufferKind::Buffers,
               {1, true, -1, {}, BufferRole::Seed});
  int64_t largest = 0;
  for (const PlacedBucket &bucket : graph.buckets) {
    if (!bucket.isAt(stage))
      continue;
    largest = std::max(largest, bucket.sliceBytes());
    buckets.parameters(bucket, isOwned(bucket));
    // Evaluation stages through the same bytes.
    if (!dist::BucketOp(bucket.op).getFrozen())
      largest = std::max(largest, bucket.gradientSliceBytes());
    for (auto [use, accumulated] : llvm::enumerate(bucket.accumulated))
      if (accumulated && bucket.useStages[use] == stage)
        buckets.gradient(bucket, use);
  }
  if (ranks > 1)
    out.buffer("staging", MemRefType::get({std::min(largest, stagingBytes) * ranks}, builder.getI8Type()),
               BufferKind::Buffers, {1, true, -1, {}, BufferRole::Staging});
}

int64_t StageWriter::slotsOf(int64_t id) const {
  const ValueInfo &value = graph.values[id];
  return value.seed ? 1 : value.agreed ? microBatches : slots[id];
}

RefAttr StageWriter::valueRef(int64_t id, int64_t microBatch) {
  const ValueInfo &value = graph.values[id];
  if (value.statistic >= 0 && value.stage == stage)
    return out.ref(statistics().getBuffer(), 0, microBatch * graph.statisticBytes[stage] + value.statistic);
  if (values[id])
    return out.ref(values[id], microBatch % slotsOf(id));
  ProgramBuilder::BufferTraits traits;
  traits.slots = slotsOf(id);
  MemRefType type = value.type;
  if (value.seed) {
    traits.persistent = true;
    traits.role = BufferRole::Seed;
  } else if (value.padded && value.stage == stage) {
    // Where it is added.
    traits.payload = bytesOf(std::max(value.received, type.getNumElements()), type.getElementType());
    type = MemRefType::get({value.padded}, type.getElementType());
  }
  values[id] =
      out.buffer(value.name, type, value.seed ? BufferKind::Buffers : BufferKind::Activations, traits);
  return out.ref(values[id], microBatch % slotsOf(id));
}

void StageWriter::writeTransfer(const Step &step) {
  const ValueInfo &value = graph.values[step.id];
  auto microBatch = IntegerAttr::get(IntegerType::get(out.context, 64), step.microBatch);
  int64_t bytes = bytesOf(value.type);
  RefAttr ref = valueRef(step.id, step.microBatch);
  if (step.kind == Step::Send)
    out.emit<SendOp>(ref, bytes, step.peer, value.name, microBatch, Traffic::SendRecv, kPipeline,
                     kSendStream);
  else
    out.emit<RecvOp>(ref, bytes, step.peer, value.name, microBatch, Traffic::SendRecv, kPipeline,
                     kRecvStream);
}

void StageWriter::writeGathers(const Step &step) {
  for (int64_t id : gathersOf[step.id]) {
    auto [gather, isNew] = open.try_emplace({id, step.microBatch});
    if (!isNew)
      continue;
    const PlacedBucket &bucket = graph.buckets[graph.gathers[id].bucket];
    GatherOp op = gathers[id];
    if (op) {
      op = out.repeat(op);
      op.setOrder(out.nextOrder());
    } else {
      op = gathers[id] = out.emit<GatherOp>(out.ref(buckets.parameters(bucket, isOwned(bucket))),
                                            out.ref(buckets.wholeParameters(bucket)), bucket.sliceBytes(),
                                            graph.gathers[id].wire, Traffic::AllGather, out.nextOrder(),
                                            bucket.group(), kCommStream);
    }
    gather->second = {op, usersOf[id]};
  }
}

void StageWriter::writeReleases(const Step &step) {
  for (int64_t id : gathersOf[step.id]) {
    auto gather = open.find({id, step.microBatch});
    if (--gather->second.users)
      continue;
    out.write<ReleaseOp>(gather->second.op.getEvent());
    open.erase(gather);
  }
}

StageWriter::RunBuffers &StageWriter::buffersOf(int64_t id) {
  const RunInfo &run = graph.runs[id];
  RunBuffers &buffers = runs[id];
  if (buffers.period)
    return buffers;
  buffers.period = 1;
  auto value = [&](int64_t id) {
    buffers.refs.push_back({});
    buffers.values.push_back(id);
    bool unique = graph.values[id].statistic >= 0;
    buffers.period = std::lcm(buffers.period, unique ? microBatches : slotsOf(id));
  };
  auto parameter = [&](const BucketArgument &argument) {
    const PlacedBucket &bucket = graph.buckets[argument.bucket];
    buffers.refs.push_back(out.ref(buckets.wholeParameters(bucket, isOwned(bucket)), 0, argument.offset));
  };
  for (const RunOperand &operand : run.operands)
    operand.value < 0 ? parameter(operand.parameter) : value(operand.value);
  for (int64_t result : run.results)
    value(result);
  for (const BucketArgument &argument : run.parameters)
    parameter(argument);
  for (const BucketArgument &argument : run.gradients) {
    const PlacedBucket &bucket = graph.buckets[argument.bucket];
    buffers.refs.push_back(out.ref(ranks > 1 ? buckets.passingGradient(bucket, argument.use, 0)
                                             : buckets.gradient(bucket, argument.use),
                                   0, argument.offset));
  }
  func::FuncOp segment = run.segment;
  for (StringAttr cache : run.caches)
    buffers.refs.push_back(out.ref(out.buffer(
        cache.getValue(), segment.getArgumentTypes()[buffers.refs.size()], BufferKind::Cache, {1, true})));
  for (StringAttr constant : run.constants)
    buffers.refs.push_back(
        out.ref(out.buffer(constant.getValue(), segment.getArgumentTypes()[buffers.refs.size()],
                           BufferKind::Constants, {1, true, -1, constant.getValue()})));
  if (run.temp)
    buffers.temp = out.ref(out.buffer("temp." + Twine(run.temp),
                                      MemRefType::get({run.temp}, IntegerType::get(out.context, 8)),
                                      BufferKind::Buffers));
  if (buffers.period <= kLongestPeriod)
    buffers.lists.resize(buffers.period);
  return buffers;
}

ArrayAttr StageWriter::buffersOf(const Step &step) {
  RunBuffers &buffers = buffersOf(step.id);
  ArrayAttr none;
  ArrayAttr &kept = buffers.lists.empty() ? none : buffers.lists[step.microBatch % buffers.period];
  if (kept)
    return kept;
  SmallVector<Attribute> refs = buffers.refs;
  const int64_t *value = buffers.values.begin();
  for (Attribute &ref : refs)
    if (!ref)
      ref = valueRef(*value++, step.microBatch);
  return kept = ArrayAttr::get(out.context, refs);
}

void StageWriter::writeReductions(const Step &step) {
  bool accumulate = step.microBatch > 0;
  SmallVector<ReduceOp, 1> &written = runs[step.id].reductions;
  if (!written.empty()) {
    for (ReduceOp first : written) {
      ReduceOp reduce = out.repeat(first);
      reduce.setAccumulate(accumulate);
      reduce.setOrder(out.nextOrder());
    }
    return;
  }
  for (auto [id, use, op] : graph.runs[step.id].completes) {
    const PlacedBucket &bucket = graph.buckets[id];
    if (bucket.ranks == 1)
      continue;
    dist::ReduceOp reduce = op;
    TypeAttr wire = reduce.getType() == bucket.gradientType() ? TypeAttr() : reduce.getTypeAttr();
    written.push_back(out.emit<ReduceOp>(
        out.ref(buckets.passingGradient(bucket, use, 0)), buckets.gradientSlice(bucket, use), bucket.slice,
        bucket.gradientType(), wire, reduce.getMethod(), reduce.getOrder() == dist::ReductionOrder::Fast,
        accumulate, out.nextOrder(), bucket.group(), kCommStream));
  }
}

void StageWriter::writeCollective(const Step &step) {
  const RunInfo &run = graph.runs[step.id];
  const ValueInfo &source = graph.values[run.inputs.front()], &value = graph.values[run.results.front()];
  auto type = MemRefType::get({source.elements()}, source.type.getElementType());
  dist::ValueCollectiveOpInterface collective = run.collective;
  collective.writeActions(out, valueRef(run.inputs.front(), step.microBatch),
                          valueRef(run.results.front(), step.microBatch), type, value.name);
}

void StageWriter::writeRun(const Step &step) {
  const RunInfo &run = graph.runs[step.id];
  if (run.collective) {
    writeGathers(step);
    writeCollective(step);
    writeReleases(step);
    return;
  }
  ArrayAttr buffers = buffersOf(step);
  writeGathers(step);
  bool accumulate = !run.gradients.empty() && ranks == 1 && step.microBatch > 0;
  if (RunOp &first = runs[step.id].first) {
    RunOp again = out.repeat(first);
    again.setBuffersAttr(buffers);
    again.setMicroBatch(step.microBatch);
    again.setAccumulate(accumulate);
  } else {
    first = out.emit<RunOp>(func::FuncOp(run.segment).getSymName(), buffers, runs[step.id].temp,
                            step.microBatch, accumulate, kComputeStream);
  }
  writeReleases(step);
  writeReductions(step);
}

RefAttr StageWriter::statistics() {
  auto type = MemRefType::get({microBatches * graph.statisticBytes[stage]}, IntegerType::get(out.context, 8));
  return out.ref(out.buffer("statistics", type, BufferKind::Activations));
}

void StageWriter::writeReturn() {
  int64_t bytes = graph.statisticBytes[stage];
  RefAttr all;
  if (bytes)
    all = statistics();
  auto module = out.program->getParentOfType<ModuleOp>();
  Grid grid = dist::getGrid(module);
  if (int64_t ranks = grid.dataParallel(); bytes && ranks > 1) {
    // Ranks along sp have the same.
    dist::AxesAttr axes = grid.size(Axis::sp) == 1
                              ? dist::getDataAxes(out.context)
                              : dist::AxesAttr::get(out.context, {AxisPart{Axis::edp}, AxisPart{Axis::ep}});
    auto type = MemRefType::get({ranks * microBatches * bytes}, IntegerType::get(out.context, 8));
    all = out.ref(out.buffer("statistics.all", type, BufferKind::Activations));
    out.emit<GatherOp>(statistics(), all, microBatches * bytes, TypeAttr(), Traffic::AllGather,
                       out.nextOrder(), declareCommunicator(module, axes), kCommStream);
  }
  SmallVector<Attribute> losses;
  for (int64_t m = 0; graph.loss >= 0 && graph.values[graph.loss].stage == stage && m < microBatches; ++m)
    losses.push_back(valueRef(graph.loss, m));
  SmallVector<Attribute> measures;
  SmallVector<int64_t> measured, lengths;
  for (const MeasureInfo &measure : graph.measures) {
    if (graph.values[measure.value].stage != stage)
      continue;
    measured.push_back(measure.place);
    lengths.push_back(measure.elements);
    for (int64_t m = 0; m < microBatches; ++m)
      measures.push_back(valueRef(measure.value, m));
  }
  SmallVector<Attribute> outputs;
  SmallVector<int64_t> numbers, sizes;
  for (auto [number, value] : llvm::enumerate(graph.outputs)) {
    if (graph.values[value].stage != stage)
      continue;
    numbers.push_back(number);
    sizes.push_back(bytesOf(graph.values[value].type));
    for (int64_t m = 0; m < microBatches; ++m)
      outputs.push_back(valueRef(value, m));
  }
  auto listed = [&](ArrayRef<Attribute> refs) {
    return refs.empty() ? ArrayAttr() : ArrayAttr::get(out.context, refs);
  };
  out.emit<AgreeOp>(ArrayAttr::get(out.context, {}), ArrayAttr::get(out.context, losses), listed(measures),
                    measured, lengths, listed(outputs), numbers, sizes, out.nextOrder(), kWorld, kCommStream);
  if (!bytes)
    return;
  SmallVector<Attribute> targets;
  SmallVector<int64_t> places, elements;
  SmallVector<double> momenta;
  for (const StatisticInfo &statistic : graph.statistics) {
    if (graph.values[statistic.value].stage != stage)
      continue;
    const PlacedBucket &bucket = graph.buckets[statistic.target.bucket];
    targets.push_back(out.ref(buckets.parameters(bucket, isOwned(bucket)), 0, statistic.target.offset));
    places.push_back(graph.values[statistic.value].statistic);
    elements.push_back(statistic.elements);
    momenta.push_back(statistic.momentum);
  }
  out.emit<FoldOp>(all, ArrayAttr::get(out.context, targets), places, elements,
                   Builder(out.context).getF64ArrayAttr(momenta), bytes, kComputeStream);
}

void StageWriter::write(ArrayRef<PipelineSlot> order, const ChunkEntries *entries) {
  SmallVector<Step> steps = listSteps(graph, stage, order, entries);
  slots = countSlots(graph, steps);
  declareState();
  for (const Step &step : steps) {
    switch (step.kind) {
    case Step::Input:
      out.emit<InputOp>(graph.values[step.id].input, valueRef(step.id, step.microBatch), step.microBatch,
                        kComputeStream, graph.values[step.id].context);
      break;
    case Step::Send:
    case Step::Recv:
      writeTransfer(step);
      break;
    case Step::Run:
      writeRun(step);
      break;
    }
  }
  writeReturn();
}
