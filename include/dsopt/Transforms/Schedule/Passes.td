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
    `dist.gather` is done for a window of micro-batches and kept to its release; each `dist.reduce` ends the canonical tree of its gradient, shared
    parameters are added and updated at their owner, all ranks agree, updates
    run. Results of `@micro_batch` behind the loss are contributions to running
    statistics: they are kept for all micro-batches, gathered over the data-parallel
    ranks and folded after the agreement. What an action has to wait for
    is not said yet.

    ```mlir
    %0 = graph.run @block0.F(%x) : (tensor<8x64xf32>) -> tensor<8x128xf32>
    // becomes, for each micro-batch at position 0
    %1 = exec.input "x" to <@input.x> micro_batch 0 on compute
    %2 = exec.run @block0.F [#exec.ref<@input.x>, #exec.ref<@block0.F.0>, #exec.ref<@b0.param>] micro_batch 0 on compute
    %3 = exec.send <@block0.F.0> bytes 4096 to 1 tag "block0.F.0:0" "send_recv" on send
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b or one that a plugin registers (empty: as dsopt.options says)">,
    Option<"microBatches", "micro-batches", "int64_t", "0", "micro-batches a rank (0: as dsopt.options says)">,
    Option<"gatherWindow", "gather-window", "int64_t", "0", "micro-batches a gather serves (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::dsopt::dist::DistDialect"];
}

def PrefetchGathers : Pass<"prefetch-gathers", "::mlir::ModuleOp"> {
  let summary = "start gathers some runs ahead of the run that needs them";
  let description = [{
    Input: programs in which whole parameters are gathered right in front of a run. Output: each
    such gather stands behind the run that is `distance` runs further ahead, and starts when that
    run is complete; never in front of a run that still needs what the buffer holds. Collectives are
    numbered anew.

    ```mlir
    %0 = exec.run @block0.F ...
    %1 = exec.run @block1.F ...
    %2 = exec.gather <@b2.param> to <@b2.full> ...
    %3 = exec.run @block2.F [... #exec.ref<@b2.full>] ...
    // becomes, with distance=1
    %0 = exec.run @block0.F ...
    exec.wait %0 on comm
    %2 = exec.gather <@b2.param> to <@b2.full> ...
    %1 = exec.run @block1.F ...
    %3 = exec.run @block2.F [... #exec.ref<@b2.full>] ...
    ```
  }];
  let options = [Option<"distance", "distance", "int64_t", "-1", "runs ahead (-1: as dsopt.options says, else 1)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def ThrottleReductions : Pass<"throttle-reductions", "::mlir::ModuleOp"> {
  let summary = "bound the gradients that are on their way";
  let description = [{
    Input: programs. Output: a run that writes a gradient to be reduced waits for the
    `in-flight`-last reduction before it, so that the bytes of the one before that are free.

    ```mlir
    exec.wait %r0 on compute                       // new, with in-flight=2 and reductions %r0, %r1
    %3 = exec.run @block0.W [... #exec.ref<@b0.whole.0.0>] ...
    ```
  }];
  let options = [Option<"inFlight", "in-flight", "int64_t", "0", "reductions (0: as dsopt.options says, else 2)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def InsertWaits : Pass<"insert-waits", "::mlir::ModuleOp"> {
  let summary = "write the waits that actions need, from what they read and write alone";
  let description = [{
    Input: programs whose actions stand in an order that is right if all ran one after the other.
    Output: the same with an `exec.wait` wherever an action touches bytes that an earlier action of
    another stream writes, or writes bytes that one reads, unless other waits imply it. Waits that
    are there stay if they say something new.

    ```mlir
    %0 = exec.run @block0.F [#exec.ref<@input.x>, #exec.ref<@block0.F.0>] micro_batch 0 on compute
    exec.wait %0 on send                           // new
    %1 = exec.send <@block0.F.0> bytes 4096 to 1 tag "block0.F.0:0" "send_recv" on send
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def DedupeSegments : Pass<"dedupe-segments", "::mlir::ModuleOp"> {
  let summary = "make equal segments one function";
  let description = [{
    Input: segments and programs that run them. Output: the same without those
    segments that are equal to an earlier one in types, accesses and operations;
    which parameter an argument is does not count, since a run names its buffers.
    Blocks of equal structure are so compiled once; runs say which they are for.

    ```mlir
    exec.run @block3.F [...] micro_batch 0 on compute
    // becomes, where block 1 is equal
    exec.run @block1.F for <3 F> [...] micro_batch 0 on compute
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
    arena is kept. An arena above the budget is an error that says what may fit, by estimate.

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
