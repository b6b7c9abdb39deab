//===- ZeroBubble.cpp - a schedule outside the tree: W apart from B -------===//
//
// ZB-H1 (Qi et al. 2023): backward that other stages wait for goes first, weight
// gradients fill what would be bubbles. Stage s of S starts S - s micro-batches
// before its first backward, and W trails B by s micro-batches, or by as many as
// -schedule=zb-h1{trail=N} says.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace dsopt;

static llvm::SmallVector<PipelineSlot> zeroBubble(const StageShape &shape) {
  llvm::SmallVector<PipelineSlot> slots;
  auto append = [&](Phase phase, int64_t microBatch) {
    for (int64_t block = shape.chunks[0].last; block-- > shape.chunks[0].first;)
      slots.push_back({block, phase, microBatch});
  };
  int64_t trail = shape.options[0] < 0 ? shape.stage : shape.options[0];
  int64_t forwards = std::min(shape.stages - shape.stage, shape.microBatches), weights = 0;
  for (int64_t m = 0; m < forwards; ++m)
    appendForward(shape, m, slots);
  for (int64_t m = 0; m < shape.microBatches; ++m) {
    append(Phase::B, m);
    if (forwards < shape.microBatches)
      appendForward(shape, forwards++, slots);
    if (m >= trail)
      append(Phase::W, weights++);
  }
  while (weights < shape.microBatches)
    append(Phase::W, weights++);
  return slots;
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "zero-bubble", "1",
          [] { registerPipelineOrder("zb-h1", zeroBubble, {{"trail", -1}}); }};
}
