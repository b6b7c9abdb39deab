//===- Passes.td - from training's graph to one that generates --*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_GENERATE_PASSES
#define DSOPT_TRANSFORMS_GENERATE_PASSES

include "mlir/Pass/PassBase.td"

def KeepLogits : Pass<"keep-logits", "::mlir::ModuleOp"> {
  let summary = "return what the loss compares with labels instead of the loss";
  let description = [{
    Input: `@forward` as it was imported, for one sequence. The logits are what the cross-entropy of the most
    classes (`graph.nll`) is of, before rows are left out of them or merged. Output: `@forward` returns them, `[1, T,
    classes]`, as a prediction called `logits`. Arguments that nothing reads then, labels, are gone.

    ```mlir
    func.func @forward(%ids: tensor<1x8xi64>, %labels: tensor<1x8xi64>) -> tensor<f32>
    // becomes
    func.func @forward(%ids: tensor<1x8xi64>) -> (tensor<1x8x512xf32> {graph.prediction = "logits"})
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def DeriveDecoding : Pass<"derive-decoding", "::mlir::ModuleOp"> {
  let summary = "make of a function of sequences one of rows that are positions of sequences";
  let description = [{
    Input: `@evaluate` of one sequence, with one result that has a row for each position, and the option `rows`: how
    many the program is given at a time. From the arguments with a number for each position time is followed by
    place, never by size. Each operation is one of these: rows are by themselves, by the loops that it says
    (ShardingInterface); it is a function of positions, of constants and parameters alone, which is taken at the rows'
    own; or it mixes positions by a rule (SequenceOpInterface), which is proved to be causal and keeps in caches what
    later positions read of earlier ones. Anything else is an error that names it.

    Output: `@evaluate` of `tokens [1, rows]`, `positions [rows]`, `slots [rows]` and `picks [picks]`, which returns
    the rows that are picked. A row whose slot is -1 is none.

    ```mlir
    %y = graph.attention %q, %k, %v {causal, scale} : (tensor<1x4x64x16xf32>, ...) -> ...
    // becomes, with rows 8, 2 slots and the sequence's length
    graph.cache @cache.0 : tensor<2x4x64x16xf32>
    graph.cache @cache.1 : tensor<2x4x64x16xf32>
    %y = graph.cached_attention %q, %k, %v, %slots, %positions in @cache.0, @cache.1 {scale} : (tensor<1x4x8x16xf32>, ...) -> ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
  let options = [
    Option<"rows", "rows", "int64_t", /*default=*/"0", "rows of a run; 0: the module's option chunk">,
    Option<"sequences", "slots", "int64_t", /*default=*/"0", "sequences that are kept; 0: the module's option max_batch">];
}

#endif // DSOPT_TRANSFORMS_GENERATE_PASSES
