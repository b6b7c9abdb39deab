//===- Passes.td - stage 2: blocks, backward, update ------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_AUTODIFF_PASSES
#define DSOPT_TRANSFORMS_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def AttachMetrics : Pass<"attach-metrics", "::mlir::ModuleOp"> {
  let summary = "compute in forward what the run's metrics are made of";
  let description = [{
    Input: `@forward`, canonical, and the option `metric` of `dsopt.options`: `NAME` or
    `NAME:OUTPUT,LABELS`, where OUTPUT and LABELS are results of `@forward` with `graph.output`.
    Without them they are what the loss compares: the scores and labels of its one `graph.nll` or of
    its one sigmoid's cross entropy, the operands of the difference that its mean is of. One score a
    row is two classes, of which the first has the score 0. Output: the parts of each metric as further
    results with `graph.metric`, in f32, which nothing else reads; results with `graph.output` are
    gone. What only metrics need stands right behind what it is made of, so that no value lives
    longer for it; scores that are a product are computed once more, so that the loss is the same
    operation as without metrics.

    ```mlir
    func.func @forward(%x: ..., %labels: tensor<8xi64> {graph.name = "labels"}) -> (tensor<f32> {graph.name = "loss"}) {
      %losses, %lse = graph.nll %logits, %labels {ignore_index = -100 : i64} : ...
      ...
      return %loss : tensor<f32>
    // becomes, with metric = ["accuracy"]
    func.func @forward(...) -> (tensor<f32> {graph.name = "loss"}, tensor<f32> {graph.metric = #graph.metric<"accuracy", ratio>},
                                tensor<f32> {graph.metric = #graph.metric<"accuracy", ratio>}) {
      ...
      return %loss, %hits, %count : tensor<f32>, tensor<f32>, tensor<f32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseNormalizations : Pass<"raise-normalizations", "::mlir::ModuleOp"> {
  let summary = "replace chains of RMS and layer normalization by one operation each";
  let description = [{
    Input: `@forward`, canonical. Output: the same with each `x / sqrt(mean(x * x)
    + epsilon) * scale` over the last dimensions as one `graph.rms_norm`, and as one
    `graph.layer_norm` where x has its mean subtracted (then with the bias that is
    added). Squares are products or powers; the root divides, or its reciprocal
    multiplies. Backward then reads x and the reciprocals of the roots alone.

    ```mlir
    %s = graph.mul %x, %x : ...
    %m = graph.reduce_mean %s {axes = array<i64: 1>, keepdims} : ...
    %e = graph.add %m, %epsilon : ...
    %q = graph.sqrt %e : ...
    %n = graph.div %x, %q : ...
    %y = graph.mul %n, %scale : ...
    // becomes
    %y, %rstd = graph.rms_norm %x, %scale {axis = 1 : i64, epsilon = 1.000000e-06 : f64} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseActivations : Pass<"raise-activations", "::mlir::ModuleOp"> {
  let summary = "replace chains of GELU and SiLU by one operation each";
  let description = [{
    Input: `@forward`, canonical. Output: the same with `x / 2 (1 + erf(x / sqrt(2)))`
    and `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))` as one `graph.gelu`, the
    factors and the polynomial in any order, and `x * sigmoid(x)` as one
    `graph.silu`. Backward then reads x alone.

    ```mlir
    %s = graph.sigmoid %x : ...
    %y = graph.mul %x, %s : ...
    // becomes
    %y = graph.silu %x : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseRotary : Pass<"raise-rotary", "::mlir::ModuleOp"> {
  let summary = "rotate pairs of numbers without a concatenation";
  let description = [{
    Input: `@forward`, canonical. Output: the same with rotary embeddings, `x *
    cosine + turn(x) * sine`, where `turn(x)` is the concatenation of the second
    half's negative and the first half, or pairs of neighbours turned the same way,
    in pairs: a dimension of two sides is read backwards, and the signs become the
    sine's. Rows then have no piece whose place decides what is read; the gradient
    has the same form.

    ```mlir
    %n = graph.neg %second : ...
    %t = graph.concat %n, %first {axis = 1 : i64} : ... -> tensor<8x16xf32>
    %a = graph.mul %x, %cosine : ...
    %b = graph.mul %t, %sine : ...
    %y = graph.add %a, %b : ...
    // becomes
    %p = graph.reshape %x : (tensor<8x16xf32>) -> tensor<8x2x8xf32>
    %t = graph.slice %p {starts = array<i64: 0, 1, 0>, sizes = array<i64: 8, 2, 8>, steps = array<i64: 1, -1, 1>} : ...
    %a = graph.mul %p, %cosine : ...
    %b = graph.mul %t, %signed_sine : ...
    %r = graph.add %a, %b : ...
    %y = graph.reshape %r : (tensor<8x2x8xf32>) -> tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseAttention : Pass<"raise-attention", "::mlir::ModuleOp"> {
  let summary = "replace products around a softmax by graph.attention";
  let description = [{
    Input: `@forward`, canonical. Output: the same with each
    `softmax(scale * q k^T + mask) v` as one `graph.attention`, where nothing else
    uses the scores or the softmax and the mask is made from inputs and constants.

    Scales are found on q, on k and on the scores. k is what was transposed, so
    that no transpose is left of `k^T`. Three dimensions become four. Masks are
    added, or `where(condition, scores, low)` with a number of at most -1e30. A
    constant mask that is 0 up to the diagonal and at most -1e30 behind it becomes
    `causal`. Where exporters replace a softmax that is NaN by 0, a row that reads
    no column is 0: the result's rows are replaced instead, unless every row reads
    something; NaN in the scores then stays visible.

    ```mlir
    %kt = graph.transpose %k {perm = array<i64: 0, 1, 3, 2>} : ...
    %s = graph.matmul %q, %kt : ...
    %h = graph.mul %s, %c : ...
    %p = graph.softmax %h {axis = 3 : i64} : ...
    %r = graph.matmul %p, %v : ...
    // becomes
    %r, %lse = graph.attention %q, %k, %v {scale = 1.250000e-01 : f64} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseLinearNll : Pass<"raise-linear-nll", "::mlir::ModuleOp"> {
  let summary = "make a loss over a product's logits one operation";
  let description = [{
    Input: `@forward`, canonical. Output: the same with each `graph.nll` of logits
    that nothing else uses and that are `x w^T` (plus a bias), `w` a parameter,
    as `graph.linear_nll`, where the loss is linear in it with factors made from
    inputs alone: its gradient is then known before the logits are.

    ```mlir
    %logits = graph.matmul %x, %w {transpose_b} : ...
    %loss, %lse = graph.nll %logits, %labels {ignore_index = -100 : i64} : ...
    // becomes
    %loss = graph.linear_nll %x, %w, %labels {ignore_index = -100 : i64, transpose_b} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def MergeLossGradient : Pass<"merge-loss-gradient", "::mlir::ModuleOp"> {
  let summary = "compute linear_nll and its gradients in forward, in one go";
  let description = [{
    Input: `@micro_batch`. Output: the same with each `graph.linear_nll` and its
    `graph.linear_nll_grad` as one `graph.linear_nll_grad` of phase F, where the
    gradient that it starts from needs nothing that follows the loss. So no logits
    are kept for backward. Sums for weights are accumulated in F as well.

    ```mlir
    %loss = graph.linear_nll %x, %w, %labels {graph.block = 3, graph.phase = #graph.phase<F>, ...} : ...
    ...
    %_, %dx, %dw = graph.linear_nll_grad %x, %v, %labels, %g {graph.block = 3, graph.phase = #graph.phase<B>, ...} : ...
    graph.accumulate @w.grad.3, %dw {graph.block = 3, graph.phase = #graph.phase<W>} : ...
    // becomes
    %loss, %dx, %dw = graph.linear_nll_grad %x, %w, %labels, %g {graph.block = 3, graph.phase = #graph.phase<F>, ...} : ...
    ...
    graph.accumulate @w.grad.3, %dw {graph.block = 3, graph.phase = #graph.phase<F>} : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseLogarithms : Pass<"raise-logarithms", "::mlir::ModuleOp"> {
  let summary = "take logarithms of what leaves the range of floats another way";
  let description = [{
    Input: `@forward`, canonical. Output: the same with logarithms whose value and gradient are finite where the
    function's are:

    | of | becomes |
    | --- | --- |
    | `sigmoid(x)`, `1 - sigmoid(x)` | `-softplus(-x)`, `-softplus(x)`, where softplus is `max(x, 0) + log(1 + exp(-abs(x)))` |
    | `exp(x) + exp(y)`, powers of other numbers too | `max(x, y) + log(1 + exp(-abs(x - y)))`; softplus where y is 0 |
    | a sum of `exp(x)` | the largest x and the logarithm of a sum relative to it |
    | `softmax(x)` | x less the largest, less the logarithm of the sum of its exponentials |
    | `1 + x`, `1 - x` | the same and what the sum is rounded by, so that it is precise where x is small (log1p) |

    `(1 - y) x - w log(sigmoid(x))`, PyTorch's binary_cross_entropy_with_logits, becomes the sum of
    `(1 - y) softplus(x)` and `(w - (1 - y)) softplus(-x)`. Its binary_cross_entropy, of logarithms of p and 1 - p
    that are at least -100, keeps its value and has the gradient that PyTorch gives it, `(p - y) / max(p (1 - p), 1e-12)`.

    ```mlir
    %s = graph.sigmoid %x : ...
    %l = graph.log %s : ...
    // becomes
    %n = graph.neg %x : ...
    %m = graph.max %n, %zero : ...
    %a = graph.abs %x : ...
    %b = graph.neg %a : ...
    %e = graph.exp %b : ...
    %u = graph.add %e, %one : ...
    %v = graph.sub %u, %one : ...
    %d = graph.sub %e, %v : ...
    %c = graph.stop_gradient %d : ...
    %w = graph.log %u : ...
    %p = graph.add %w, %c : ...
    %t = graph.add %m, %p : ...
    %l = graph.neg %t : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def RaiseNorms : Pass<"raise-norms", "::mlir::ModuleOp"> {
  let summary = "give norms and standard deviations of zero no gradient";
  let description = [{
    Input: `@forward`, canonical, behind `raise-normalizations`. Output: the same with each root of a sum (or a mean) of squares, or
    `1 / n`-th power of a sum of n-th powers, zero where the sum is zero and computed of one there: its gradient
    is zero, as PyTorch has it, and not infinite times zero. Factors that are numbers may lie between.

    ```mlir
    %q = graph.mul %x, %x : ...
    %s = graph.reduce_sum %q {axes = array<i64: 1>} : ...
    %y = graph.sqrt %s : ...
    // becomes
    %q = graph.mul %x, %x : ...
    %s = graph.reduce_sum %q {axes = array<i64: 1>} : ...
    %z = graph.equal %s, %zero : ...
    %t = graph.where %z, %one, %s : ...
    %r = graph.sqrt %t : ...
    %y = graph.where %z, %zero, %r : ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def FindBlocks : Pass<"find-blocks", "::mlir::ModuleOp"> {
  let summary = "cut the forward graph into blocks where little is alive";
  let description = [{
    Input: `@forward`. Output: the same with `graph.block` on every operation and
    `graph.blocks` on the module.

    The matrix products that read a parameter, or what is made of parameters
    alone, are numbered in the graph's order. Between each neighbouring pair
    the candidate is the place with the fewest live activation bytes, the latest
    on a tie. Inputs, parameters, their views, and values made from inputs alone
    do not count; a reshape is the value that it reshapes. A run of neighbouring
    candidates with equal numbers of live values is cut if the candidates on both
    sides have more; the graph's ends count as more.

    Values that do not count are made anew in every block that uses them (one
    `graph.read` for each use). What nothing uses is removed.

    ```mlir
    %w = graph.read @w : tensor<4x4xf32>
    %a = graph.matmul %x, %w : ...
    %b = graph.matmul %a, %w : ...
    // becomes
    %w0 = graph.read @w {graph.block = 0} : tensor<4x4xf32>
    %a = graph.matmul %x, %w0 {graph.block = 0} : ...
    %w1 = graph.read @w {graph.block = 1} : tensor<4x4xf32>
    %b = graph.matmul %a, %w1 {graph.block = 1} : ...
    ```
  }];
}

def BuildEvaluation : Pass<"build-evaluation", "::mlir::ModuleOp"> {
  let summary = "a copy of the forward pass that evaluates";
  let description = [{
    Input: `@forward` with `graph.block` on every operation. Output: beside it
    `@evaluate`, a copy with `graph.phase = #graph.phase<E>` on every operation; with the option
    `train` of `dsopt.options` at 0 it takes `@forward`'s place. A linear layer with
    its loss (`graph.linear_nll`) becomes the routine that keeps no logits. What
    depends on whether the step trains (a `graph.where` on the context's training,
    which batch normalization has between its two kinds of statistics) is decided in
    both; dropout and contributions to running statistics are left out of `@evaluate`.

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
      %w = graph.read @w {graph.block = 0} : tensor<4x2xf32>
      ...
    // is followed by
    func.func @evaluate(%x: tensor<8x4xf32>) -> tensor<f32> {
      %w = graph.read @w {graph.block = 0, graph.phase = #graph.phase<E>} : tensor<4x2xf32>
      ...
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def BuildBackward : Pass<"build-backward", "::mlir::ModuleOp"> {
  let summary = "append the gradient of every trainable parameter";
  let description = [{
    Input: `@forward` with `graph.block` on every operation; it returns the loss, a
    `tensor<f32>`. Output: `@micro_batch`, which takes the loss's gradient as a
    last argument `%seed`, with `graph.phase` on every operation: `F` forward,
    `B` what the gradient of an earlier block's value needs, `W` the rest. One
    `graph.state` of role `grad` for each trainable parameter and block that uses
    it, and one `graph.accumulate` into each.

    Contributions to one value are added in the order in which backward meets
    them, each by the block that contributes; those of one parameter's uses inside
    a block in the graph's order. What is made from inputs, constants and views of
    parameters alone is not saved for backward but made anew there; so is a bool
    made from values that backward reads anyway. Accumulators
    have 32 bits or more, unless the option `gradient_type` of `dsopt.options` is
    `param`. A trainable parameter that the loss does not reach becomes frozen,
    with a warning.

    ```mlir
    func.func @forward(%x: tensor<8x4xf32>) -> tensor<f32> {
      %w = graph.read @w {graph.block = 0} : tensor<4x2xf32>
      %y = graph.matmul %x, %w {graph.block = 0} : ...
      %l = graph.reduce_sum %y {axes = array<i64: 0, 1>, graph.block = 0} : ...
      return %l : tensor<f32>
    }
    // becomes
    graph.state @w.grad.0 : tensor<4x2xf32> gradient of @w block 0
    func.func @micro_batch(%x: tensor<8x4xf32>, %seed: tensor<f32> {graph.name = "seed"}) -> tensor<f32> {
      ... // as above, graph.phase = #graph.phase<F>
      %k = graph.reshape %seed {graph.block = 0, graph.phase = #graph.phase<W>} : (tensor<f32>) -> tensor<1x1xf32>
      %dy = graph.expand %k {graph.block = 0, graph.phase = #graph.phase<W>} : ...
      %dw = graph.matmul %x, %dy {transpose_a, graph.block = 0, graph.phase = #graph.phase<W>} : ...
      graph.accumulate @w.grad.0, %dw {graph.block = 0, graph.phase = #graph.phase<W>} : tensor<4x2xf32>
      return %l : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def AppendOptimizer : Pass<"append-optimizer", "::mlir::ModuleOp"> {
  let summary = "add the optimizer's state and the update of every trainable parameter";
  let description = [{
    Input: gradient states (`build-backward`). Output: the optimizer's states and
    `@update`, which reads each trainable parameter, the sum of its gradients in
    the order of their blocks, and its states, and writes what the optimizer makes
    of them. Its argument is the table of scalars of Runtime/Scalars.h. Parameters
    get `lr_scale` and `decay_scale` by the option lists of
    `dsopt.options`: `lr_scale` and `decay_scale` (`GLOB=X`, a later one wins) and
    `no_decay` (globs, or `rank1` for parameters of at most one dimension: a factor
    of 0 that wins over `decay_scale`).

    A rule that takes matrices alone (Muon) updates parameters of rank 2 that nothing but matrix products
    reads, but for the last product that reads a parameter, which makes the output. All others, and those that
    `muon_except` of `dsopt.options` names (globs), are updated by the rule's companion, AdamW.

    ```mlir
    graph.state @w.m : tensor<4x2xf32> optimizer "m" of @w
    graph.state @w.v : tensor<4x2xf32> optimizer "v" of @w
    func.func @update(%scalars: tensor<16xf32>) {
      %p = graph.read @w : tensor<4x2xf32>
      %g = graph.read @w.grad.0 : tensor<4x2xf32>
      %m = graph.read @w.m : tensor<4x2xf32>
      %v = graph.read @w.v : tensor<4x2xf32>
      %p1, %m1, %v1 = graph.adam %p, %g, %m, %v, %scalars {decoupled} : ...
      graph.write @w, %p1 : tensor<4x2xf32>
      graph.write @w.m, %m1 : tensor<4x2xf32>
      graph.write @w.v, %v1 : tensor<4x2xf32>
      return
    }
    ```
  }];
  let options = [Option<"optimizer", "optimizer", "std::string", "\"\"",
                        "sgd, adam, adamw, lion, adagrad, lamb, muon, adafactor or a plugin's (empty: as dsopt.options says, else adamw)">];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def BuildMatrixUpdates : Pass<"build-matrix-updates", "::mlir::ModuleOp"> {
  let summary = "write the functions of what updates compute of whole matrices";
  let description = [{
    Of a rule that sees whole matrices (Muon) in `@update`: a function of the direction that the step takes,
    for each shape, named by the rule's operation. It is made of ordinary operations, and becomes
    kernels and products, and a segment, as blocks do. Of a rule that sees whole parameters (Adafactor) the
    function also takes the step's scalars and what the rule keeps of the whole parameter, by the role in
    `graph.whole_state`; its further results replace those. Of tensor shards it takes the direction of each one, in
    their order in the whole (`@muon.64x128.of.4`), joins them, and makes as many.

    ```mlir
    func.func private @muon.64x128(%u: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {graph.matrix_update} {
      ...
      %gram = graph.matmul %x, %x {transpose_b} : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x64xf32>
      ...
    }
    %p1, %m1 = graph.muon %p, %g, %m, %scalars {functions = #graph.functions<matrix = @muon.64x128>} : ...

    func.func private @adafactor.64x128(%u: tensor<64x128xf32>, %scalars: tensor<16xf32>,
        %rows: tensor<64x1xf32> {graph.whole_state = "row_var"}, %columns: tensor<1x128xf32> {graph.whole_state = "col_var"})
        -> (tensor<64x128xf32>, tensor<64x1xf32>, tensor<1x128xf32>) attributes {graph.matrix_update}
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect"];
}

def VerifyGraph : Pass<"verify-graph", "::mlir::ModuleOp"> {
  let summary = "check what holds at the end of autodiff";
  let description = [{
    Every operation of `@micro_batch` has a block and a phase; values flow forward
    through blocks in F, and back in B, never out of W; every trainable parameter
    has one accumulator for each block that uses it and one update; frozen ones
    have neither. Changes nothing.
  }];
}

#endif // DSOPT_TRANSFORMS_AUTODIFF_PASSES
