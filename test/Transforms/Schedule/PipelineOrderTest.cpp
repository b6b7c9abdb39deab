//===- PipelineOrderTest.cpp - which orders of a stage can be run ---------===//

#include "dsopt/Transforms/Schedule/PipelineOrder.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dsopt;
using namespace mlir;
using Slots = llvm::SmallVector<PipelineSlot>;

/// Blocks 2 and 3 of the second of three stages, on three micro-batches.
static const StageShape kShape{1, 3, 3, 2, 4};

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
            StageShape shape{stage, stages, microBatches, 7, 7 + blocks};
            EXPECT_EQ(checkOrder(shape, getPipelineOrder(name)(shape)), "") << name;
          }
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

/// What order-pipeline says of the module under a schedule.
static std::string build(const std::string &schedule) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { text += diagnostic.str(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kModule, &context);
  bool ran =
      module && succeeded(runPipeline(*module, "builtin.module(order-pipeline{schedule=" + schedule + "})"));
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
  EXPECT_EQ(build("none"), "schedule is \"none\", expected one of 1f1b, gpipe, swapped");
}
