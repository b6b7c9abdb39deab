//===- BuildPrograms.cpp - one program for each pipeline position ---------===//

#include "PositionWriter.h"
#include "dsopt/Dialect/Graph/Context.h"
#include "dsopt/Dialect/Graph/Statistics.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace dsopt {
#define GEN_PASS_DEF_BUILDPROGRAMS
#include "dsopt/Transforms/Schedule/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
class BuildPrograms : public dsopt::impl::BuildProgramsBase<BuildPrograms> {
public:
  using BuildProgramsBase::BuildProgramsBase;
  void runOnOperation() override;

private:
  FailureOr<BatchShape> readBatch(ModuleOp module);
  /// Writes the programs of one of the two functions and erases it.
  LogicalResult build(func::FuncOp function, const BatchShape &batch);
  void keepInputs(ModuleOp module, MicroBatch &graph);
};
} // namespace

FailureOr<BatchShape> BuildPrograms::readBatch(ModuleOp module) {
  BatchShape batch;
  batch.ranks = getOption(module, "dp", 1);
  batch.microBatches = takeOption(module, "micro_batches", microBatches, /*unset=*/0, 1);
  batch.shards = getOption(module, "reduction_shards", batch.ranks);
  int64_t window = takeOption(module, "gather_window", gatherWindow, /*unset=*/0, 1);
  batch.gatherWindow = std::max<int64_t>(window, 1);
  batch.clip = getOption(module, "clip", 0) != 0;
  StringRef byStage = getOption(module, "zero", 0) < 2 ? "local" : "sharded";
  StringRef accumulate = getOption(module, "accumulate", byStage);
  if (accumulate != "local" && accumulate != "sharded")
    return module.emitError("accumulate is \"") << accumulate << "\", expected local or sharded", failure();
  batch.local = accumulate == "local";
  int64_t K = batch.ranks * batch.microBatches;
  if (batch.shards < 1 || K % batch.shards)
    return module.emitError("reduction-shards is ")
               << batch.shards << ", expected a divisor of the step's " << K << " micro-batches",
           failure();
  if (batch.shards % batch.ranks || (batch.ranks > 1 && !llvm::isPowerOf2_64(batch.shardsPerRank())))
    return module.emitError("reduction-shards is ")
               << batch.shards << ", expected " << batch.ranks << " (dp) times a power of two",
           failure();
  return batch;
}

void BuildPrograms::keepInputs(ModuleOp module, MicroBatch &graph) {
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

/// The order in which each stage runs a step.
static FailureOr<SmallVector<SmallVector<PipelineSlot>>>
orderStages(ModuleOp module, StringRef schedule, const MicroBatch &graph, int64_t microBatches) {
  PipelineOrder order = getPipelineOrder(schedule);
  if (!order)
    return module.emitError("schedule is \"")
           << schedule << "\", expected one of " << llvm::join(pipelineOrderNames(), ", ");
  SmallVector<SmallVector<PipelineSlot>> orders;
  for (auto [s, blocks] : llvm::enumerate(graph.stageBlocks)) {
    StageShape shape{(int64_t)s, graph.stages, microBatches, blocks.first, blocks.second};
    if (!graph.evaluates) {
      orders.push_back(order(shape));
      if (std::string problem = checkOrder(shape, orders.back()); !problem.empty())
        return module.emitError("schedule ") << schedule << ", stage " << s << ": " << problem;
      continue;
    }
    orders.emplace_back();
    for (int64_t m = 0; m < microBatches; ++m)
      appendForward(shape, m, orders.back());
  }
  return orders;
}

/// What forward reads and changes goes from one micro-batch to the next, which is the next step's.
static LogicalResult checkSequential(func::FuncOp function, const BatchShape &batch) {
  int64_t K = batch.ranks * batch.microBatches;
  for (const graph::Statistic &statistic : graph::statisticsOf(function))
    if (statistic.sequential && K > 1)
      return function.emitError("forward reads buffer ")
             << statistic.parameter
             << " and changes it, so that each micro-batch needs what the one before it "
             << "left: expected one micro-batch a step, got " << K << " (" << batch.ranks << " dp x "
             << batch.microBatches << ")";
  return success();
}

LogicalResult BuildPrograms::build(func::FuncOp function, const BatchShape &batch) {
  ModuleOp module = getOperation();
  if (failed(checkSequential(function, batch)))
    return failure();
  FailureOr<MicroBatch> graph = readMicroBatch(function);
  if (failed(graph))
    return failure();
  std::string name = takeOption(module, "schedule", StringRef(schedule), "1f1b").str();
  auto orders = orderStages(module, name, *graph, batch.microBatches);
  if (failed(orders))
    return failure();
  for (auto [s, slots] : llvm::enumerate(*orders)) {
    PositionWriter writer(module, *graph, batch, s);
    if (failed(writer.write(slots)))
      return failure();
  }
  keepInputs(module, *graph);
  graph->function.erase();
  return success();
}

void BuildPrograms::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<BatchShape> batch = readBatch(module);
  if (failed(batch))
    return signalPassFailure();
  SmallVector<func::FuncOp> functions;
  for (StringRef name : {"micro_batch", "evaluate"})
    if (auto function = module.lookupSymbol<func::FuncOp>(name); function && !function.isExternal())
      functions.push_back(function);
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(exec::kVariantAttr))
      functions.push_back(function);
  for (func::FuncOp function : functions)
    if (failed(build(function, *batch)))
      return signalPassFailure();
  if (functions.empty()) {
    module.emitError("has no function @micro_batch or @evaluate");
    return signalPassFailure();
  }
  if (auto update = module.lookupSymbol<func::FuncOp>("update"))
    update.erase();
  exec::keepOptions(module);
}
