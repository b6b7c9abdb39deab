//===- Passes.td - the order of runs and transfers --------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_ORDER_PASSES
#define DSOPT_TRANSFORMS_ORDER_PASSES

include "mlir/Pass/PassBase.td"

def OrderPipeline : Pass<"order-pipeline", "::mlir::ModuleOp"> {
  let summary = "write one program of runs, transfers and collectives for each pipeline position";
  let description = [{
    Input: segments (functions of memrefs with `exec.segment`, their arguments marked with
    `exec.access`, `exec.parameter`, `exec.gradient`, `exec.constant`) with `dist.stage`,
    `@micro_batch` or `@evaluate` that calls them with `graph.run` and has the collectives among its
    runs, and `dist.bucket`s. Output: one `exec.program` a stage with its buffers (not yet placed)
    and a schedule in which the function is run once for each micro-batch: inputs, runs, sends and
    receives, each `dist.gather` with its end (`exec.release`) and each `dist.reduce` on each
    micro-batch, and at the end the agreement on the losses that the function returns. Its other
    results are contributions to running statistics: they are kept for all micro-batches, gathered
    over the data-parallel ranks and folded. The module attribute `exec.inputs` keeps the graph's
    inputs; the function is gone.

    The order of block phases is that of the named schedule (see PipelineOrder.h: GPipe, Huang et
    al. 2019; 1F1B, Narayanan et al. 2019; interleaved, Narayanan et al. 2021). Values hop between
    the stages of neighbouring chunks, unless the stage has them already. With one rank
    a run adds to the accumulators themselves. What an action has to wait for is not said yet.

    ```mlir
    %p = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<64x128xf32>
    %0 = graph.run @block0.F(%x, %p) : (tensor<8x64xf32>, tensor<64x128xf32>) -> tensor<8x128xf32>
    dist.release %p : tensor<64x128xf32>
    // becomes, for each micro-batch at position 0
    %1 = exec.input "x" to @input.x micro_batch 0 on @compute
    %2 = exec.gather @b0.param to @b0.full bytes 16384 all_gather order 0 on @comm
    %3 = exec.run @block0.F [@input.x, @b0.full, @block0.F.0] micro_batch 0 on @compute
    exec.release %2
    %4 = exec.send @block0.F.0 bytes 4096 to 1 tag "block0.F.0" micro_batch 0 send_recv on @send
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b, interleaved or one that a plugin registers (empty: as dsopt.options says)">,
    Option<"microBatches", "micro-batches", "int64_t", "0", "micro-batches a rank (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::dsopt::dist::DistDialect"];
}

#endif // DSOPT_TRANSFORMS_ORDER_PASSES
