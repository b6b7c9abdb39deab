//===- Passes.td - stage 4: where everything lives --------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_PARALLEL_PASSES
#define DSOPT_TRANSFORMS_PARALLEL_PASSES

include "mlir/Pass/PassBase.td"

def DeclareGrid : Pass<"declare-grid", "::mlir::ModuleOp"> {
  let summary = "say which axes ranks lie along, and how many there are along each";
  let description = [{
    Writes `dist.grid` with the sizes that are asked for, unless the module has a grid. From here on
    degrees of parallelism are the grid's: no pass asks an option for one.

    ```mlir
    module attributes {dsopt.options = {dp = 4 : i64, pp = 2 : i64}} {
    // becomes
    module attributes {dsopt.options = {dp = 4 : i64, pp = 2 : i64}} {
      dist.grid @grid [pp = 2, edp = 4, ep = 1, sp = 1, tp = 1]
    ```
  }];
  let options = [
    Option<"positions", "pp", "int64_t", "0", "pipeline stages (0: as dsopt.options says, else 1)">,
    Option<"ranks", "dp", "int64_t", "0", "data-parallel ranks (0: as dsopt.options says, else 1)">];
  let dependentDialects = ["::dsopt::dist::DistDialect"];
}

def SplitStages : Pass<"split-stages", "::mlir::ModuleOp"> {
  let summary = "cut the blocks into pipeline stages of balanced cost";
  let description = [{
    Input: block functions (`graph.block`, `graph.phase`). Output: the same with
    `dist.stage`. Stages are runs of blocks; the largest cost of a stage is
    minimal, where a block's cost is its share of all flops plus its share of all
    parameter bytes. An equal cost is cut as early as possible. The number of
    stages is that of the grid's positions.

    A schedule may have several such runs, chunks, at a stage (see PipelineOrder.h):
    then chunks are what is balanced, and `dist.chunk` says which one a block is of.

    ```mlir
    func.func private @block1.F(...) attributes {graph.block = 1, graph.phase = #graph.phase<F>}
    // becomes, with two stages of three blocks
    func.func private @block1.F(...) attributes {dist.stage = 0, graph.block = 1, graph.phase = #graph.phase<F>}
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"", "whose chunks blocks are cut into (empty: as dsopt.options says, else 1f1b)">];
  let dependentDialects = ["::dsopt::dist::DistDialect"];
}

def PartitionZero : Pass<"partition-zero", "::mlir::ModuleOp"> {
  let summary = "put parameters and their state into buckets, cut into one slice a rank";
  let description = [{
    Input: block functions that read parameters, `graph.state`s. Output: one
    `dist.bucket` for the trainable and one for the frozen parameters of each
    block, and one for each parameter that several blocks share. Parameters keep
    the model's order and start at multiples of 64 elements, at places that do
    not depend on the number of ranks; only the padding at the end does
    (Rajbhandari et al., ZeRO, section 5: stage 1 slices optimizer state, 2
    gradients too, 3 parameters too). One rank is stage 0. Running statistics
    (`graph.statistic`) are apart and whole at every stage.

    At stage 3 parameters of `param-persistence-threshold` elements and fewer are in buckets of stage 2:
    whole on every rank between steps, and gathered once, behind their update. Where a bucket would have
    more elements than `reduce-bucket-size` or `gather-bucket-size` (whichever collectives it has), a block
    has several; a parameter that has more itself is a bucket of its own, and a warning says so.

    ```mlir
    graph.parameter @w : tensor<10x10xf32> from "model.onnx" at 0 bytes 400
    // becomes, with stage=3 and two ranks along edp
    dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 100>] elements 128 padded 128 over [edp, ep, sp] zero 3
    ```
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "-1", "ZeRO stage 0 to 3 (-1: as dsopt.options says)">,
    Option<"persistenceThreshold", "param-persistence-threshold", "int64_t", "-1", "elements of a parameter that stays whole at stage 3 (-1: as dsopt.options says, else 0)">,
    Option<"reduceBucketSize", "reduce-bucket-size", "int64_t", "0", "elements that are reduced at once (0: as dsopt.options says, else any number)">,
    Option<"gatherBucketSize", "gather-bucket-size", "int64_t", "0", "elements that are gathered at once (0: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::dist::DistDialect"];
}

def PlaceCollectives : Pass<"place-collectives", "::mlir::ModuleOp"> {
  let summary = "gather what a block reads, release it, reduce its gradients";
  let description = [{
    Input: `dist.bucket`s, block functions and the functions that run them. Output: parameters of
    which a rank holds a slice are no longer read in blocks. They are arguments behind the others,
    and each run gets them from a `dist.gather` in front of it, with the `dist.release` behind.
    What several ranks add up is taken by a `dist.reduce` behind the last run that adds to it, one
    for each use of a bucket. What is whole on every rank needs neither.

    ```mlir
    %y = graph.run @block0.F(%x) : (tensor<4x8xf32>) -> tensor<4x10xf32>
    graph.run @block0.W(%x, %dy) : ...
    // becomes
    %w = dist.gather @b0 [@w] over [edp, ep, sp] : tensor<8x10xf32>
    %y = graph.run @block0.F(%x, %w) : (tensor<4x8xf32>, tensor<8x10xf32>) -> tensor<4x10xf32>
    dist.release %w : tensor<8x10xf32>
    graph.run @block0.W(%x, %dy) : ...
    dist.reduce @b0 use 0 of [@w.grad.0] over [edp, ep, sp] as f32
    ```
  }];
  let dependentDialects = ["::dsopt::dist::DistDialect"];
}

def VerifyDist : Pass<"verify-dist", "::mlir::ModuleOp"> {
  let summary = "what holds after stage 4";
  let description = [{
    Every block function has a stage, stages (or chunks, each at one stage) ascend with blocks; every parameter that a block
    reads or is given lies in exactly one bucket, which lists the block; what ranks hold slices of
    comes from a gather, which serves runs of one stage up to its one release; every gradient that
    several ranks add up is reduced once, behind the last run that adds to it.
  }];
}

#endif // DSOPT_TRANSFORMS_PARALLEL_PASSES
