//===- PipelineOrderTest.cpp - which orders of a stage can be run ---------===//

#include "dsopt/Analysis/Exec/PipelineOrder.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dsopt;
using namespace mlir;
using Slots = llvm::SmallVector<PipelineSlot>;

/// Blocks 2 and 3 of the second of three stages, on three micro-batches.
static const StageShape kShape{1, 3, 3, {{2, 4}}};

/// The order of GPipe, with `change` made to it.
static std::string check(llvm::function_ref<void(Slots &)> change) {
  Slots slots = getPipelineOrder("gpipe")(kShape);
  change(slots);
  return checkOrder(kShape, slots);
}

TEST(PipelineOrder, TheRegisteredOnesAreRight) {
  for (const char *name : {"gpipe", "1f1b"})
    for (int64_t stages : {1, 2, 5})
      for (int64_t stage = 0; stage < stages; ++stage)
        for (int64_t microBatches : {1, 3, 8})
          for (int64_t blocks : {1, 4}) {
            StageShape shape{stage, stages, microBatches, {{7, 7 + blocks}}};
            EXPECT_EQ(checkOrder(shape, getPipelineOrder(name)(shape)), "") << name;
          }
}

/// The slots that pass until all stages of a schedule are done, with a block in each chunk and as many blocks
/// as `total` on each stage.
static int64_t lengthOf(StringRef name, int64_t stages, int64_t chunks, int64_t total, int64_t microBatches) {
  SmallVector<StageShape> shapes;
  SmallVector<Slots> orders;
  int64_t size = total / chunks;
  for (int64_t stage = 0; stage < stages; ++stage) {
    shapes.push_back({stage, stages, microBatches, {}});
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      int64_t first = (chunk * stages + stage) * size;
      shapes.back().chunks.push_back({first, first + size});
    }
    orders.push_back(getPipelineOrder(name)(shapes.back()));
    EXPECT_EQ(checkOrder(shapes.back(), orders.back()), "") << name.str();
  }
  std::string problem;
  int64_t end = 0;
  for (const std::vector<int64_t> &starts : startTimes(shapes, orders, problem))
    end = std::max(end, starts.back() + 1);
  EXPECT_EQ(problem, "");
  return end;
}

/// C chunks a stage: bubbles are C times shorter, or shorter than that, since W need not be waited for.
TEST(PipelineOrder, ChunksShortenBubbles) {
  for (int64_t stages : {2, 3, 4})
    for (int64_t chunks : {2, 3, 4})
      for (int64_t rounds : {1, 2, 4}) {
        int64_t microBatches = stages * rounds, busy = 3 * 12 * microBatches;
        int64_t whole = lengthOf("1f1b", stages, 1, 12, microBatches) - busy;
        int64_t parts = lengthOf("interleaved", stages, chunks, 12, microBatches) - busy;
        EXPECT_LE(parts * chunks, whole)
            << stages << " stages, " << chunks << " chunks, " << rounds << " rounds";
      }
  EXPECT_EQ(lengthOf("interleaved", 3, 1, 12, 5), lengthOf("1f1b", 3, 1, 12, 5));
  EXPECT_EQ(lengthOf("interleaved", 1, 4, 12, 5), 3 * 12 * 5);
}

TEST(PipelineOrder, SaysWhichBlocksAChunkHas) {
  StageShape shape{0, 2, 1, {{0, 1}, {4, 6}}};
  Slots slots;
  appendForward(shape, 0, slots);
  appendBackward(shape, 0, slots);
  EXPECT_EQ(checkOrder(shape, slots), "");
  std::swap(slots[0], slots[1]);
  EXPECT_EQ(checkOrder(shape, slots),
            "slot 0 is F of block 4 on micro-batch 0, expected it after F of block 0 on micro-batch 0");
  slots[0].block = 1;
  EXPECT_EQ(checkOrder(shape, slots),
            "slot 0 is F of block 1 on micro-batch 0, expected blocks 0 to 0, 4 to 5");
}

/// Backward of a micro-batch may run before another's forward, and W at any time after B.
TEST(PipelineOrder, WeightGradientsMayComeLate) {
  Slots slots, late;
  for (int64_t m = 0; m < kShape.microBatches; ++m) {
    appendForward(kShape, m, slots);
    Slots backward;
    appendBackward(kShape, m, backward);
    for (const PipelineSlot &slot : backward)
      (slot.phase == Phase::B ? slots : late).push_back(slot);
  }
  slots.append(late);
  EXPECT_EQ(checkOrder(kShape, slots), "");
}

// Slots 0 to 5 are F of blocks 2 and 3, micro-batch by micro-batch; 6 to 9 are B and W of block 3, then of
// block 2, on micro-batch 0; 10 to 13 and 14 to 17 are the same on 1 and 2.
TEST(PipelineOrder, NamesTheSlotAtFault) {
  EXPECT_EQ(check([](Slots &) {}), "");
  EXPECT_EQ(check([](Slots &s) { s.pop_back(); }),
            "no slot is W of block 2 on micro-batch 2, expected each once");
  EXPECT_EQ(check([](Slots &s) { s.clear(); }),
            "no slot is F of block 2 on micro-batch 0, expected each once");
  EXPECT_EQ(check([](Slots &s) { s.push_back(s[3]); }),
            "slot 18 is F of block 3 on micro-batch 1, expected each once");
  EXPECT_EQ(check([](Slots &s) { s[4].block = 4; }),
            "slot 4 is F of block 4 on micro-batch 2, expected blocks 2 to 3");
  EXPECT_EQ(check([](Slots &s) { s[4].block = 1; }),
            "slot 4 is F of block 1 on micro-batch 2, expected blocks 2 to 3");
  EXPECT_EQ(check([](Slots &s) { s[4].microBatch = 3; }),
            "slot 4 is F of block 2 on micro-batch 3, expected micro-batches 0 to 2");
  EXPECT_EQ(check([](Slots &s) { s[4].microBatch = -1; }),
            "slot 4 is F of block 2 on micro-batch -1, expected micro-batches 0 to 2");
  EXPECT_EQ(check([](Slots &s) { s[4].phase = Phase::E; }),
            "slot 4 is E of block 2 on micro-batch 2, expected phases F, B and W");
  // F goes up, B down.
  EXPECT_EQ(check([](Slots &s) { std::swap(s[0], s[1]); }),
            "slot 0 is F of block 3 on micro-batch 0, expected it after F of block 2 on micro-batch 0");
  EXPECT_EQ(check([](Slots &s) { std::swap(s[6], s[8]); }),
            "slot 6 is B of block 2 on micro-batch 0, expected it after B of block 3 on micro-batch 0");
  // W follows its own B.
  EXPECT_EQ(check([](Slots &s) { std::swap(s[6], s[7]); }),
            "slot 6 is W of block 3 on micro-batch 0, expected it after B of block 3 on micro-batch 0");
  // B follows F of all blocks.
  EXPECT_EQ(check([](Slots &s) { std::rotate(s.begin() + 1, s.begin() + 6, s.begin() + 7); }),
            "slot 1 is B of block 3 on micro-batch 0, expected it after F of block 3 on micro-batch 0");
  // Each phase of a block ascends in micro-batches: sums are made in that order.
  EXPECT_EQ(check([](Slots &s) { std::swap(s[11], s[15]); }),
            "slot 11 is W of block 3 on micro-batch 2, expected it after W of block 3 on micro-batch 1");
  EXPECT_EQ(check([](Slots &s) { std::swap_ranges(s.begin() + 10, s.begin() + 14, s.begin() + 14); }),
            "slot 10 is B of block 3 on micro-batch 2, expected it after B of block 3 on micro-batch 1");
  EXPECT_EQ(check([](Slots &s) { std::swap_ranges(s.begin() + 2, s.begin() + 4, s.begin() + 4); }),
            "slot 2 is F of block 2 on micro-batch 2, expected it after F of block 2 on micro-batch 1");
}

static const char *const kModule = R"mlir(
module attributes {dsopt.options = {pp = 2 : i64, micro_batches = 2 : i64}} {
  dist.grid @grid [pp = 2, edp = 1, ep = 1, sp = 1, tp = 1]
  func.func private @block0.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>}
  func.func private @block0.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 0 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<B>}
  func.func private @block1.F(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<F>}
  func.func private @block1.B(memref<4xf32> {exec.access = #exec.access<read>}, memref<f32> {exec.access = #exec.access<read>}, memref<4xf32> {exec.access = #exec.access<write>}) attributes {exec.segment, dist.stage = 1 : i64, graph.block = 1 : i64, graph.phase = #graph.phase<B>}
  func.func @micro_batch(%x: tensor<4xf32> {graph.name = "x"}, %seed: tensor<f32> {graph.name = "seed", graph.seed}) -> tensor<f32> {
    %h0 = graph.run @block0.F(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %h1 = graph.run @block1.F(%h0) : (tensor<4xf32>) -> tensor<f32>
    %g1 = graph.run @block1.B(%h0, %seed) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %g0 = graph.run @block0.B(%x, %g1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %h1 : tensor<f32>
  }
})mlir";

static const char *const kBlocks = R"mlir(
module attributes {dsopt.options = {pp = 2 : i64, micro_batches = 2 : i64}} {
  func.func private @block0.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    return %x : tensor<4xf32>
  }
  func.func private @block1.F(%x: tensor<4xf32>) -> tensor<4xf32> attributes {graph.block = 1 : i64, graph.phase = #graph.phase<F>} {
    return %x : tensor<4xf32>
  }
})mlir";

/// What a pass says of a module under a schedule.
static std::string build(const std::string &schedule, const std::string &pass = "order-pipeline",
                         const char *source = kModule) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { text += diagnostic.str(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  bool ran =
      module && succeeded(runPipeline(*module, "builtin.module(" + pass + "{schedule=" + schedule + "})"));
  EXPECT_NE(ran, !text.empty());
  return text;
}

TEST(PipelineOrder, IsCheckedBeforeProgramsAreBuilt) {
  registerAllPasses();
  registerPipelineOrder("swapped", [](const StageShape &shape) {
    Slots slots = getPipelineOrder("gpipe")(shape);
    if (shape.stage == 1)
      std::swap(slots[0], slots[1]);
    return slots;
  });
  EXPECT_EQ(build("gpipe"), "");
  EXPECT_EQ(build("swapped"),
            "schedule swapped, stage 1: slot 0 is F of block 1 on micro-batch 1, expected it "
            "after F of block 1 on micro-batch 0");
  // Each stage's order is right by itself.
  registerPipelineOrder("stuck", [](const StageShape &shape) {
    Slots slots;
    for (int64_t m : {0, 1}) {
      appendForward(shape, m, slots);
      if (shape.stage == 0)
        appendBackward(shape, m, slots);
    }
    for (int64_t m : {0, 1})
      if (shape.stage == 1)
        appendBackward(shape, m, slots);
    return slots;
  });
  EXPECT_EQ(build("stuck"), "schedule stuck: stages wait for each other: stage 0 at slot 1, B of block 0 on "
                            "micro-batch 0; stage 1 at slot 1, F of block 1 on micro-batch 1");
  EXPECT_EQ(build("none"), "schedule is \"none\", expected one of 1f1b, gpipe, interleaved, stuck, swapped");
}

TEST(PipelineOrder, ChunksAreCheckedBeforeBlocksAreCut) {
  registerAllPasses();
  auto cut = [](SmallVector<int64_t> stages) {
    registerPipelineSchedule(
        "mapped",
        {[](const StageShape &) { return Slots(); }, {}, [=](int64_t, ArrayRef<int64_t>) { return stages; }});
    return build("mapped", "declare-grid,split-stages", kBlocks);
  };
  EXPECT_EQ(cut({0, 2}), "schedule mapped has a chunk at stage 2, expected stages 0 to 1");
  EXPECT_EQ(cut({0, 0}), "schedule mapped has no chunk at stage 1 of 2");
  EXPECT_EQ(cut({0, 1, 0}), "cannot cut 2 blocks into the 3 chunks that schedule mapped has on 2 pipeline "
                            "stages: fewer chunks or stages (-pp) are needed");
  EXPECT_EQ(cut({1, 0}), "");
}
