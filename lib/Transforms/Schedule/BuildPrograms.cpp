//===- BuildPrograms.cpp - one program for each pipeline position ---------===//

#include "PositionWriter.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Schedule/Passes.h"

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
  void keepInputs(ModuleOp module, MicroBatch &graph);
};
} // namespace

FailureOr<BatchShape> BuildPrograms::readBatch(ModuleOp module) {
  BatchShape batch;
  batch.ranks = getOption(module, "dp", 1);
  batch.microBatches = microBatches > 0 ? (int64_t)microBatches : getOption(module, "micro_batches", 1);
  batch.shards = getOption(module, "reduction_shards", batch.ranks);
  int64_t window = gatherWindow > 0 ? (int64_t)gatherWindow : getOption(module, "gather_window", 1);
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
  for (auto [i, type] : llvm::enumerate(graph.function.getArgumentTypes())) {
    if (graph.values[i].seed)
      continue;
    Attribute ignored = graph.function.getArgAttr(i, "graph.ignore_index");
    NamedAttrList entry;
    entry.set("name", builder.getStringAttr(graph.values[i].input));
    entry.set("type", TypeAttr::get(type));
    entry.set("label", builder.getBoolAttr(!!graph.function.getArgAttr(i, "graph.label")));
    entry.set("ignore_index", ignored ? ignored : builder.getI64IntegerAttr(-100));
    if (Attribute bound = graph.function.getArgAttr(i, "graph.bound"))
      entry.set("bound", bound);
    inputs.push_back(entry.getDictionary(module.getContext()));
  }
  module->setAttr(exec::kInputsAttr, builder.getArrayAttr(inputs));
}

void BuildPrograms::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<BatchShape> batch = readBatch(module);
  if (failed(batch))
    return signalPassFailure();
  FailureOr<MicroBatch> graph = readMicroBatch(module);
  if (failed(graph))
    return signalPassFailure();
  std::string name = schedule.empty() ? getOption(module, "schedule", StringRef("1f1b")).str() : schedule;
  PipelineOrder order = getPipelineOrder(name);
  if (!order) {
    module.emitError("schedule is \"") << name << "\", expected one of " << pipelineOrderNames();
    return signalPassFailure();
  }
  SmallVector<SmallVector<PipelineSlot>> orders;
  for (auto [s, blocks] : llvm::enumerate(graph->stageBlocks))
    orders.push_back(order({(int64_t)s, graph->stages, batch->microBatches, blocks.first, blocks.second}));
  PipelineShape shape = measurePipeline(orders);
  AccessAnalysis analysis(module);
  Builder builder(module.getContext());
  for (auto [s, slots] : llvm::enumerate(orders)) {
    PositionWriter writer(module, analysis, *graph, *batch, s);
    if (failed(writer.write(slots)))
      return signalPassFailure();
    writer.program()->setAttr(
        exec::kPipelineAttr,
        builder.getDictionaryAttr({builder.getNamedAttr("alive", builder.getI64IntegerAttr(shape.alive[s])),
                                   builder.getNamedAttr("slots", builder.getI64IntegerAttr(shape.length))}));
  }
  keepInputs(module, *graph);
  graph->function.erase();
  if (auto update = module.lookupSymbol<func::FuncOp>("update"))
    update.erase();
}
