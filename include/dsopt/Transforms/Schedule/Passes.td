//===- Passes.td - stage 6: when it runs ------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_SCHEDULE_PASSES
#define DSOPT_TRANSFORMS_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def BuildPrograms : Pass<"build-programs", "::mlir::ModuleOp"> {
  let summary = "write one program of actions on streams for each pipeline position";
  let description = [{
    Input: segments (functions of memrefs with `exec.segment`, their arguments
    marked with `exec.access`, `exec.parameter`, `exec.gradient`,
    `exec.constant`) with `dist.stage`, `@micro_batch` that calls them with
    `graph.run` and has the collectives among its runs, `dist.bucket`s, and `@update`. Output: one `exec.program` a
    stage with its buffers (not yet placed) and its whole schedule; the module
    attribute `exec.inputs` keeps the graph's inputs; `@micro_batch` and
    `@update` are gone.

    The order of block phases is that of the named schedule (see
    PipelineOrder.h: GPipe, Huang et al. 2019; 1F1B, Narayanan et al. 2019).
    Everything else follows from it: values hop between neighbouring stages, each
    `dist.gather` is done for a window of micro-batches, one run ahead, and kept to
    its release; each `dist.reduce` ends the canonical tree of its gradient, shared
    parameters are added and updated at their owner, all ranks agree, updates
    run. Results of `@micro_batch` behind the loss are contributions to running
    statistics: they are kept for all micro-batches, gathered over the data-parallel
    ranks and folded after the agreement. A wait is written wherever an action needs another stream's.

    ```mlir
    %0 = graph.run @block0.F(%x) : (tensor<8x64xf32>) -> tensor<8x128xf32>
    // becomes, for each micro-batch at position 0
    %1 = exec.input "x" to <@input.x> micro_batch 0 on compute
    %2 = exec.run @block0.F [#exec.ref<@input.x>, #exec.ref<@block0.F.0>, #exec.ref<@b0.param>] micro_batch 0 on compute
    exec.wait %2 on send
    %3 = exec.send <@block0.F.0> bytes 4096 to 1 tag "block0.F.0:0" "send_recv" on send
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "gpipe or 1f1b (empty: as dsopt.options says)">,
    Option<"microBatches", "micro-batches", "int64_t", "0", "micro-batches a rank (0: as dsopt.options says)">,
    Option<"gatherWindow", "gather-window", "int64_t", "0", "micro-batches a gather serves (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::dsopt::dist::DistDialect"];
}

def DedupeSegments : Pass<"dedupe-segments", "::mlir::ModuleOp"> {
  let summary = "make equal segments one function";
  let description = [{
    Input: segments and programs that run them. Output: the same without those
    segments that are equal to an earlier one in types, accesses and operations;
    which parameter an argument is does not count, since a run names its buffers.
    Blocks of equal structure are so compiled once; a run that lost its own
    segment says which block and phase it is of.

    ```mlir
    %3 = exec.run @block3.F [#exec.ref<@h>, #exec.ref<@b3.param>] micro_batch 0 on compute
    // becomes
    %3 = exec.run @block1.F [#exec.ref<@h>, #exec.ref<@b3.param>] micro_batch 0 on compute block 3 F
    ```
  }];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every buffer its place in the arena";
  let description = [{
    Input: programs whose buffers have no offsets. Output: offsets, the arena's
    size, the bound no plan can beat, `exec.memory` (live bytes by class at the
    peak) and `exec.traffic` (bytes one rank sends in a step). Two buffers share
    bytes only where each use of one is complete before the next of the other
    starts, by streams and waits. Several packing orders are tried, the smallest
    arena is kept. An arena above the budget is an error that says what would fit.

    ```mlir
    exec.buffer @b0.full : memref<8320xf32> "buffers" slots 1 stride 33280
    // becomes
    exec.buffer @b0.full at 16640 : memref<8320xf32> "buffers" slots 1 stride 33280
    ```
  }];
  let options = [Option<"budget", "budget", "int64_t", "0", "bytes a rank may use (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def VerifyExec : Pass<"verify-exec", "::mlir::ModuleOp"> {
  let summary = "refuse programs that race, overlap, mismatch, deadlock or leave something out";
  let description = [{
    What holds after stage 6, recomputed from the programs alone. In each
    program: addresses lie in their buffers and buffers in the arena; conflicting
    accesses of different streams are ordered by waits; what is read was wholly
    written, on every rank that reads it, and what is written is read; no gradient
    is lost or added twice; buffers that share bytes are never alive together;
    collectives ascend in order on one stream; every gradient is reduced before
    the agreement. Between programs: sends and receives match in order, tag, bytes
    and traffic; all agree once; and with rendezvous transfers that buffer nothing
    no position waits for ever. In all of them together: each phase of each block
    runs once on each micro-batch whose loss is agreed on, W after B after F and
    gradients in ascending order of micro-batches; each trained bucket has one norm
    and one update, at the position of its first block.
  }];
}

#endif // DSOPT_TRANSFORMS_SCHEDULE_PASSES
