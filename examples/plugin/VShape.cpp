//===- VShape.cpp - a schedule outside the tree: two chunks a stage -------===//
//
// Stage s of S has the chunks s and 2S - 1 - s, so that the model goes down the stages
// and up again: the first blocks and the last are neighbours in memory, what they share
// is not sent, and nor is what goes from the middle's first half to its second. All
// micro-batches go down; then each goes up and back, s of them ahead; then all go back.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace dsopt;

static llvm::SmallVector<PipelineSlot> vShape(const StageShape &shape) {
  llvm::SmallVector<PipelineSlot> slots;
  int64_t ahead = std::min(shape.stage, shape.microBatches);
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendForward(shape.chunks[0], m, slots);
  for (int64_t m = 0; m < shape.microBatches + ahead; ++m) {
    if (m < shape.microBatches)
      appendForward(shape.chunks[1], m, slots);
    if (m >= ahead)
      appendBackward(shape.chunks[1], m - ahead, slots);
  }
  for (int64_t m = 0; m < shape.microBatches; ++m)
    appendBackward(shape.chunks[0], m, slots);
  return slots;
}

static llvm::SmallVector<int64_t> vChunks(int64_t stages, llvm::ArrayRef<int64_t>) {
  llvm::SmallVector<int64_t> map;
  for (int64_t chunk = 0; chunk < 2 * stages; ++chunk)
    map.push_back(std::min(chunk, 2 * stages - 1 - chunk));
  return map;
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "v-shape", "1",
          [] { registerPipelineSchedule("v", {vShape, {}, vChunks}); }};
}
