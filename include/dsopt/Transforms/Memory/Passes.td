//===- Passes.td - stage 5: what fits ---------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_MEMORY_PASSES
#define DSOPT_TRANSFORMS_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def ChooseGatherWindow : Pass<"choose-gather-window", "::mlir::ModuleOp"> {
  let summary = "let as many micro-batches share a gather as the budget allows";
  let description = [{
    Input: blocks and buckets. Output: the option `gather_window` of
    `dsopt.options`, where it was absent or 0. Under ZeRO-3 with a budget
    (`device_memory`) it is the largest number of micro-batches with which the
    planned arena fits: bytes held are traded for bytes moved. It is found by
    bisection, by asking the planner (Planner.h). Without a budget, or if
    nothing fits (then planning says so), it is 1.

    ```mlir
    module attributes {dsopt.options = {device_memory = 100000 : i64, micro_batches = 4 : i64, ...}}
    // becomes
    module attributes {dsopt.options = {device_memory = 100000 : i64, gather_window = 2 : i64, ...}}
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

#endif // DSOPT_TRANSFORMS_MEMORY_PASSES
