//===- Passes.td - stage 3: kernels and blocks ------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_FUSE_PASSES
#define DSOPT_TRANSFORMS_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def RaiseConvolutions : Pass<"raise-convolutions", "::mlir::ModuleOp"> {
  let summary = "products of windows as convolutions of a device's library";
  let description = [{
    Input: a graph whose gradients are built, with a target. For a host nothing is done. For a
    device, a product of the elements under windows with a weight, its gradient with respect to the
    weight, and sums of windows of a product become `graph.convolution`, where the table of
    algorithms (Runtime/Convolution.h) has one for shape and type; the rest stay products.
    `precision` is the option's. Padding that is not alike before and behind is an operation of its
    own before the convolution.

    ```mlir
    %c = graph.windows %x {axis = 1 : i64, counts = array<i64: 5>, kernel = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, lows = array<i64: 1>, value = 0.0 : f32} : (tensor<2x5x4xf32>) -> tensor<2x5x3x4xf32>
    %m = graph.reshape %c : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
    %y = graph.matmul %m, %w {transpose_b} : (tensor<10x12xf32>, tensor<8x12xf32>) -> tensor<10x8xf32>
    // becomes
    %t = graph.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
    %r = graph.reshape %w : (tensor<8x12xf32>) -> tensor<8x3x4xf32>
    %v = graph.transpose %r {perm = array<i64: 0, 2, 1>} : (tensor<8x3x4xf32>) -> tensor<8x4x3xf32>
    %z = graph.convolution forward %t, %v {strides = array<i64: 1>, dilations = array<i64: 1>, pads = array<i64: 1>, groups = 1 : i64} : (tensor<2x4x5xf32>, tensor<8x4x3xf32>) -> tensor<2x8x5xf32>
    %l = graph.transpose %z {perm = array<i64: 0, 2, 1>} : (tensor<2x8x5xf32>) -> tensor<2x5x8xf32>
    %y = graph.reshape %l : (tensor<2x5x8xf32>) -> tensor<10x8xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "", "fp32 or bf16">];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseEpilogues : Pass<"raise-epilogues", "::mlir::ModuleOp"> {
  let summary = "products take in biases, those of a device GELU too";
  let description = [{
    Input: a graph whose gradients are built, with a target. What follows a product of two
    matrices that is added up in one piece becomes the epilogue of a `graph.matmul_epilogue`,
    where that saves a pass over the result, by shapes and types alone. For a host that is the
    first of these, where products have kernels (compile-products) and the weight is too small
    for tiles (tile-products), which have the bits of a whole one:

    - a bias, a parameter with a value for each column, where routines read the sum;
    - a bias and GELU by tanh in bf16 and fp16, where routines read the result. The product keeps the
      sum where backward reads it; what backward takes of GELU itself is computed again from that;
    - the slope of such a GELU, which backward multiplies a product by.

    ```mlir
    %s = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
    %a = graph.add %s, %b : (tensor<8x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %z = graph.matmul %a, %v : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    // becomes
    %a = graph.matmul_epilogue bias %x, %w, %b : (tensor<8x64xf32>, tensor<64x32xf32>, tensor<32xf32>) -> tensor<8x32xf32>
    %z = graph.matmul %a, %v : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def DecomposeComposites : Pass<"decompose-composites", "::mlir::ModuleOp"> {
  let summary = "replace composite operations by primitive ones";
  let description = [{
    Input: a graph whose gradients are built. Output: the same without operations
    that have a decomposition (softmax, gelu, silu, layer_norm, rms_norm, nll, reduce_mean). The
    primitives inherit `graph.block` and `graph.phase`.

    ```mlir
    %y = graph.reduce_mean %x {axes = array<i64: 1>, keepdims} : (tensor<8x4xf32>) -> tensor<8x1xf32>
    // becomes
    %n = graph.constant dense<4.0> : tensor<f32>
    %s = graph.reduce_sum %x {axes = array<i64: 1>, keepdims} : (tensor<8x4xf32>) -> tensor<8x1xf32>
    %y = graph.div %s, %n : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def FlattenRows : Pass<"flatten-rows", "::mlir::ModuleOp"> {
  let summary = "move reshapes of leading dimensions behind elementwise operations and reductions";
  let description = [{
    Input: primitive operations. Where a reshape splits the first dimension of an
    operand and the operation treats the parts alike (elementwise, or a reduction
    of all of them or none), the operation works on the unsplit operand and its
    result is split instead. Operations between two products thus come side by
    side for form-kernels.

    ```mlir
    %s = graph.reshape %x : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
    %y = graph.tanh %s : (tensor<2x32x256xf32>) -> tensor<2x32x256xf32>
    // becomes
    %t = graph.tanh %x : (tensor<64x256xf32>) -> tensor<64x256xf32>
    %y = graph.reshape %t : (tensor<64x256xf32>) -> tensor<2x32x256xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RematerializeElementwise : Pass<"rematerialize-elementwise", "::mlir::ModuleOp"> {
  let summary = "compute cheap values again in backward where that saves memory";
  let description = [{
    Input: `@micro_batch` of primitive operations with `graph.block` and
    `graph.phase`. For each block, what its phases B and W read of its phase F is
    either saved or computed again by elementwise operations from what is saved:
    the choice with the fewest bytes (a minimum cut), and among equal ones the one
    that computes least. Matrix products and reductions are never computed again;
    what W reads is computed again in B.

    ```mlir
    %t = graph.tanh %x {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = graph.mul %x, %t {graph.block = 0 : i64, graph.phase = #graph.phase<F>} : ...
    %d = graph.mul %t, %x {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : ...
    // becomes
    %s = graph.tanh %x {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : ...
    %d = graph.mul %s, %x {graph.block = 0 : i64, graph.phase = #graph.phase<B>} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def AbsorbMovements : Pass<"absorb-movements", "::mlir::ModuleOp"> {
  let summary = "let routines read and write through transpositions, slices and concatenations";
  let description = [{
    Input: primitive operations. A sum of slices' gradients that make up the whole
    result becomes a concatenation. A transposition or slice whose every reader is
    a routine that takes strides (a matrix product, attention), directly or through
    other views, becomes a read view: its result is the operand's bytes.
    Movements from routines' results to a value (transpositions, reshapes,
    concatenations) become write views: the routines write into its bytes. Views
    become no kernel and are never folded (see Layouts.h).

    ```mlir
    %q = graph.transpose %x {perm = array<i64: 0, 2, 1, 3>} : (tensor<4x256x8x64xf32>) -> tensor<4x8x256x64xf32>
    %s = graph.matmul %q, %k {transpose_b} : ...
    // becomes
    %q = graph.transpose %x {perm = array<i64: 0, 2, 1, 3>, view = #graph.view<read>} : ...
    %s = graph.matmul %q, %k {transpose_b} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def FormKernels : Pass<"form-kernels", "::mlir::ModuleOp"> {
  let summary = "group operations into kernels: functions that become one loop";
  let description = [{
    Input: functions of primitive graph operations. Output: operations of equal
    `graph.block` and `graph.phase` in groups, each outlined into a private
    function and called by `graph.kernel`; equal groups share a function. What
    becomes of an operation depends on shapes and types alone. `graph.read`,
    `accumulate`, `reshape`, constants that are no splat and products of matrices
    stay outside; splats are cloned into kernels. What tensor shards share (`dist.shared`) ends a kernel,
    however many shards a rank has, and is gone.

    A kernel function says how its loop runs:
    - `graph.iterate = #graph.iteration<rows>`: over the product of `graph.range`, the leading
      dimensions of each operation in it. Reductions go over the dimensions after;
      what follows may use their results. A reduction over dimensions in the middle
      is a kernel of its own, whose rows are the dimensions that it keeps.
    - `columns`: over the product of `graph.range`, the trailing dimensions, in
      grains of 64: sums over the leading ones, with the elementwise operations
      that nothing else uses.
    - `flat`: over elements; one for each kind of optimizer (`@update.adamw`).
      Operands have the nominal shape of 64 elements; the last is the table of
      scalars. `graph.in_place` lists the operand that each result replaces: they
      are one pointer. The optimizer's operation names it in its `functions`. A rule that sees norms of
      whole parameters has two: its `direction` is the one that comes before the norms.

    ```mlir
    %a = graph.add %x, %b {graph.block = 0, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
    %r = graph.relu %a {graph.block = 0, graph.phase = #graph.phase<F>} : (tensor<8x64xf32>) -> tensor<8x64xf32>
    // becomes
    %r = graph.kernel @kernel0(%x, %b) {graph.block = 0, graph.phase = #graph.phase<F>} : (...) -> tensor<8x64xf32>
    ```
  }];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "48", "operations in a kernel at most">,
    Option<"maxPointers", "max-pointers", "int64_t", "30", "inputs and outputs of a kernel at most">];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::mlir::func::FuncDialect"];
}

def ApplyPrecision : Pass<"apply-precision", "::mlir::ModuleOp"> {
  let summary = "store values between kernels and parameters in 16 bits, with fp32 masters";
  let description = [{
    Input: kernels are formed, everything is f32. Does nothing unless the option
    `precision` (of the pass or of `dsopt.options`) is `bf16` or `fp16`. Then what kernels and
    products hand to each other is bf16 or f16; kernels extend what they read and round what
    they return, for their own later operations too, and compute in f32 as before. What stays f32: inputs, constants,
    results of sums and what is computed from those alone (statistics of rows, the
    loss), gradients that are accumulated, frozen parameters that no product reads.
    A value that is needed in both types is converted by a kernel `@convert`.

    With `gradient_type = "param"` in `dsopt.options` the states of the role `grad`
    are of that type too: `graph.accumulate` takes a value in f32 and rounds once, when it has
    added it. Later passes take the type of all gradients from these states.

    A trained parameter is stored in 16 bits (`storage`) and gets a state of the role
    `master` of the model's own type. The update reads and writes the master;
    the flat kernel takes (parameter, gradient, master, states, scalars) and
    returns the rounded master first.

    ```mlir
    %w = graph.read @w : tensor<64x64xf32>
    %y = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %m = graph.kernel @kernel0(%y) : (tensor<8x64xf32>) -> tensor<8x1xf32>
    // becomes
    %w = graph.read @w : tensor<64x64xbf16>
    %y = graph.matmul %x, %w : (tensor<8x64xbf16>, tensor<64x64xbf16>) -> tensor<8x64xbf16>
    %m = graph.kernel @kernel0.bf16(%y) : (tensor<8x64xbf16>) -> tensor<8x1xf32>
    ```
  }];
  let options = [Option<"precision", "precision", "std::string", "", "fp32, bf16 or fp16; default: the module's">];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::mlir::func::FuncDialect"];
}

def TileProducts : Pass<"tile-products", "::mlir::ModuleOp"> {
  let summary = "cut large weights of products into tiles, each in a block of its own";
  let description = [{
    Input: `@micro_batch`, `@evaluate` and `@update` behind apply-precision. Output: each parameter of
    more elements than `tile_products` of `dsopt.options` that one product takes is cut into
    parameters of whole rows, and the block of the product into one for each of them, those in
    front of it and those behind. What gathers, sums and updates by blocks
    then holds a tile at a time (Rajbhandari et al., ZeRO-Infinity, section 5.1.3: memory-centric tiling).

    Tiles have a multiple of 2048 rows, so that they add what the whole product adds, in its order:
    all numbers are the same bits. Where rows are the contraction's, each block adds its tile's products to the sum of
    the one before; where backward does, tiles are in reverse order. Other parts are
    put together by the last block that makes one. The parameter itself stays, of which
    the tiles are parts (`part_of`): checkpoints and norms are of it.

    A remark says of larger parameters why they are not cut: something else reads them as well (an embedding
    that is shared), they have fewer than 4096 rows, or their block cannot be cut around the product.

    ```mlir
    %w = graph.read @w {graph.block = 0, graph.phase = #graph.phase<F>} : tensor<4096x64xf32>
    %y = graph.matmul %x, %w {graph.block = 0, graph.phase = #graph.phase<F>, transpose_b} : ...
    // becomes
    %w0 = graph.read @w.tile.0 {graph.block = 1, ...} : tensor<2048x64xf32>
    %y0 = graph.matmul_part %x, %w0 {graph.block = 1, ..., transpose_b, whole = array<i64: 8, 4096, 64>} : ...
    %w1 = graph.read @w.tile.1 {graph.block = 0, ...} : tensor<2048x64xf32>
    %y1 = graph.matmul_part %x, %w1 {graph.block = 0, ..., transpose_b, whole = array<i64: 8, 4096, 64>} : ...
    %y = graph.kernel @concat(%y0, %y1) {graph.block = 1, ...} : ...
    ```
  }];
  let options = [Option<"elements", "elements", "int64_t", "0",
                        "elements of a parameter that stays whole, and of a tile if 2048 rows have fewer (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::mlir::func::FuncDialect"];
}

def FormBlocks : Pass<"form-blocks", "::mlir::ModuleOp"> {
  let summary = "outline each phase of each block as a function";
  let description = [{
    Input: `@micro_batch`, every operation with `graph.block` and `graph.phase`;
    kernels are formed already. Output: a private function `@blockK.P` for each
    block K and phase P that has operations, and `@micro_batch` as a list of
    `graph.run`: all F from the first block to the last, then B and W of each block
    from the last to the first. So for `@evaluate`, whose phase is E.

    A reshape crosses as the value that it reshapes and is reshaped again by its
    reader; constants and reads are made where they are used. So no function
    returns a value twice, or one of its arguments. A function's arguments are in
    order of their first use, its results in order of their definition; operations
    inside lose `graph.block` and `graph.phase`. Where the loss itself is a reshape,
    `@micro_batch` returns the value that it reshapes.

    ```mlir
    func.func @micro_batch(%x: tensor<8x4xf32>, ...) -> tensor<f32> {
      %w = graph.read @w {graph.block = 0, graph.phase = #graph.phase<F>} : tensor<4x2xf32>
      %y = graph.matmul %x, %w {graph.block = 0, graph.phase = #graph.phase<F>} : ...
      %z = graph.neg %y {graph.block = 1, graph.phase = #graph.phase<F>} : ...
      ...
    // becomes
    func.func private @block0.F(%x: tensor<8x4xf32>) -> tensor<8x2xf32>
        attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
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

def VerifyKernels : Pass<"verify-kernels", "::mlir::ModuleOp"> {
  let summary = "what holds after stage 3";
  let description = [{
    In the functions of blocks are only state, calls of kernels, routines and movements that are no
    code; in kernels only operations that become loops, over a range that the kernel says; beside
    runs of blocks there is nothing.
  }];
}

#endif // DSOPT_TRANSFORMS_FUSE_PASSES
