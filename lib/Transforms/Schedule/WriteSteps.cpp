//===- WriteSteps.cpp - inputs, runs, transfers and gathers ---------------===//

#include "PositionWriter.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Transfers between ranks that cannot read each other's memory go through
/// pieces of this many bytes.
static constexpr int64_t kStagingBytes = 256 * 1024;

FlatSymbolRefAttr PositionWriter::parameters(BucketInfo &bucket) {
  return bucketBuffer(bucket, "param", bucket.op.getType(), bucket.wholeParameters(),
                      bucket.owner == stage ? "parameters" : "tied", /*persistent=*/true);
}

FlatSymbolRefAttr PositionWriter::wholeParameters(BucketInfo &bucket) {
  if (bucket.wholeParameters())
    return parameters(bucket);
  return bucketBuffer(bucket, "full", bucket.op.getType(), /*whole=*/true, "buffers");
}

FlatSymbolRefAttr PositionWriter::optimizerState(BucketInfo &bucket, StringRef name) {
  // It is f32, whatever the parameters are stored as.
  return bucketBuffer(bucket, name, Float32Type::get(out.context), bucket.wholeStates(), "optimizer",
                      /*persistent=*/true);
}

void PositionWriter::declareState() {
  Builder builder(out.context);
  Type f32 = builder.getF32Type();
  if (!graph.evaluates) {
    out.buffer("seed", MemRefType::get({}, f32), "buffers", {1, true});
    out.buffer("scalars", MemRefType::get({16 * graph.scalarGroups}, f32), "buffers", {1, true});
  }
  int64_t largest = 0;
  for (BucketInfo &bucket : graph.buckets) {
    if (!isHere(bucket))
      continue;
    largest = std::max(largest, bucket.sliceBytes());
    parameters(bucket);
    // Evaluation stages through the same bytes.
    if (!bucket.op.getFrozen())
      largest = std::max(largest, bucket.gradientSliceBytes());
    if (bucket.frozen)
      continue;
    for (auto [use, accumulated] : llvm::enumerate(bucket.accumulated))
      if (accumulated && bucket.useStages[use] == stage)
        gradient(bucket, use);
    if (auto states = bucket.op.getStates(); states && bucket.owner == stage)
      for (auto name : states->getAsRange<StringAttr>())
        optimizerState(bucket, name.getValue());
  }
  if (batch.ranks > 1)
    out.buffer("staging",
               MemRefType::get({std::min(largest, kStagingBytes) * batch.ranks}, builder.getI8Type()),
               "buffers", {1, true});
}

RefAttr PositionWriter::valueRef(int64_t id, int64_t microBatch) {
  const ValueInfo &value = graph.values[id];
  if (value.seed)
    return out.ref(out.buffer("seed", value.type, "buffers", {1, true}));
  if (value.statistic >= 0 && value.stage == stage)
    return out.ref(statistics().getBuffer(), 0, microBatch * graph.statisticBytes[stage] + value.statistic);
  int64_t count = value.loss ? batch.microBatches : slots.lookup(id);
  auto buffer = out.buffer(value.name, value.type, "activations", {count, false});
  return out.ref(buffer, microBatch % count);
}

void PositionWriter::writeInput(const Step &step) {
  out.emit<InputOp>(graph.values[step.id].input, valueRef(step.id, step.microBatch), step.microBatch,
                    Stream::Compute, graph.values[step.id].context);
}

void PositionWriter::writeTransfer(const Step &step) {
  const ValueInfo &value = graph.values[step.id];
  std::string tag = value.name + ":" + std::to_string(step.microBatch);
  int64_t bytes = bytesOf(value.type);
  RefAttr ref = valueRef(step.id, step.microBatch);
  if (step.kind == Step::Send)
    out.emit<SendOp>(ref, bytes, step.peer, tag, "send_recv", Stream::Send);
  else
    out.emit<RecvOp>(ref, bytes, step.peer, tag, "send_recv", Stream::Recv);
}

void PositionWriter::writeGathers() {
  for (; nextWindow < windows.size() && windows[nextWindow].first <= runs; ++nextWindow) {
    BucketInfo &bucket = graph.buckets[windows[nextWindow].bucket];
    out.emit<GatherOp>(out.ref(parameters(bucket)), out.ref(wholeParameters(bucket)), bucket.sliceBytes(),
                       "all_gather", out.nextOrder(), Stream::Comm);
  }
}

LogicalResult PositionWriter::writeRun(const Step &step) {
  RunInfo &run = graph.runs[step.id];
  for (const BucketArgument &argument : run.gradients) {
    auto [open, isNew] = incomplete.try_emplace({argument.bucket, argument.use}, step.microBatch);
    if (!isNew && open->second != step.microBatch)
      return run.segment.emitError("segment @")
             << run.segment.getSymName() << " adds to the gradient of bucket @"
             << graph.buckets[argument.bucket].name() << " on micro-batch " << step.microBatch
             << " before that of micro-batch " << open->second << " is reduced";
  }
  SmallVector<Attribute> refs;
  auto wholeRef = [&](const BucketArgument &argument) {
    return out.ref(wholeParameters(graph.buckets[argument.bucket]), 0, argument.offset);
  };
  for (const RunOperand &operand : run.operands)
    refs.push_back(operand.value < 0 ? wholeRef(operand.parameter)
                                     : valueRef(operand.value, step.microBatch));
  for (int64_t value : run.results)
    refs.push_back(valueRef(value, step.microBatch));
  for (const BucketArgument &argument : run.parameters)
    refs.push_back(wholeRef(argument));
  for (const BucketArgument &argument : run.gradients)
    refs.push_back(out.ref(runGradient(graph.buckets[argument.bucket], argument.use, step.microBatch), 0,
                           argument.offset));
  for (StringAttr constant : run.constants)
    refs.push_back(out.ref(out.buffer(constant.getValue(), run.segment.getArgumentTypes()[refs.size()],
                                      "constants", {1, true, -1, constant.getValue()})));
  RefAttr temp;
  if (run.temp)
    temp = out.ref(out.buffer("temp." + Twine(run.temp),
                              MemRefType::get({run.temp}, IntegerType::get(out.context, 8)), "buffers"));
  bool accumulate = !run.gradients.empty() && batch.local && batch.indexOf(step.microBatch) > 0;
  writeGathers();
  out.emit<RunOp>(run.segment.getSymName(), ArrayAttr::get(out.context, refs), temp, step.microBatch,
                  accumulate, Stream::Compute);
  ++runs;
  return success();
}

LogicalResult PositionWriter::write(ArrayRef<PipelineSlot> order) {
  SmallVector<Step> steps = listSteps(graph, stage, order);
  slots = countSlots(graph, steps);
  windows = listWindows(graph, steps, batch.gatherWindow);
  declareState();
  // The last step that touches each bucket.
  llvm::DenseMap<int64_t, int64_t> lastTouch;
  for (auto [i, step] : llvm::enumerate(steps)) {
    if (step.kind != Step::Run)
      continue;
    const RunInfo &run = graph.runs[step.id];
    for (const RunOperand &operand : run.operands)
      if (operand.value < 0)
        lastTouch[operand.parameter.bucket] = i;
    for (const BucketArgument &argument : llvm::concat<const BucketArgument>(run.parameters, run.gradients))
      lastTouch[argument.bucket] = i;
    for (auto [bucket, use] : run.completes)
      lastTouch[bucket] = i;
  }
  llvm::DenseMap<int64_t, SmallVector<BucketInfo *>> complete; ///< by that step
  for (auto [id, bucket] : llvm::enumerate(graph.buckets))
    if (auto it = lastTouch.find(id); it != lastTouch.end())
      complete[it->second].push_back(&bucket);
  for (auto [i, step] : llvm::enumerate(steps)) {
    switch (step.kind) {
    case Step::Input:
      writeInput(step);
      break;
    case Step::Send:
    case Step::Recv:
      writeTransfer(step);
      break;
    case Step::Run:
      if (failed(writeRun(step)))
        return failure();
      for (auto [bucket, use] : graph.runs[step.id].completes)
        finishGradient(bucket, use, step.microBatch);
      if (auto buckets = complete.find(i); buckets != complete.end()) {
        finishTrailing();
        for (BucketInfo *bucket : buckets->second)
          completeBucket(*bucket);
      }
      break;
    }
  }
  writeFinish();
  return success();
}
