//===- OrderPipeline.cpp - one program for each pipeline position ---------===//

#include "StageWriter.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Dialect/Graph/Metrics.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Order/Communicators.h"
#include "dsopt/Transforms/Order/Passes.h"

#include "llvm/ADT/StringExtras.h"

namespace dsopt {
#define GEN_PASS_DEF_ORDERPIPELINE
#include "dsopt/Transforms/Order/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

/// Keeps what data has to give, which the function says.
static void keepInputs(ModuleOp module, MicroBatch &graph) {
  Builder builder(module.getContext());
  SmallVector<Attribute> inputs;
  llvm::SmallDenseSet<Attribute> known;
  if (auto earlier = module->getAttrOfType<ArrayAttr>(exec::kInputsAttr))
    for (auto input : earlier.getAsRange<DictionaryAttr>()) {
      inputs.push_back(input);
      known.insert(input.get("name"));
    }
  for (auto [i, type] : llvm::enumerate(graph.function.getArgumentTypes())) {
    if (graph.values[i].seed || graph.values[i].context ||
        known.contains(builder.getStringAttr(graph.values[i].input)))
      continue;
    Attribute ignored = graph.function.getArgAttr(i, "graph.ignore_index");
    NamedAttrList entry;
    entry.set("name", builder.getStringAttr(graph.values[i].input));
    entry.set("type", TypeAttr::get(type));
    entry.set("label", builder.getBoolAttr(!!graph.function.getArgAttr(i, "graph.label")));
    entry.set("ignore_index", ignored ? ignored : builder.getI64IntegerAttr(-100));
    for (StringRef name : {"bound", "least", "source"})
      if (Attribute value = graph.function.getArgAttr(i, ("graph." + name).str()))
        entry.set(name, value);
    inputs.push_back(entry.getDictionary(module.getContext()));
  }
  module->setAttr(exec::kInputsAttr, builder.getArrayAttr(inputs));
}

/// What a function computes that has no loss, with the shapes that the model has; those of the dimension's
/// other sizes stand beside the largest's, which comes first.
static void keepOutputs(ModuleOp module, func::FuncOp function) {
  Builder builder(module.getContext());
  auto earlier = module->getAttrOfType<ArrayAttr>(exec::kOutputsAttr);
  auto size = function->getAttrOfType<IntegerAttr>(exec::kVariantAttr);
  SmallVector<Attribute> outputs;
  for (unsigned i = 0; graph::predicts(function) && i < function.getNumResults(); ++i) {
    auto shape = function.getResultAttrOfType<DenseI64ArrayAttr>(i, graph::kShapeAttr);
    Type element = getElementTypeOrSelf(function.getResultTypes()[i]);
    Attribute type = TypeAttr::get(RankedTensorType::get(shape.asArrayRef(), element));
    NamedAttrList entry;
    if (size && earlier)
      entry = NamedAttrList(cast<DictionaryAttr>(earlier[i]));
    entry.set("name", function.getResultAttr(i, graph::kPredictionAttr));
    entry.set(size ? exec::outputTypeAt(size.getInt()) : "type", type);
    outputs.push_back(entry.getDictionary(module.getContext()));
  }
  if (!outputs.empty())
    module->setAttr(exec::kOutputsAttr, builder.getArrayAttr(outputs));
}

/// All sizes of a dimension measure the same.
static LogicalResult keepMetrics(ModuleOp module, const MicroBatch &graph) {
  auto earlier = module->getAttrOfType<ArrayAttr>(exec::kMetricsAttr);
  if (graph.metrics.empty() && !earlier)
    return success();
  auto metrics = ArrayAttr::get(module.getContext(), graph.metrics);
  if (earlier && earlier != metrics)
    return MicroBatch(graph).function.emitError("measures ")
           << metrics << ", but another function of the module " << earlier;
  module->setAttr(exec::kMetricsAttr, metrics);
  return success();
}

namespace {
/// The order in which each stage runs a step.
struct StageOrders {
  SmallVector<SmallVector<PipelineSlot>> slots;
  std::optional<ChunkEntries> entries; ///< where a stage has several chunks
};
} // namespace

/// The blocks are cut as the schedule has it.
static LogicalResult checkChunks(ModuleOp module, StringRef name, const PipelineSchedule &schedule,
                                 const MicroBatch &graph) {
  auto stages = llvm::map_to_vector(graph.chunks, [](const ChunkInfo &chunk) { return chunk.stage; });
  SmallVector<int64_t> wanted = schedule.chunks(graph.stages, {});
  if (stages == wanted)
    return success();
  InFlightDiagnostic diag = module.emitError("schedule ")
                            << name << " has a chunk of blocks at each of stages ";
  llvm::interleaveComma(wanted, diag);
  diag << ", but the blocks are cut into chunks at stages ";
  llvm::interleaveComma(stages, diag);
  diag << ": -schedule is what it was when they were cut";
  return diag;
}

static FailureOr<StageOrders> orderStages(ModuleOp module, StringRef name, const MicroBatch &graph,
                                          int64_t microBatches) {
  std::string problem;
  PipelineSchedule schedule = getPipelineSchedule(name, &problem);
  if (!schedule.order)
    return module.emitError("schedule ") << problem;
  if (problem = schedule.refuse(graph.stages, microBatches, {}); !problem.empty())
    return module.emitError("schedule ") << name << " " << problem;
  if (failed(checkChunks(module, name, schedule, graph)))
    return failure();
  StageOrders orders;
  SmallVector<StageShape> shapes;
  for (int64_t stage = 0; stage < graph.stages; ++stage) {
    shapes.push_back({stage, graph.stages, microBatches, graph.chunksAt(stage)});
    orders.slots.push_back(schedule.order(shapes.back()));
    if (problem = checkOrder(shapes.back(), orders.slots.back()); !problem.empty())
      return module.emitError("schedule ") << name << ", stage " << stage << ": " << problem;
    // What is evaluated goes the way of forward.
    if (graph.evaluates)
      llvm::erase_if(orders.slots.back(), [](const PipelineSlot &slot) { return slot.phase != Phase::F; });
  }
  auto starts = startTimes(shapes, orders.slots, problem);
  if (!problem.empty())
    return module.emitError("schedule ") << name << ": " << problem;
  if (graph.chunks.size() > shapes.size())
    orders.entries.emplace(graph, orders.slots, starts);
  return orders;
}

/// What forward reads and changes goes from one micro-batch to the next, which is the next step's.
static LogicalResult checkSequential(func::FuncOp function, int64_t ranks, int64_t microBatches) {
  int64_t K = ranks * microBatches;
  for (const graph::Statistic &statistic : graph::statisticsOf(function))
    if (statistic.sequential && K > 1)
      return function.emitError("forward reads buffer ")
             << statistic.parameter
             << " and changes it, so that each micro-batch needs what the one before it "
             << "left: expected one micro-batch a step, got " << K << " (" << ranks << " dp x "
             << microBatches << ")";
  return success();
}

/// Writes the programs of one function.
static LogicalResult orderFunction(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  Grid grid = dist::getGrid(module);
  int64_t microBatches = options::micro_batches(module).value_or(1);
  if (failed(checkSequential(function, grid.dataParallel(), microBatches)))
    return failure();
  FailureOr<MicroBatch> graph = readMicroBatch(function);
  if (failed(graph))
    return failure();
  auto orders = orderStages(module, options::schedule(module), *graph, microBatches);
  if (failed(orders))
    return failure();
  declareCommunicators(module);
  declareStreams(module, graph->stages);
  if (llvm::any_of(graph->runs, [](const RunInfo &run) { return run.collective; }))
    declareTensorStream(module);
  for (auto [s, slots] : llvm::enumerate(orders->slots))
    StageWriter(module, *graph, grid.slices(), microBatches, s)
        .write(slots, orders->entries ? &*orders->entries : nullptr);
  keepInputs(module, *graph);
  keepOutputs(module, function);
  return keepMetrics(module, *graph);
}

/// The functions of a micro-batch: those of training, evaluation and variants.
static SmallVector<func::FuncOp> orderedFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (StringRef name : {graph::kMicroBatchFunction, graph::kEvaluateFunction})
    if (auto function = module.lookupSymbol<func::FuncOp>(name); function && !function.isExternal())
      functions.push_back(function);
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(exec::kVariantAttr))
      functions.push_back(function);
  return functions;
}

LogicalResult dsopt::orderPipeline(ModuleOp module) {
  SmallVector<func::FuncOp> functions = orderedFunctions(module);
  if (functions.empty())
    return module.emitError("has no function @")
           << graph::kMicroBatchFunction << " or @" << graph::kEvaluateFunction;
  for (func::FuncOp function : functions)
    if (failed(orderFunction(function)))
      return failure();
  exec::keepOptions(module);
  return success();
}

namespace {
struct OrderPipeline : dsopt::impl::OrderPipelineBase<OrderPipeline> {
  using OrderPipelineBase::OrderPipelineBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "schedule", StringRef(schedule));
    giveOption(module, "micro_batches", microBatches, /*unset=*/0);
    if (failed(orderPipeline(module)))
      return signalPassFailure();
    for (func::FuncOp function : orderedFunctions(module))
      function.erase();
  }
};
} // namespace
