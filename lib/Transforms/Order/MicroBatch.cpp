//===- MicroBatch.cpp - one micro-batch as runs, values and buckets -------===//

#include "MicroBatch.h"

#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"

#include "llvm/ADT/DenseSet.h"

#include <set>

using namespace mlir;
using namespace dsopt;

namespace {
/// Fills a MicroBatch step by step.
class Reader {
public:
  explicit Reader(func::FuncOp function) : module(function->getParentOfType<ModuleOp>()), symbols(module) {
    result.function = function;
    result.variant = function->getAttrOfType<IntegerAttr>(exec::kVariantAttr);
    function.walk([&](graph::RunOp run) {
      auto segment = symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr());
      result.evaluates |= segment && graph::getPhase(segment) == Phase::E;
    });
  }
  FailureOr<MicroBatch> read();

private:
  LogicalResult readBuckets();
  LogicalResult readInputs();
  LogicalResult readBody();
  LogicalResult readRun(graph::RunOp op);
  LogicalResult readOperand(RunInfo &run, Value operand, Location loc);
  func::FuncOp readerOf(Value value);
  LogicalResult readCollective(dist::ValueCollectiveOpInterface op);
  LogicalResult readGather(dist::GatherOp op);
  LogicalResult placeGathers();
  LogicalResult placeReductions();
  LogicalResult readArguments(RunInfo &run, unsigned first, Location loc);
  LogicalResult readChunks();
  LogicalResult readValues();
  LogicalResult readOutputs(func::ReturnOp ret);
  void readMetrics(func::ReturnOp ret, ArrayRef<graph::MetricPart> metrics);
  LogicalResult findCrossings();
  LogicalResult placeBuckets();
  void placeStatistics();
  std::optional<BucketArgument> findParameter(FlatSymbolRefAttr parameter, int64_t block);

  ModuleOp module;
  SymbolTable symbols;
  MicroBatch result;
  llvm::DenseMap<Attribute, std::pair<int64_t, int64_t>> places; ///< parameter -> bucket, first element
  llvm::DenseMap<StringAttr, int64_t> bucketIds;                 ///< by name
  llvm::DenseMap<Value, int64_t> valueIds;
  llvm::StringMap<int64_t> collectives; ///< results of a name so far
  /// Of the values of gathers: the gather, and the parameter.
  llvm::DenseMap<Value, std::pair<int64_t, FlatSymbolRefAttr>> gathered;
  /// In the order of the function, each with the number of runs before it.
  SmallVector<graph::RunOp> runOps;
  SmallVector<std::pair<dist::GatherOp, int64_t>> gatherOps;
  SmallVector<std::pair<dist::ReduceOp, int64_t>> reduceOps;
  llvm::DenseMap<Operation *, std::pair<dist::ReleaseOp, int64_t>> releases; ///< of a gather
};
} // namespace

LogicalResult Reader::readBuckets() {
  for (auto op : module.getOps<dist::BucketOp>()) {
    PlacedBucket bucket(op);
    bucket.frozen |= result.evaluates;
    bucket.useStages.assign(op.getBlocks().size(), -1);
    bucket.accumulated.assign(op.getBlocks().size(), false);
    if (op.getTier() != dist::Tier::Device && op.getZero() != 3)
      return op.emitOpError("is kept in ")
             << stringifyTier(op.getTier()) << " memory, but partitioned by stage " << op.getZero()
             << ", expected 3: blocks read it where it lies";
    for (auto range : op.getRanges().getAsRange<dist::RangeAttr>())
      places[range.getParameter()] = {result.buckets.size(), range.getOffset()};
    bucketIds[op.getSymNameAttr()] = result.buckets.size();
    result.buckets.push_back(std::move(bucket));
  }
  return success();
}

std::optional<BucketArgument> Reader::findParameter(FlatSymbolRefAttr parameter, int64_t block) {
  auto it = places.find(parameter);
  if (it == places.end())
    return std::nullopt;
  BucketArgument argument{it->second.first, 0, it->second.second};
  std::optional<int64_t> use = result.buckets[argument.bucket].useOf(block);
  if (!use)
    return std::nullopt;
  argument.use = *use;
  return argument;
}

LogicalResult Reader::readArguments(RunInfo &run, unsigned first, Location loc) {
  func::FuncOp segment = run.segment;
  for (unsigned i = first; i < segment.getNumArguments(); ++i) {
    if (auto name = segment.getArgAttrOfType<FlatSymbolRefAttr>(i, exec::kConstantAttr)) {
      run.constants.push_back(name.getAttr());
      continue;
    }
    if (auto name = segment.getArgAttrOfType<FlatSymbolRefAttr>(i, exec::kCacheAttr)) {
      run.caches.push_back(name.getAttr());
      continue;
    }
    auto parameter = segment.getArgAttrOfType<FlatSymbolRefAttr>(i, exec::kParameterAttr);
    auto gradient = segment.getArgAttrOfType<FlatSymbolRefAttr>(i, exec::kGradientAttr);
    if (!parameter && !gradient)
      return emitError(loc) << "argument " << i << " of segment @" << segment.getSymName()
                            << " is not marked, expected " << exec::kParameterAttr << ", "
                            << exec::kGradientAttr << ", " << exec::kCacheAttr << " or "
                            << exec::kConstantAttr;
    if (!run.constants.empty() || !run.caches.empty() || (parameter && !run.gradients.empty()))
      return emitError(loc) << "argument " << i << " of segment @" << segment.getSymName()
                            << " is out of order, expected parameters, gradients, caches, constants";
    FlatSymbolRefAttr name = parameter;
    if (gradient) {
      auto state = symbols.lookup<graph::StateOp>(gradient.getAttr());
      if (!state)
        return emitError(loc) << "segment @" << segment.getSymName() << " names " << gradient
                              << ", which is no state of this module";
      name = state.getParameterAttr();
    }
    std::optional<BucketArgument> argument = findParameter(name, run.block);
    if (!argument)
      return emitError(loc) << "segment @" << segment.getSymName() << " uses " << name
                            << ", which no bucket of block " << run.block << " holds";
    PlacedBucket &bucket = result.buckets[argument->bucket];
    if (parameter && !bucket.wholeParameters()) {
      InFlightDiagnostic diag = emitError(loc) << "segment @" << segment.getSymName() << " reads " << name
                                               << ", of which each of " << bucket.ranks
                                               << " ranks holds a slice, expected a value of dist.gather";
      diag.attachNote(bucket.op.getLoc()) << "the bucket is here";
      return diag;
    }
    if (Type type = getElementTypeOrSelf(segment.getArgumentTypes()[i]);
        gradient && type != bucket.gradientType())
      return emitError(loc) << "segment @" << segment.getSymName() << " has a gradient of " << type
                            << ", expected " << bucket.gradientType() << ", as bucket @" << bucket.name()
                            << " has";
    argument->offset *= gradient ? graph::elementBytes(bucket.gradientType()) : bucket.elementBytes;
    bucket.useStages[argument->use] = run.stage;
    if (gradient)
      bucket.accumulated[argument->use] = true;
    (gradient ? run.gradients : run.parameters).push_back(*argument);
  }
  return success();
}

LogicalResult Reader::readInputs() {
  for (auto [i, argument] : llvm::enumerate(result.function.getArguments())) {
    ValueInfo value;
    auto name = result.function.getArgAttrOfType<StringAttr>(i, graph::kNameAttr);
    if (!name)
      return result.function.emitError()
             << "argument " << i << " of @" << result.function.getSymName() << " has no " << graph::kNameAttr;
    value.seed = result.function.getArgAttr(i, graph::kSeedAttr) != nullptr;
    value.context = result.function.getArgAttr(i, graph::kContextAttr) != nullptr;
    value.input = name.getValue();
    value.name = value.seed ? "seed" : value.context ? "context" : "input." + name.getValue().str();
    auto type = cast<RankedTensorType>(argument.getType());
    value.type = MemRefType::get(type.getShape(), type.getElementType());
    valueIds[argument] = result.values.size();
    result.values.push_back(std::move(value));
  }
  return success();
}

LogicalResult Reader::readOperand(RunInfo &run, Value operand, Location loc) {
  if (auto value = valueIds.find(operand); value != valueIds.end()) {
    run.operands.push_back({value->second, {}});
    run.inputs.push_back(value->second);
    return success();
  }
  auto [id, name] = gathered.lookup(operand);
  GatherInfo &gather = result.gathers[id];
  PlacedBucket &bucket = result.buckets[gather.bucket];
  std::optional<BucketArgument> parameter = findParameter(name, run.block);
  if (!parameter)
    return emitError(loc) << "a run of block " << run.block << " takes a value of bucket @" << bucket.name()
                          << ", which does not list the block";
  parameter->offset *= bucket.elementBytes;
  if (gather.stage >= 0 && gather.stage != run.stage)
    return gatherOps[id].first.emitOpError("serves stages ")
           << gather.stage << " and " << run.stage << ", expected one: each stage gathers for itself";
  gather.stage = run.stage;
  bucket.useStages[parameter->use] = run.stage;
  run.operands.push_back({-1, *parameter});
  return success();
}

static void placeAt(RunInfo &run, func::FuncOp segment) {
  auto integer = [&](StringRef name) {
    auto attr = segment->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  run.block = integer(graph::kBlockAttr);
  run.stage = integer(dist::kStageAttr);
  run.chunk = dist::getChunk(segment).value_or(run.stage);
}

LogicalResult Reader::readRun(graph::RunOp op) {
  RunInfo run;
  run.segment = symbols.lookup<func::FuncOp>(op.getCalleeAttr().getAttr());
  if (!run.segment || !run.segment->hasAttr(exec::kSegmentAttr))
    return op.emitOpError("runs ") << op.getCalleeAttr() << ", expected a segment";
  auto integer = [&](StringRef name) {
    auto attr = run.segment->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  placeAt(run, run.segment);
  run.temp = integer(exec::kTempAttr);
  std::optional<Phase> phase = graph::getPhase(run.segment);
  if (!phase || (*phase == Phase::E) != result.evaluates)
    return run.segment.emitError() << "segment @" << run.segment.getSymName() << " has no phase "
                                   << (result.evaluates ? "E" : "F, B or W");
  // An evaluation goes through the stages as forward does.
  run.phase = *phase == Phase::E ? Phase::F : *phase;
  unsigned values = op.getNumOperands() + op.getNumResults();
  if (run.segment.getNumArguments() < values)
    return op.emitOpError("passes ") << values << " values, but the segment has "
                                     << run.segment.getNumArguments() << " arguments";
  for (Value input : op.getInputs())
    if (failed(readOperand(run, input, op.getLoc())))
      return failure();
  for (auto [i, output] : llvm::enumerate(op.getOutputs())) {
    ValueInfo value;
    auto type = cast<RankedTensorType>(output.getType());
    value.type = MemRefType::get(type.getShape(), type.getElementType());
    value.name = (run.segment.getSymName() + "." + Twine(i)).str();
    value.run = result.runs.size();
    value.stage = run.stage;
    value.chunk = run.chunk;
    valueIds[output] = result.values.size();
    run.results.push_back(result.values.size());
    result.values.push_back(std::move(value));
  }
  if (failed(readArguments(run, values, op.getLoc())))
    return failure();
  runOps.push_back(op);
  result.runs.push_back(std::move(run));
  return success();
}

/// The run that takes a value first, as it is or as collectives hand it on.
static graph::RunOp firstRunOf(Value value) {
  graph::RunOp first;
  for (Operation *user : value.getUsers()) {
    auto run = dyn_cast<graph::RunOp>(user);
    if (isa<dist::ValueCollectiveOpInterface, graph::ReshapeOp>(user))
      run = firstRunOf(user->getResult(0));
    if (run && (!first || run->isBeforeInBlock(first)))
      first = run;
  }
  return first;
}

/// The segment of that run.
func::FuncOp Reader::readerOf(Value value) {
  graph::RunOp run = firstRunOf(value);
  return run ? symbols.lookup<func::FuncOp>(run.getCalleeAttr().getAttr()) : func::FuncOp();
}

LogicalResult Reader::readCollective(dist::ValueCollectiveOpInterface op) {
  auto known = valueIds.find(op->getOperand(0));
  if (known == valueIds.end() || result.values[known->second].run < 0)
    return op->emitOpError("takes what no run computes, expected a result of graph.run");
  int64_t source = known->second, ranks = dist::getGrid(module).count(op.getAxes().getParts());
  if (ranks == 1) {
    valueIds[op->getResult(0)] = source;
    return success();
  }
  MemRefType type = result.values[source].type;
  if (Type element = type.getElementType();
      op.isSum() && !element.isF32() && !element.isBF16() && !element.isF16())
    return op->emitOpError("takes values of ") << element << ", expected f32, bf16 or f16";
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t padded = op.getBufferElements(/*isResult=*/false, type.getNumElements(), ranks),
          resultPadded = op.getBufferElements(/*isResult=*/true, resultType.getNumElements(), ranks);
  if (padded > type.getNumElements())
    result.values[source].padded = std::max(result.values[source].padded, padded);
  const RunInfo &maker = result.runs[result.values[source].run];
  RunInfo run;
  run.collective = op;
  run.block = maker.block;
  run.stage = maker.stage;
  run.chunk = maker.chunk;
  run.phase = maker.phase;
  // What an earlier function of blocks has made is taken where it is read: behind none of this one's runs
  // yet.
  func::FuncOp reader = readerOf(op->getResult(0));
  if (const RunInfo &before = result.runs.back();
      before.block != maker.block || before.phase != maker.phase) {
    std::optional<Phase> phase = reader ? graph::getPhase(reader) : std::nullopt;
    if (!phase)
      return op->emitOpError("has a result that no run takes");
    run.phase = *phase == Phase::E ? Phase::F : *phase;
  }
  // What grows travels to another stage before.
  if (reader && resultType.getNumElements() > type.getNumElements())
    placeAt(run, reader);
  run.inputs = {source};
  run.results = {(int64_t)result.values.size()};
  ValueInfo value;
  value.type = MemRefType::get(resultType.getShape(), type.getElementType());
  value.name = result.values[source].name + ".sum";
  if (run.phase != maker.phase)
    value.name += ("." + stringifyPhase(run.phase)).str();
  if (int64_t before = collectives[value.name]++)
    value.name += "." + std::to_string(before);
  value.run = result.runs.size();
  value.stage = run.stage;
  value.chunk = run.chunk;
  value.padded = resultPadded > resultType.getNumElements() ? resultPadded : 0;
  value.received = type.getNumElements();
  valueIds[op->getResult(0)] = result.values.size();
  result.values.push_back(std::move(value));
  runOps.push_back({});
  result.runs.push_back(std::move(run));
  return success();
}

LogicalResult Reader::readGather(dist::GatherOp op) {
  GatherInfo gather;
  gather.bucket = bucketIds.lookup(op.getBucketAttr().getAttr());
  gather.wire = op.getWireAttr();
  for (auto [parameter, value] :
       llvm::zip(op.getParameters().getAsRange<FlatSymbolRefAttr>(), op.getValues()))
    gathered[value] = {(int64_t)result.gathers.size(), parameter};
  if (result.buckets[gather.bucket].wholeParameters())
    return op.emitOpError("gathers what is whole on every rank");
  gatherOps.push_back({op, result.runs.size()});
  result.gathers.push_back(gather);
  return success();
}

LogicalResult Reader::readBody() {
  for (Operation &op : result.function.getBody().front()) {
    if (auto run = dyn_cast<graph::RunOp>(op)) {
      if (failed(readRun(run)))
        return failure();
    } else if (auto reshape = dyn_cast<graph::ReshapeOp>(op)) {
      // A collective takes a value under another shape.
      if (auto known = valueIds.find(reshape.getInput()); known != valueIds.end())
        valueIds[reshape.getResult()] = known->second;
    } else if (auto collective = dyn_cast<dist::ValueCollectiveOpInterface>(op)) {
      if (failed(readCollective(collective)))
        return failure();
    } else if (auto gather = dyn_cast<dist::GatherOp>(op)) {
      if (failed(readGather(gather)))
        return failure();
    } else if (auto release = dyn_cast<dist::ReleaseOp>(op)) {
      releases[release.getGather()] = {release, (int64_t)result.runs.size()};
    } else if (auto reduce = dyn_cast<dist::ReduceOp>(op)) {
      reduceOps.push_back({reduce, result.runs.size()});
    } else if (!isa<func::ReturnOp>(op)) {
      return op.emitOpError("in @") << result.function.getSymName()
                                    << ", expected graph.run and dist's collectives only";
    }
  }
  return failure(failed(placeGathers()) || failed(placeReductions()));
}

/// From where to where among the runs of its stage each gather's bucket is whole.
LogicalResult Reader::placeGathers() {
  for (auto [gather, place] : llvm::zip(result.gathers, gatherOps)) {
    auto [op, begin] = place;
    auto release = releases.find(op);
    if (gather.stage < 0 || release == releases.end())
      return op.emitOpError() << (gather.stage < 0 ? "serves no run" : "is never released");
    auto [end, endRun] = release->second;
    for (int64_t run = begin; run < endRun; ++run) {
      if (result.runs[run].stage != gather.stage)
        continue;
      gather.first = gather.first < 0 ? run : gather.first;
      gather.last = run;
    }
    for (Operation *user : op->getUsers())
      if (auto run = dyn_cast<graph::RunOp>(user); run && end->isBeforeInBlock(run)) {
        InFlightDiagnostic diag = run.emitOpError("uses a value of a gather behind its release");
        diag.attachNote(op.getLoc()) << "the gather is here";
        return diag;
      }
  }
  return success();
}

/// Behind which run each gradient is complete on its rank: one rank has it behind the last run that adds to
/// it, several need a reduction to follow.
LogicalResult Reader::placeReductions() {
  std::map<std::pair<int64_t, int64_t>, int64_t> last;
  for (auto [id, run] : llvm::enumerate(result.runs))
    for (const BucketArgument &gradient : run.gradients)
      last[{gradient.bucket, gradient.use}] = id;
  std::set<std::pair<int64_t, int64_t>> reduced;
  for (auto [op, runs] : reduceOps) {
    dist::ReduceOp reduce = op;
    auto bucket = llvm::find_if(
        result.buckets, [&](const PlacedBucket &bucket) { return bucket.name() == reduce.getBucket(); });
    std::pair<int64_t, int64_t> key(bucket - result.buckets.begin(), reduce.getUse());
    auto adds = last.find(key);
    if (adds == last.end() || adds->second >= runs)
      return reduce.emitOpError("of @")
             << reduce.getBucket() << " comes before a run that adds to the gradient";
    if (!reduced.insert(key).second)
      return reduce.emitOpError("of @") << reduce.getBucket() << " comes a second time";
    if (reduce.getOrder() == dist::ReductionOrder::Fast && !isForDevice(module))
      return reduce.emitOpError("asks for the order fast, which only NCCL has, expected canonical");
    int64_t run = runs - 1;
    while (result.runs[run].collective || result.runs[run].stage != result.runs[adds->second].stage)
      --run;
    result.runs[run].completes.push_back({key.first, key.second, reduce});
  }
  for (auto [id, run] : llvm::enumerate(result.runs))
    for (const BucketArgument &gradient : run.gradients) {
      std::pair<int64_t, int64_t> key(gradient.bucket, gradient.use);
      PlacedBucket &bucket = result.buckets[key.first];
      if (last[key] != (int64_t)id || !reduced.insert(key).second)
        continue;
      if (bucket.ranks > 1)
        return runOps[id].emitOpError("adds to the gradient of bucket @")
               << bucket.name() << ", which no dist.reduce adds over its " << bucket.ranks << " ranks";
      run.completes.push_back({key.first, key.second, {}});
    }
  return success();
}

LogicalResult Reader::readValues() {
  auto ret = cast<func::ReturnOp>(result.function.getBody().front().getTerminator());
  if (graph::predicts(result.function))
    return readOutputs(ret);
  auto statistics = graph::statisticsOf(result.function);
  auto metrics = graph::metricsOf(result.function);
  if (ret.getNumOperands() != 1 + statistics.size() + metrics.size() ||
      llvm::any_of(ret.getOperands(), [](Value value) { return isa<BlockArgument>(value); }))
    return ret.emitOpError("of @") << result.function.getSymName()
                                   << ", expected the loss, computed by a run";
  result.loss = valueIds.lookup(ret.getOperand(0));
  result.values[result.loss].agreed = true;
  result.values[result.loss].name = "loss";
  for (const graph::Statistic &statistic : statistics) {
    StatisticInfo info;
    info.value = valueIds.lookup(ret.getOperand(statistic.result));
    info.elements = result.values[info.value].type.getNumElements();
    info.momentum = statistic.momentum;
    if (result.values[info.value].padded)
      return ret.emitOpError("returns a contribution to ")
             << statistic.parameter << " of " << info.elements
             << " elements, which ranks add: expected a multiple of "
             << dist::getGrid(module).size(Axis::tp) * dist::kGranule;
    auto place = places.find(statistic.parameter);
    if (place == places.end())
      return ret.emitOpError("returns a contribution to ")
             << statistic.parameter << ", which no bucket holds";
    info.target = {place->second.first, 0, place->second.second * (int64_t)sizeof(float)};
    result.statistics.push_back(info);
  }
  readMetrics(ret, metrics);
  return findCrossings();
}

LogicalResult Reader::readOutputs(func::ReturnOp ret) {
  for (Value operand : ret.getOperands()) {
    auto known = valueIds.find(operand);
    if (known == valueIds.end() || isa<BlockArgument>(operand))
      return ret.emitOpError("of @") << result.function.getSymName()
                                     << ", expected outputs that runs compute";
    result.values[known->second].agreed = true;
    result.outputs.push_back(known->second);
  }
  return findCrossings();
}

void Reader::readMetrics(func::ReturnOp ret, ArrayRef<graph::MetricPart> metrics) {
  Builder builder(module.getContext());
  SmallVector<int64_t> parts;
  int64_t place = 0;
  for (auto [i, part] : llvm::enumerate(metrics)) {
    MeasureInfo info;
    info.value = valueIds.lookup(ret.getOperand(part.result));
    ValueInfo &value = result.values[info.value];
    value.agreed = true;
    info.place = place;
    info.elements = value.type.getNumElements();
    place += info.elements;
    result.measures.push_back(info);
    parts.push_back(info.elements);
    if (i + 1 < metrics.size() && metrics[i + 1].part)
      continue;
    graph::MetricAttr metric = part.metric;
    NamedAttrList entry;
    entry.set("name", builder.getStringAttr(metric.getName()));
    entry.set("combine", builder.getStringAttr(stringifyCombine(metric.getCombine())));
    entry.set("parts", builder.getDenseI64ArrayAttr(parts));
    result.metrics.push_back(entry.getDictionary(module.getContext()));
    parts.clear();
  }
}

/// From chunk to chunk values hop to where they are used: to the first chunk of that stage on the way.
LogicalResult Reader::findCrossings() {
  struct Reach {
    int64_t lowest, highest;
  };
  auto stageOf = [&](int64_t chunk) { return result.chunks[chunk].stage; };
  std::vector<Reach> reaches;
  for (const ValueInfo &value : result.values)
    reaches.push_back({value.chunk, value.chunk});
  for (RunInfo &run : result.runs)
    for (int64_t id : run.inputs) {
      const ValueInfo &value = result.values[id];
      if (value.chunk < 0)
        continue;
      if (run.chunk > value.chunk && result.runs[value.run].phase != Phase::F)
        return run.segment.emitError()
               << "stage " << run.stage << " uses value " << value.name << ", which stage " << value.stage
               << " computes in backward, expected backward values to go down";
      auto &[lowest, highest] = reaches[id];
      int64_t chunk = value.chunk, step = run.chunk < chunk ? -1 : 1;
      while (stageOf(chunk) != run.stage)
        chunk += step;
      lowest = std::min(lowest, chunk);
      highest = std::max(highest, chunk);
    }
  for (auto [value, reach] : llvm::zip(result.values, reaches)) {
    if (reach.lowest == reach.highest)
      continue;
    llvm::SmallDenseSet<int64_t> holders = {value.stage};
    for (int64_t chunk = value.chunk; chunk < reach.highest; ++chunk)
      if (holders.insert(stageOf(chunk + 1)).second)
        value.up.push_back(chunk);
    for (int64_t chunk = value.chunk; chunk > reach.lowest; --chunk)
      if (holders.insert(stageOf(chunk - 1)).second)
        value.down.push_back(chunk);
  }
  return success();
}

/// Statistics have a place of their own among those of their stage.
void Reader::placeStatistics() {
  result.statisticBytes.assign(result.stages, 0);
  for (const StatisticInfo &statistic : result.statistics) {
    ValueInfo &value = result.values[statistic.value];
    PlacedBucket &bucket = result.buckets[statistic.target.bucket];
    // Evaluation reads it in every block that uses it.
    for (auto [use, block] : llvm::enumerate(bucket.op.getBlocks()))
      if (int64_t chunk = result.chunkOf(block); chunk >= 0)
        bucket.useStages[use] = result.chunks[chunk].stage;
    // One value may be the mean of two normalizations.
    if (value.statistic >= 0)
      continue;
    value.statistic = result.statisticBytes[value.stage];
    result.statisticBytes[value.stage] += exec::bytesOf(value.type);
  }
}

LogicalResult Reader::readChunks() {
  int64_t last = dist::getGrid(module).size(Axis::pp) - 1, lastChunk = 0;
  bool apart = false; // chunks have numbers of their own
  for (const RunInfo &run : result.runs) {
    last = std::max(last, run.stage);
    lastChunk = std::max(lastChunk, run.chunk);
    apart |= run.chunk != run.stage;
  }
  result.stages = last + 1;
  result.chunks.resize((apart ? lastChunk : last) + 1);
  for (RunInfo &run : result.runs) {
    ChunkInfo &chunk = result.chunks[run.chunk];
    if (chunk.stage >= 0 && chunk.stage != run.stage)
      return run.segment.emitError() << "chunk " << run.chunk << " is on stages " << chunk.stage << " and "
                                     << run.stage << ", expected one";
    chunk.stage = run.stage;
    chunk.blocks.first = std::min(chunk.blocks.first, run.block);
    chunk.blocks.last = std::max(chunk.blocks.last, run.block + 1);
  }
  StringRef what = apart ? "chunk " : "stage ";
  for (auto [c, chunk] : llvm::enumerate(result.chunks)) {
    if (chunk.stage < 0)
      return module.emitError() << what << c
                                << " has no blocks, expected at least one of the model's in each of "
                                << result.chunks.size() << " " << what.drop_back() << "s";
    if (c && chunk.blocks.first < result.chunks[c - 1].blocks.last)
      return module.emitError() << what << c << " starts with block " << chunk.blocks.first
                                << ", expected block " << result.chunks[c - 1].blocks.last
                                << ", behind those of " << what << c - 1;
  }
  for (int64_t stage = 0; stage < result.stages; ++stage)
    if (result.chunksAt(stage).empty())
      return module.emitError() << "stage " << stage << " has none of the " << result.chunks.size()
                                << " chunks, expected at least one in each of " << result.stages << " stages";
  return success();
}

LogicalResult Reader::placeBuckets() {
  placeStatistics();
  for (PlacedBucket &bucket : result.buckets) {
    bucket.place();
    if (bucket.stages.empty() && !bucket.frozen)
      return bucket.op.emitOpError("is used by no run");
    if (!bucket.stages.empty() && !bucket.frozen && !bucket.accumulated[0])
      return bucket.op.emitOpError("is trained, but block ")
             << bucket.op.getBlocks()[0] << " does not accumulate its gradient";
  }
  return success();
}

FailureOr<MicroBatch> Reader::read() {
  if (failed(readBuckets()) || failed(readInputs()) || failed(readBody()) || failed(readChunks()) ||
      failed(readValues()) || failed(placeBuckets()))
    return failure();
  return std::move(result);
}

int64_t MicroBatch::chunkOf(int64_t block) const {
  for (auto [c, chunk] : llvm::enumerate(chunks))
    if (chunk.blocks.first <= block && block < chunk.blocks.last)
      return c;
  return -1;
}

SmallVector<Chunk, 1> MicroBatch::chunksAt(int64_t stage) const {
  SmallVector<Chunk, 1> ranges;
  for (const ChunkInfo &chunk : chunks)
    if (chunk.stage == stage)
      ranges.push_back(chunk.blocks);
  return ranges;
}

FailureOr<MicroBatch> dsopt::readMicroBatch(func::FuncOp function) { return Reader(function).read(); }
