//===- Passes.td - values and parameters over tensor shards -----*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_PLACE_PASSES
#define DSOPT_TRANSFORMS_PLACE_PASSES

include "mlir/Pass/PassBase.td"

def PlaceValues : Pass<"place-values", "::mlir::ModuleOp"> {
  let summary = "cut products and what lies between them into tensor shards";
  let description = [{
    Input: `@forward` in blocks, and the options `tensor_shards` (T) and `tp` of `dsopt.options`. From each
    product with a parameter whose columns T divides, the cut is followed through the operations that read
    them, by the loops that they have (upstream's ShardingInterface), until products and sums over the cut
    dimension end it: Megatron's columns then rows, heads of attention, gates. What lies between becomes one
    copy for each of the T / tp shards of a rank, so that each shard is computed by itself, with extents that
    no degree changes: all degrees have the same bits. The pieces of a sum are added by `graph.tree_add` on
    a rank and `dist.all_reduce` between them; a whole value that shards read is `dist.shared`. Each shard of a
    parameter is a parameter, `part_of` the whole, which nothing reads any more. What cannot be cut is
    left as it is; with T 1 everything is.

    Regions that exclude each other, and those that save less than their sums take, are chosen among by shapes
    and T alone: the module says what that is taken for (`graph.shard_cost`) and what no choice is below
    (`graph.shard_bound`). First come those that `shard` of `dsopt.options` or a parameter's `asked_dim` names;
    in a module with `shard_cuts` nothing else is cut.

    ```mlir
    %w1 = graph.read @w1 : tensor<256x64xf32>
    %h = graph.matmul %x, %w1 {transpose_b} : ... -> tensor<8x256xf32>
    %a = graph.gelu %h : ...
    %w2 = graph.read @w2 : tensor<64x256xf32>
    %y = graph.matmul %a, %w2 {transpose_b} : ... -> tensor<8x64xf32>
    // becomes, with T 2 and tp 2
    %xs = dist.shared %x over [tp] : tensor<8x64xf32> 1
    %w1 = graph.read @w1.shard.0 : tensor<128x64xf32>
    %h = graph.matmul %xs, %w1 {transpose_b} : ... -> tensor<8x128xf32>
    %a = graph.gelu %h : ...
    %w2 = graph.read @w2.shard.0 : tensor<64x128xf32>
    %p = graph.matmul %a, %w2 {transpose_b} : ... -> tensor<8x64xf32>
    %y = dist.all_reduce %p over [tp] : tensor<8x64xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::dsopt::dist::DistDialect"];
  let options = [
    Option<"shards", "shards", "int64_t", /*default=*/"0", "tensor shards; 0: the module's option tensor_shards">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"0", "tensor-parallel ranks; 0: the module's option tp">];
}

def CutSequence : Pass<"cut-sequence", "::mlir::ModuleOp"> {
  let summary = "cut what is computed for each position into sequence shards";
  let description = [{
    Input: `@forward` behind place-values, and the options `sequence_shards` (Q) and `sp` of `dsopt.options`. From the
    rows of attention's queries the cut is followed along the loops of operations to all that is computed for each
    position, which becomes one copy for each of the Q / sp shards of a rank. Whole values of inputs and
    parameters are taken in slices; attention is of shards that meet one after the other (`dist.attention`), heads
    exchanged for positions (`dist.all_to_all`) or along a ring; what another operation sees whole is gathered for it
    (`dist.all_gather`), whose gradient is added where it belongs (`dist.reduce_scatter`). Sums over positions are
    added as those of tensor shards. What few rows decide (a class token's) is computed by every rank, and counts
    once: gradients of parameters are added over all ranks along sp.

    A slice of the rows (a shifted loss) has the shards of all of them: rows that it leaves out are computed, and
    count nothing. Windows at every position read the ends of the shards beside, which are gathered.

    ```mlir
    %q = graph.matmul %x, %wq : (tensor<2x8x64xf32>, tensor<64x64xf32>) -> tensor<2x8x64xf32>
    // becomes, with Q 4 and sp 2, on each rank
    %w:2 = dist.shared %wq over [] : tensor<64x64xf32> 2
    %q0 = graph.matmul %x0, %w#0 : (tensor<2x2x64xf32>, tensor<64x64xf32>) -> tensor<2x2x64xf32>
    %q1 = graph.matmul %x1, %w#1 : (tensor<2x2x64xf32>, tensor<64x64xf32>) -> tensor<2x2x64xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::dsopt::dist::DistDialect"];
  let options = [
    Option<"shards", "shards", "int64_t", /*default=*/"0", "sequence shards; 0: the module's option sequence_shards">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"0", "sequence-parallel ranks; 0: the module's option sp">,
    Option<"method", "method", "std::string", /*default=*/"\"\"",
           "how attention sees all positions; empty: the module's option sp_method">];
}

def CutRows : Pass<"cut-rows", "::mlir::ModuleOp"> {
  let summary = "cut what lies between the products of tensor shards into rows";
  let description = [{
    Input: `@forward` behind place-values and cut-sequence, and the options `tensor_shards` (T) and `tp` of `dsopt.options`.
    From each sum of tensor shards the rows of its result are followed, forward alone, along the loops of operations to all
    that is computed row by row up to the values that tensor shards read: residual additions, norms, dropout, biases. That
    becomes one copy for each of the T / tp row shards of a rank; the sum is a `dist.reduce_scatter`, and what is read whole
    a `dist.all_gather`. A shard has some sequences of a micro-batch where T divides their number, else some positions
    of each. Parameters that rows read are `dist.shared` over tp, so that their gradients are added.

    What T does not divide stays as it is, and so does what would have to be gathered and added beside (what all
    ranks compute alike) for more than a quarter of what its sums send.

    ```mlir
    %y = dist.all_reduce %p over [tp] : tensor<8x64xf32>
    %r = graph.add %y, %x : ...
    %rs = dist.shared %r over [tp] : tensor<8x64xf32> 1
    // becomes, with T 2 and tp 2, where %x is a sum, too
    %y = dist.reduce_scatter %p over [tp] : tensor<8x64xf32> to tensor<4x64xf32>
    %r = graph.add %y, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %w = dist.all_gather %r over [tp] : tensor<4x64xf32> to tensor<8x64xf32>
    %rs = dist.shared %w over [] : tensor<8x64xf32> 1
    ```
  }];
  let dependentDialects = ["::dsopt::graph::GraphDialect", "::dsopt::dist::DistDialect"];
  let options = [
    Option<"shards", "shards", "int64_t", /*default=*/"0", "tensor shards; 0: the module's option tensor_shards">,
    Option<"ranks", "ranks", "int64_t", /*default=*/"0", "tensor-parallel ranks; 0: the module's option tp">];
}

def VerifyPlaces : Pass<"verify-places", "::mlir::ModuleOp"> {
  let summary = "check that nothing whole is made of what differs between tensor ranks";
  let description = [{
    Input: `@micro_batch` and `@evaluate` behind backward, one function each. With several ranks along tp, what is read
    from a shard, and dropout of one, differs between them, and all that is made of that, up to `dist.all_reduce`.
    Results and gradients of whole parameters may not differ, a value that shards share neither, and what is added over
    ranks has to.
  }];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"0", "tensor-parallel ranks; 0: the module's option tp">];
}

#endif // DSOPT_TRANSFORMS_PLACE_PASSES
