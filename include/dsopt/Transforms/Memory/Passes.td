//===- Passes.td - stage 5: what fits ---------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_MEMORY_PASSES
#define DSOPT_TRANSFORMS_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def MergeVariants : Pass<"merge-variants", "::mlir::ModuleOp"> {
  let summary = "make programs of several sizes of a dimension one";
  let description = [{
    Expects, as nested modules with `exec.variant`, the same model with smaller sizes of
    the module's dimension, each up to its buckets. Their blocks, kernels and runs move
    into the module under names of their own, and the functions of runs keep the size as
    `exec.variant`: from here on they share parameters, state and arena, and a step runs
    the smallest that its micro-batches fit. A size at which the model is
    cut into other blocks of parameters is an error.

    ```mlir
    func.func @micro_batch(...) {...}
    module attributes {exec.variant = 16 : i64} {
      func.func @micro_batch(...) {...}
    }
    // becomes
    func.func @micro_batch(...) {...}
    func.func @micro_batch.16(...) attributes {exec.variant = 16 : i64} {...}
    ```
  }];
}

def OffloadOptimizer : Pass<"offload-optimizer", "::mlir::ModuleOp"> {
  let summary = "keep what the optimizer keeps in the host's memory, or on disk";
  let description = [{
    Input: blocks and buckets. Output: buckets whose optimizer state, and master of parameters, is
    `kept in host`, where updates then run, or `in disk`, from where they are brought there
    (offload-updates). Of each pipeline stage's parameters the
    share `ratio` stays on the device, that of its first blocks: their gradients are the last.

    ```mlir
    dist.bucket @b0 : f32 of [0] [...] ... zero 2 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>]
    // becomes
    dist.bucket @b0 : f32 of [0] [...] ... zero 2 states [#dist.state<"m" : f32>, #dist.state<"v" : f32>] kept in host
    ```
  }];
  let options = [
    Option<"to", "to", "std::string", "", "none, cpu or nvme (empty: as dsopt.options says, else none)">,
    Option<"ratio", "ratio", "std::string", "", "share of updates that stays on the device, 0 to 1 (empty: as dsopt.options says, else 0)">];
}

def OffloadParameters : Pass<"offload-parameters", "::mlir::ModuleOp"> {
  let summary = "keep parameters in the host's memory, or on disk";
  let description = [{
    Input: buckets. Output: those that are partitioned by stage 3 lie `in host` or `in disk`, so that blocks
    read what a gather yields, on one rank too (offload-gathers). What several pipeline stages share stays.

    ```mlir
    dist.bucket @b0 : f32 of [0] [...] elements 128 padded 128 over [edp, ep, sp] zero 3
    // becomes
    dist.bucket @b0 : f32 of [0] [...] elements 128 padded 128 over [edp, ep, sp] zero 3 in host
    ```
  }];
  let options = [Option<"to", "to", "std::string", "", "none, cpu or nvme (empty: as dsopt.options says, else none)">];
}

def Recompute : Pass<"recompute", "::mlir::ModuleOp"> {
  let summary = "compute values again in backward in place of keeping them";
  let description = [{
    Input: blocks and buckets. Output: blocks whose backward calls kernels and products of their
    forward again, on what forward still returns: the same bits in fewer bytes. What is kept is the
    smallest cut of a block at a price of a flop in bytes. With `mode=full` a flop costs next to
    nothing. With `mode=auto` the price is the highest at which a step fits the budget
    (`device_memory`), by asking the planner (Planner.h), for each stage, and within it for its first
    blocks before its last. Weights that backward then reads are gathered for it.

    ```mlir
    %0:3 = graph.run @block0.F(%x)                  // returns tanh's operand, tanh and y
    %1 = graph.run @block0.B(%0#0, %0#1, %dy)
    // becomes, with tanh in @block0.B
    %0:2 = graph.run @block0.F(%x)
    %1 = graph.run @block0.B(%0#0, %dy)
    ```
  }];
  let options = [Option<"mode", "mode", "std::string", "", "none, full or auto (empty: as dsopt.options says, else none)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

def ChooseGatherWindow : Pass<"choose-gather-window", "::mlir::ModuleOp"> {
  let summary = "let as many micro-batches share a gather as the budget allows";
  let description = [{
    Input: blocks and buckets. Output: the option `gather_window` of
    `dsopt.options`, where it was absent or 0. Under ZeRO-3 with a budget
    (`device_memory`) it is the largest number of micro-batches with which the
    planned arena fits: bytes held are traded for bytes moved. It is found by
    bisection, by asking the planner (Planner.h). Without a budget, or if
    nothing fits (then planning says so), it is 1. What memory it leaves goes to `max_reuse_distance`, the
    largest that fits, unless the predicted step would be longer. Where that is given, it says what
    stays whole: the window is 1, and the distance is lowered until the arena fits.

    ```mlir
    module attributes {dsopt.options = {device_memory = 100000 : i64, micro_batches = 4 : i64, ...}}
    // becomes
    module attributes {dsopt.options = {device_memory = 100000 : i64, gather_window = 2 : i64, ...}}
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

def ChoosePrefetch : Pass<"choose-prefetch", "::mlir::ModuleOp"> {
  let summary = "start gathers as far ahead as the budget allows and a step gains from";
  let description = [{
    Input: blocks and buckets. Output: the option `prefetch` of `dsopt.options`, where it was absent.
    Under ZeRO-3 with a budget (`device_memory`) the planner (Planner.h) is asked about one run ahead
    after the other: the last that fits, and with which the predicted step is shorter than with the one
    before, is chosen. Where the next would pay and does not fit, gathers start early beside those runs alone
    that leave room: `prefetch_memory` is the number of bytes up to which they do, in 32nds of the budget.
    Without a budget `prefetch` is 1.

    ```mlir
    module attributes {dsopt.options = {device_memory = 100000 : i64, micro_batches = 4 : i64, ...}}
    // becomes
    module attributes {dsopt.options = {device_memory = 100000 : i64, prefetch = 2 : i64, ...}}
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

#endif // DSOPT_TRANSFORMS_MEMORY_PASSES
