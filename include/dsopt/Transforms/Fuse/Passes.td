//===- Passes.td - stage 3: kernels and blocks ------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_FUSE_PASSES
#define DSOPT_TRANSFORMS_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def FormBlocks : Pass<"form-blocks", "::mlir::ModuleOp"> {
  let summary = "outline each phase of each block as a function";
  let description = [{
    Input: `@micro_batch`, every operation with `graph.block` and `graph.phase`;
    kernels are formed already. Output: a private function `@blockK.P` for each
    block K and phase P that has operations, and `@micro_batch` as a list of
    `graph.run`: all F from the first block to the last, then B and W of each block
    from the last to the first.

    A reshape crosses as the value that it reshapes and is reshaped again by its
    reader; constants and reads are made where they are used. So no function
    returns a value twice, or one of its arguments. A function's arguments are in
    order of their first use, its results in order of their definition; operations
    inside lose `graph.block` and `graph.phase`. Where the loss itself is a reshape,
    `@micro_batch` returns the value that it reshapes.

    ```mlir
    func.func @micro_batch(%x: tensor<8x4xf32>, ...) -> tensor<f32> {
      %w = graph.read @w {graph.block = 0, graph.phase = "F"} : tensor<4x2xf32>
      %y = graph.matmul %x, %w {graph.block = 0, graph.phase = "F"} : ...
      %z = graph.neg %y {graph.block = 1, graph.phase = "F"} : ...
      ...
    // becomes
    func.func private @block0.F(%x: tensor<8x4xf32>) -> tensor<8x2xf32>
        attributes {graph.block = 0 : i64, graph.phase = "F"} {
      %w = graph.read @w : tensor<4x2xf32>
      %y = graph.matmul %x, %w : ...
      return %y : tensor<8x2xf32>
    }
    func.func @micro_batch(%x: tensor<8x4xf32>, ...) -> tensor<f32> {
      %y = graph.run @block0.F(%x) : (tensor<8x4xf32>) -> tensor<8x2xf32>
      %z = graph.run @block1.F(%y) : ...
      ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

#endif // DSOPT_TRANSFORMS_FUSE_PASSES
