//===- Passes.td - stage 6: when it runs ------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_SCHEDULE_PASSES
#define DSOPT_TRANSFORMS_SCHEDULE_PASSES

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
    %p = dist.gather @b0 [@w] over ["dp"] : tensor<64x128xf32>
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

def ShareGathers : Pass<"share-gathers", "::mlir::ModuleOp"> {
  let summary = "let a gather serve a window of micro-batches";
  let description = [{
    Input: programs in which each gather serves one micro-batch, up to its `exec.release`. Output:
    one gather for each `gather-window` of micro-batches, kept to the last release of the window;
    windows of one target that overlap, or follow without a run between, share a gather (so do
    forward's and backward's while both are open). There are no releases any more: what a buffer
    holds is needed to its last reader. Collectives are numbered anew.

    With `max-reuse-distance` a gather also serves the next use of its bucket where the runs between
    are given fewer elements of gathered buckets than that. With `max-live-parameters` only so much is
    shared that no run has more gathered elements than that (the shortest ways between two uses come
    first); a run that is itself given more is an error.

    ```mlir
    %0 = exec.gather @b0.param to @b0.full ...
    %1 = exec.run @block0.F [... @b0.full] micro_batch 0 on @compute
    exec.release %0
    %2 = exec.gather @b0.param to @b0.full ...
    %3 = exec.run @block0.F [... @b0.full] micro_batch 1 on @compute
    exec.release %2
    // becomes, with gather-window=2
    %0 = exec.gather @b0.param to @b0.full ...
    %1 = exec.run @block0.F [... @b0.full] micro_batch 0 on @compute
    %3 = exec.run @block0.F [... @b0.full] micro_batch 1 on @compute
    ```
  }];
  let options = [
    Option<"gatherWindow", "gather-window", "int64_t", "0", "micro-batches a gather serves (0: as dsopt.options says, else 1)">,
    Option<"maxReuseDistance", "max-reuse-distance", "int64_t", "-1", "elements used before a next use for which a bucket stays whole (-1: as dsopt.options says, else none)">,
    Option<"maxLiveParameters", "max-live-parameters", "int64_t", "-1", "gathered elements at once (-1: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def PlaceReductions : Pass<"place-reductions", "::mlir::ModuleOp"> {
  let summary = "add gradients along the canonical tree";
  let description = [{
    Input: programs in which the gradients of each micro-batch are reduced by themselves (with one
    rank: in which runs add to the accumulators). Output: the order of additions that
    `reduction_shards` and `accumulate` of `dsopt.options` ask for (DESIGN 2.1 rule 4). Inside a
    shard runs add to one gradient (`local`) or each has its own (`sharded`); the gradients of a
    rank's shards are added along a binary tree, whose partial sums are buffers of their own, and
    what is left is reduced over the ranks. A gradient of one micro-batch that nothing reduces
    before the next is an error.

    ```mlir
    %0 = exec.run @block0.W [... @b0.whole.0.0] micro_batch 0 on @compute
    %1 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 on @comm
    %2 = exec.run @block0.W [... @b0.whole.0.0] micro_batch 1 on @compute
    %3 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 accumulate order 1 on @comm
    // becomes, with one shard a rank and accumulate = "local"
    %0 = exec.run @block0.W [... @b0.whole.0.0] micro_batch 0 on @compute
    %2 = exec.run @block0.W [... @b0.whole.0.0] micro_batch 1 accumulate on @compute
    %3 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 on @comm
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def DelayUpdates : Pass<"delay-updates", "::mlir::ModuleOp"> {
  let summary = "write a program of a step whose updates lag one behind";
  let description = [{
    Input: programs whose gradients are reduced. Output: where `dsopt.options` has `delayed_update`, each program
    of a step has another one beside it, marked `exec.delayed`, which runs from that step on. `finish-step`
    ends the two differently: this one updates with the gradients that the step before has left.

    ```mlir
    exec.program @position0 position 0 blocks [0, 2] { ... }
    // becomes
    exec.program @position0 position 0 blocks [0, 2] { ... }
    exec.program @position0.delayed position 0 blocks [0, 2] attributes {exec.delayed} { ... }
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def FreezeUpdates : Pass<"freeze-updates", "::mlir::ModuleOp"> {
  let summary = "write a program of a step behind the optimizer's freeze";
  let description = [{
    Input: programs whose gradients are reduced. Output: where `dsopt.options` has `freeze_step`, each program of
    a step has another one beside it, marked `exec.frozen`, which runs from that applied step on. It reduces
    nothing: what ranks exchange in place of gradients is written by `compress-gradients`.

    With `local_step_clipper` (0/1 Adam) there are three of them instead, by `exec.phase`: `compressed` steps,
    which exchange gradients as signs, before the freeze; `local` ones, which each rank makes by itself, and
    those in which ranks `join`, behind it.

    ```mlir
    exec.program @position0 position 0 blocks [0, 2] { ... }
    // becomes
    exec.program @position0 position 0 blocks [0, 2] { ... }
    exec.program @position0.frozen position 0 blocks [0, 2] attributes {exec.frozen} { ... }
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def FinishStep : Pass<"finish-step", "::mlir::ModuleOp"> {
  let summary = "from the last gradient to the new parameters: norms, updates, shared parameters";
  let description = [{
    Input: programs whose gradients are reduced, and `@update`. Output: as soon as a bucket's
    gradient is complete its norm is taken and the bucket is updated by the kernel that `@update` names for
    it, unless gradients are clipped or, in fp16, of a scaled loss: their updates follow the agreement. At
    the end of the step shared parameters' gradients go to their owner, all agree on the norms, what is
    left is updated, and new parameters go where they are needed: to the other ranks where those hold them
    whole, to the other positions where they are shared. `@update` is gone.

    A rule that sees norms of whole parameters (LAMB) is updated behind the agreement: first all directions,
    each with a record of its parameters' norms, then a gather of the records where ranks have slices, then
    the updates that go by them.

    ```mlir
    %0 = exec.update @update.lamb.direction of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 64 sliced direction record @norms.own on @compute
    %1 = exec.gather @norms.own to @norms.all bytes 320 all_gather order 3 over @dp on @comm
    %2 = exec.update @update.lamb of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 64 sliced record @norms.all on @compute
    ```

    Of one that sees whole matrices (Muon) a bucket's directions are gathered whole, and a segment makes of
    each what the update takes. One that sees whole parameters (Adafactor) has both, the records first; its
    segments replace what is kept of whole parameters, which every rank has room for.

    ```mlir
    %3 = exec.transform @adafactor.8x8 of @b0 [@b0.grad.0, @scalars, @b0.row_var, @b0.col_var, @b0.matrices] elements 64 sliced on @compute
    %4 = exec.update @update.adafactor of @b0 [@b0.param, @b0.matrices] elements 64 sliced unpadded record @norms.all on @compute
    ```

    With `delayed_update` programs have a `pending` gradient of each bucket. Those that are `exec.delayed`
    update with it, before the agreement also where gradients are clipped: how much was agreed on a step
    before. The new gradient takes its place behind.

    In programs that are `exec.frozen` norms are those of each rank's own gradients, whole; updates follow the
    agreement, by the kernel of the rule's frozen form, on buckets that every rank has whole. Local steps have a
    kernel of their own; those that join have two, of the rank's own step and of what follows the exchange.

    ```mlir
    %2 = exec.update @update.adamw of @b0 [@b0.param, @b0.pending, @b0.m, @b0.v] elements 64 sliced on @compute
    %3 = exec.copy @b0.grad.0 to @b0.pending bytes 256 on @download
    ```

    ```mlir
    %0 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 on @comm
    // becomes
    %0 = exec.reduce @b0.whole.0.0 to @b0.grad.0 elements 64 : f32 order 0 on @comm
    %1 = exec.norm @b0.grad.0 of @b0 to @norms on @compute
    %2 = exec.update @update.adamw of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 64 sliced on @compute
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def MergeTiedGradients : Pass<"merge-tied-gradients", "::mlir::ModuleOp"> {
  let summary = "add the gradient of look-ups to that of a shared parameter's other use in place";
  let description = [{
    Input: programs behind `finish-step`. Output: where two accumulators of a shared parameter are added on one
    rank and one of them holds what `exec.scatter_add` of a single run has stored, that run adds to the
    other itself, which becomes the first use's from the start. An element takes the sum that its own
    accumulator would have held, so that bits stay; the bytes of the second are never needed. A run adds so
    in a copy of its segment, whose gradient is `exec.access<add>`, with scratch for the order of the rows.

    ```mlir
    %0 = exec.run @block2.F [@h, @loss, @tied.t.grad.1] micro_batch 0 on @compute
    %1 = exec.run @block0.W [@ids, @dh, @tied.t.grad.0] micro_batch 0 on @compute
    %2 = exec.add @tied.t.grad.0, @tied.t.grad.1 elements 128 : f32 on @compute
    // becomes
    %0 = exec.run @block2.F [@h, @loss, @tied.t.grad.0] micro_batch 0 on @compute
    %1 = exec.run @block0.W.tied [@ids, @dh, @tied.t.grad.0] temp @temp.64 micro_batch 0 on @compute
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def CompressGradients : Pass<"compress-gradients", "::mlir::ModuleOp"> {
  let summary = "exchange momenta as signs behind the optimizer's freeze";
  let description = [{
    Input: programs whose steps are finished, among them frozen ones (`freeze-updates`). Output: in front of
    each update of a frozen program what makes the bucket's momentum of this rank's gradient and the other
    ranks': worker and server of 1-bit Adam (Tang et al., 2021, Algorithm 1). A unit of compression is a slice
    of a bucket; its record is the root of its mean square and 32 signs a word. What packing leaves out lies in
    `worker_error`, of the whole bucket, and in `server_error`, of this rank's slice, which all programs of
    the position keep. Elements whose variance is 0 take no part.

    Of 0/1 Adam (Lu et al., 2022) what is packed are gradients in `compressed` programs, and in those that
    `join` each rank's way from the common point, weighted by the root of the variance.

    In front of a direction (1-bit LAMB: Li et al., 2021) each parameter's momentum travels as a multiple of a number of its own, the third of
    `coefficients`, which all programs of the position keep, and the fresh variance goes on with what comes back.

    ```mlir
    %0 = exec.update @update.onebit_adam.frozen of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 128 on @compute
    // becomes
    %0 = exec.map @onebit.compensate.f32 [@b0.m, @b0.grad.0, @b0.worker_error, @b0.v, ..., @b0.signs.squares, @b0.signs.counts] elements 2 on @compute
    %1 = exec.map @onebit.scale.1 [@b0.signs.squares, @b0.signs.counts, @b0.signs.sent] elements 1 on @compute
    %2 = exec.map @onebit.pack [@b0.worker_error, @b0.v, @b0.signs.sent, @scalars+8, @b0.signs.sent+4] elements 2 on @compute
    ... // the other units
    %5 = exec.all_to_all @b0.signs.sent to @b0.signs.received bytes 12 order 1 over @dp on @comm
    %6 = exec.map @onebit.average.2 [..., @b0.server_error, @b0.v+256*rank, ...] elements 1 on @compute
    ... // packed, too
    %9 = exec.gather @b0.signs.mean+12*rank to @b0.signs.mean bytes 12 all_gather order 2 over @dp on @comm
    %10 = exec.map @onebit.unpack [@b0.signs.mean+4, @b0.signs.mean, @b0.v, @b0.m, @scalars+8] elements 2 on @compute
    ...
    %12 = exec.update @update.onebit_adam.frozen of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 128 on @compute
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::dsopt::graph::GraphDialect",
                           "::mlir::func::FuncDialect"];
}

def ExpandCollectives : Pass<"expand-collectives", "::mlir::ModuleOp"> {
  let summary = "write the actions that a collective in another type or by another method is made of";
  let description = [{
    Input: programs with gathers and reductions. Output: the same where all of them are the engine's,
    in the buffers' own types. A gather `as` a narrower type is one of rounded parameters, which are
    widened in front of the first action that needs them; `as` i8 they are multiples of a scale for each
    2048 elements of a slice, which travels behind them. What a node keeps of them (gather-by-node) is kept
    as it travels. A reduction `as` a narrower type is one of
    rounded gradients, whose sum is widened in the same way. One `by all_to_all` sends the parts of each
    slice to its owner, which adds them along the canonical tree: the same bits, in one hop. `as` i4 these parts are multiples of
    a scale for each 256 elements of half a slice, and go within nodes of `node_size` ranks (an option of
    the module) first and then between them, where there are several of several ranks. Where the option
    `compress_gradients` names a method (Compression.h), those `by all_to_all` in the gradient's own type go by
    it: this rank's gradient with what was left out before is packed into a record for each slice, whose owner
    adds what the records stand for; `worker_error` of the bucket keeps what they leave out. Of a method with
    factors in the place of records, these of whole matrices are added in two exchanges. Kernels of
    these conversions are new functions of the module.

    ```mlir
    %0 = exec.reduce @b0.grad.0 to @b0.grad.0+256*rank elements 64 : f32 as bf16 order 0 over @dp on @comm
    %1 = exec.norm @b0.grad.0+256*rank of @b0 to @norms on @compute
    // becomes
    %0 = exec.map @wire.narrow.f32 [@b0.grad.0, @b0.grad.0.wire] elements 128 on @compute
    %1 = exec.reduce @b0.grad.0.wire to @b0.grad.0.sum elements 64 : bf16 order 0 over @dp on @comm
    %2 = exec.map @wire.widen.bf16 [@b0.grad.0.sum, @b0.grad.0+256*rank] elements 64 on @compute
    %3 = exec.norm @b0.grad.0+256*rank of @b0 to @norms on @compute
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::dsopt::graph::GraphDialect",
                           "::mlir::func::FuncDialect"];
}

def GatherByNode : Pass<"gather-by-node", "::mlir::ModuleOp"> {
  let summary = "keep gathered parameters within each node for the step's later gathers";
  let description = [{
    Input: programs in which parameters are gathered over @dp, where `dsopt.options` has
    `secondary_params = "node"` and a `node_size` between 1 and the data-parallel ranks; others stay as
    they are. Output: the communicators @node and @across, a buffer of kind `secondary` for each bucket
    that is gathered, and in the place of a gather those within the node that make the bucket whole from
    there, one for each node's slices. In front of a step's first (and where slices have changed since)
    a gather @across brings them from the other nodes. Collectives are numbered anew.

    ```mlir
    %0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
    %1 = exec.run @block0.F ...
    %2 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 1 over @dp on @comm
    // becomes, with 2 of 4 ranks in a node
    %0 = exec.gather @b0.param to @b0.secondary bytes 256 all_gather order 0 over @across on @comm
    %1 = exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 1 over @node on @comm
    %2 = exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 2 over @node on @comm
    %3 = exec.run @block0.F ...
    %4 = exec.gather @b0.secondary to @b0.full bytes 256 all_gather order 3 over @node on @comm
    %5 = exec.gather @b0.secondary+256 to @b0.full+512 bytes 256 all_gather order 4 over @node on @comm
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def OffloadGathers : Pass<"offload-gathers", "::mlir::ModuleOp"> {
  let summary = "copy parameters that are kept on the host or on disk to the device where they are gathered";
  let description = [{
    Input: programs with gathers. Output: buffers of parameters that are `in host` lie in @host. What
    gathers them copies this rank's slice to its place first; where a group has one rank there is the
    copy alone.

    ```mlir
    %0 = exec.gather @b0.param to @b0.full bytes 256 all_gather order 0 over @dp on @comm
    // becomes
    %0 = exec.copy @b0.param to @b0.full+256*rank bytes 256 on @upload
    %1 = exec.gather @b0.full+256*rank to @b0.full bytes 256 all_gather order 0 over @dp on @comm
    ```

    Parameters that are `in disk` lie in @disk and come by way of the host, three slices at once; where there is
    one data-parallel rank, in parts of `sub_group_size` elements (an option of the module).

    ```mlir
    %0 = exec.copy @b0.param to @host.fetch.f32 bytes 256 on @disk
    %1 = exec.copy @host.fetch.f32 to @b0.full+256*rank bytes 256 on @upload
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def PackWeights : Pass<"pack-weights", "::mlir::ModuleOp"> {
  let summary = "pack weights once for several products of few rows";
  let description = [{
    Input: programs whose gathers, copies and updates are written. Output: a weight that products of at most 16
    rows multiply by, with or without a bias, on processors that have kernels for them other than AMX's tiles
    (compile-products), and that four or more read before it changes, wherever their segment runs, is packed by
    an action of its own; products read the packed copy, a buffer of kind `packed`. No bit changes. With a limit
    of memory (`device_memory`) or a table of products nothing is packed.

    ```mlir
    %0 = exec.run @block0.F [@x, @b0.param, @block0.F.0] micro_batch 0 on @compute
    // becomes
    %0 = exec.map @kernels::@pack0 [@b0.param, @b0.packed.0] elements 4 grain 1 on @compute
    %1 = exec.run @block0.F [@x, @b0.param, @block0.F.0, @b0.packed.0] micro_batch 0 on @compute
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

def OffloadUpdates : Pass<"offload-updates", "::mlir::ModuleOp"> {
  let summary = "run updates on the host where the optimizer's state is kept there or on disk";
  let description = [{
    Input: programs with updates. Output: for buckets whose state is `kept in host` the state's buffers
    lie in @host, and the update is on the stream @host, between copies of the gradient (and of the
    parameters, where the update reads them) from the device and of the new parameters to it. What is
    copied for one bucket lies where that of the bucket before the last did.

    ```mlir
    %0 = exec.update @adam of @b0 [@b0.param, @b0.grad.0, @b0.m, @b0.v] elements 64 on @compute
    // becomes
    %0 = exec.copy @b0.param to @host.param.f32 bytes 256 on @download
    %1 = exec.copy @b0.grad.0 to @host.grad.f32 bytes 256 on @download
    %2 = exec.update @adam of @b0 [@host.param.f32, @host.grad.f32, @b0.m, @b0.v] elements 64 on @host
    %3 = exec.copy @host.param.f32 to @b0.param bytes 256 on @upload
    ```

    In a program that is `exec.delayed` such an update begins with the step: its gradient is there, beside the
    state. What it makes of parameters that blocks still read lies beside them until these are done.

    ```mlir
    %0 = exec.copy @b0.param to @b0.next bytes 256 on @download
    %1 = exec.update @adam of @b0 [@b0.next, @b0.pending, @b0.m, @b0.v] elements 64 on @host
    ...
    %8 = exec.copy @b0.next to @b0.param bytes 256 on @upload
    %9 = exec.copy @b0.grad.0 to @b0.pending bytes 256 on @download
    ```

    State that is `kept in disk` lies in @disk. The update is cut into parts of `sub_group_size` elements (an
    option of the module): on the stream @disk the first three are read when the step begins, or behind
    what the stream reads before the first update, each later one as soon as the part three before it is
    written.

    ```mlir
    %0 = exec.copy @b0.m to @host.m.f32 bytes 256 on @disk
    %1 = exec.update @adam of @b0 [@host.param.f32, @host.grad.f32, @host.m.f32] elements 64 on @host
    %2 = exec.copy @host.m.f32 to @b0.m bytes 256 on @disk
    ```

    Gradients that wait lie there as well: they are brought like the state, and new ones are set aside in such
    parts, of which two are on the host at once.

    ```mlir
    %9 = exec.copy @b0.grad.0 to @b0.pending bytes 256 on @download
    // becomes
    %9 = exec.copy @b0.grad.0 to @host.pending.f32 bytes 256 on @download
    %10 = exec.copy @host.pending.f32 to @b0.pending bytes 256 on @disk
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def OffloadActivations : Pass<"offload-activations", "::mlir::ModuleOp"> {
  let summary = "keep activations on the host between the runs that touch them";
  let description = [{
    Input: programs with runs. Output: an activation of at least `least-bytes` that no run touches while
    it leaves, comes back, and one more run lasts, is copied to @host as soon as it is written and back while the
    run that is `prefetch` runs ahead of its next reader lasts. In between, its bytes are free for others.
    A run waits for what the one before the last one wrote to have left.

    ```mlir
    %0 = exec.run @block0.F [@x, @y] micro_batch 0 on @compute
    ...
    %5 = exec.run @block2.B [@dy, @dx] micro_batch 0 on @compute
    %6 = exec.run @block1.B ...
    %7 = exec.run @block0.B [@y, @dx] micro_batch 0 on @compute
    // becomes, with prefetch=1
    %0 = exec.run @block0.F [@x, @y] micro_batch 0 on @compute
    %1 = exec.copy @y to @host.y bytes 4096 on @download
    ...
    %5 = exec.run @block2.B [@dy, @dx] micro_batch 0 on @compute
    exec.wait %5 on @upload
    %8 = exec.copy @host.y to @y bytes 4096 on @upload
    %6 = exec.run @block1.B ...
    %7 = exec.run @block0.B [@y, @dx] micro_batch 0 on @compute
    ```
  }];
  let options = [
    Option<"to", "to", "std::string", "", "none or cpu (empty: as dsopt.options says, else none)">,
    Option<"leastBytes", "least-bytes", "int64_t", "65536", "smaller values stay">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def PrefetchGathers : Pass<"prefetch-gathers", "::mlir::ModuleOp"> {
  let summary = "start gathers some runs ahead of the run that needs them";
  let description = [{
    Input: programs in which whole parameters are gathered right in front of a run. Output: each
    such gather stands behind the run that is `distance` runs further ahead, and starts when that
    run is complete; never in front of a run that still needs what the buffer holds. Collectives are
    numbered anew. While `bucket-size` elements and more are there for later runs alone no further gather
    starts early, and none with which more than `max-live-parameters` elements would be whole at once, or
    more than `memory` bytes be held beside a run (in order of issue).
    A remark (category `overlap`) says which gathers are not ahead of their run, and why.

    ```mlir
    %0 = exec.run @block0.F ...
    %1 = exec.run @block1.F ...
    %2 = exec.gather @b2.param to @b2.full ...
    %3 = exec.run @block2.F [... @b2.full] ...
    // becomes, with distance=1
    %0 = exec.run @block0.F ...
    exec.wait %0 on @comm
    %2 = exec.gather @b2.param to @b2.full ...
    %1 = exec.run @block1.F ...
    %3 = exec.run @block2.F [... @b2.full] ...
    ```
  }];
  let options = [
    Option<"distance", "distance", "int64_t", "-1", "runs ahead (-1: as dsopt.options says, else 1)">,
    Option<"bucketSize", "bucket-size", "int64_t", "-1", "elements gathered ahead that are enough (-1: as dsopt.options says, else any number)">,
    Option<"memory", "memory", "int64_t", "0", "bytes beside a run, with what is gathered early (0: as dsopt.options says, else any number)">,
    Option<"maxLiveParameters", "max-live-parameters", "int64_t", "-1", "gathered elements at once (-1: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def GreedyGathers : Pass<"greedy-gathers", "::mlir::ModuleOp"> {
  let summary = "place gathers by DeepCompile's rule, for comparison";
  let description = [{
    Input: programs in which whole parameters are gathered right in front of a run. Output: gathers
    placed by the memory that is left of nine tenths of `device-memory`, as DeepSpeed's compiler
    does it (arXiv 2504.09983): buckets that cost most gather time a byte are gathered once a step, until
    the first that does not fit; then, from the last run to the first, the rest is moved
    ahead, and where a run would have too little room with them the one that is needed last stays
    behind it. Without a budget all gathers move to the front. It is no part of the pipeline:
    `-prefetch=0 -insert-pass=before:prefetch-gathers:greedy-gathers` puts it in the place of
    `prefetch-gathers`, which then only has them wait for the runs in front of them.

    ```mlir
    %0 = exec.run @block0.F ...
    %1 = exec.run @block1.F ...
    %2 = exec.gather @b2.param to @b2.full ...
    %3 = exec.run @block2.F [... @b2.full] ...
    // becomes, with room for it
    %2 = exec.gather @b2.param to @b2.full ...
    %0 = exec.run @block0.F ...
    %1 = exec.run @block1.F ...
    %3 = exec.run @block2.F [... @b2.full] ...
    ```
  }];
  let options = [Option<"deviceMemory", "device-memory", "int64_t", "0", "bytes (0: as dsopt.options says, else any number)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def ThrottleReductions : Pass<"throttle-reductions", "::mlir::ModuleOp"> {
  let summary = "bound the gradients that are on their way";
  let description = [{
    Input: programs. Output: a run that writes a gradient to be reduced waits for the
    `in-flight`-last reduction before it, so that the bytes of the one before that are free. What begins a
    gradient that is copied to the host waits in the same way for the `in-flight`-last copy of one.

    ```mlir
    exec.wait %r0 on @compute                       // new, with in-flight=2 and reductions %r0, %r1
    %3 = exec.run @block0.W [... @b0.whole.0.0] ...
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
    %0 = exec.run @block0.F [@input.x, @block0.F.0] micro_batch 0 on @compute
    exec.wait %0 on @send                           // new
    %1 = exec.send @block0.F.0 bytes 4096 to 1 tag "block0.F.0" micro_batch 0 send_recv on @send
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def ReportOverlap : Pass<"report-overlap", "::mlir::ModuleOp"> {
  let summary = "say what computation has to wait for at once";
  let description = [{
    Input: programs with their waits. Output: the same, and a remark (category `overlap`) for
    reductions, copies and gathers that the compute stream waits for although no run lies between what
    they had to wait for and what waits for them, with the buffer that both touch; and for those that
    cannot start before the last run is complete. Without remarks nothing is looked for.

    ```mlir
    %0 = exec.run @block1.B ...
    exec.wait %0 on @comm
    %1 = exec.reduce @b1.whole.0.0 to @b1.grad.0 ...
    exec.wait %1 on @compute
    %2 = exec.norm @b1.grad.0 ...   // no run lies between
    ```
  }];
}

def DedupeSegments : Pass<"dedupe-segments", "::mlir::ModuleOp"> {
  let summary = "make equal segments one function";
  let description = [{
    Input: segments and programs that run them. Output: the same without those
    segments that are equal to an earlier one in types, accesses and operations;
    which parameter an argument is does not count, since a run names its buffers.
    Blocks of equal structure are so compiled once; runs say which they are for.

    ```mlir
    exec.run @block3.F [...] micro_batch 0 on @compute
    // becomes, where block 1 is equal
    exec.run @block1.F for <3 F> [...] micro_batch 0 on @compute
    ```
  }];
}

def PlanMemory : Pass<"plan-memory", "::mlir::ModuleOp"> {
  let summary = "give every buffer its place in its memory";
  let description = [{
    Input: programs whose buffers have no offsets. Output, for each memory by itself:
    offsets, its size, the bound no plan can beat and `exec.live` (live bytes by class at
    the peak); for each program `exec.traffic` (bytes one rank sends in a step). Two
    buffers share bytes only where each use of one is complete before the next of the
    other starts, by streams and waits. Several packing orders are tried, the smallest
    memory is kept. More of the device's memory than the budget is an error that says what is
    alive at the peak.

    ```mlir
    exec.buffer @b0.full : memref<8320xf32> buffers slots 1 stride 33280 gathered of @b0
    // becomes
    exec.buffer @b0.full at 16640 : memref<8320xf32> buffers slots 1 stride 33280 gathered of @b0
    ```
  }];
  let options = [Option<"budget", "budget", "int64_t", "0", "bytes a rank may use (0: as dsopt.options says)">];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def VerifyExec : Pass<"verify-exec", "::mlir::ModuleOp"> {
  let summary = "refuse programs that race, overlap, mismatch, deadlock or leave something out";
  let description = [{
    What holds after stage 6, recomputed from the programs alone. In each
    program: addresses lie in their buffers and buffers in their memories; conflicting
    accesses of different streams are ordered by waits; what is read was wholly
    written, on every rank that reads it, and what is written is read; no gradient
    is lost or added twice; buffers that share bytes are never alive together;
    collectives ascend in order, those of a communicator and all reductions on one
    stream; every gradient is reduced before the agreement. Between programs: sends and receives match in order, tag, bytes
    and traffic; all agree once; and with rendezvous transfers that buffer nothing
    no position waits for ever. In all of them together: each phase of each block
    runs once on each micro-batch whose loss is agreed on, W after B after F and
    gradients in ascending order of micro-batches; each trained bucket has one norm
    and one update, at the position of its first block.
  }];
}

def DescribeChanges : Pass<"describe-changes", "::mlir::ModuleOp"> {
  let summary = "note what each action touches, and changes of the state that outlives a step";
  let description = [{
    Expects segments and kernels as operations, before they become code. Leaves on each
    action that writes to persistent buffers, and on each update, their names in
    `exec.changes`: a checkpoint that is still being taken of them holds the action back.
    Leaves on each action in `exec.touches` which bytes it reads and writes, which
    DSOPT_CHECK_ACCESSES compares with what it does. Changes nothing else.

    ```mlir
    exec.update @k::@sgd of @b0 [@b0.param, @b0.grad] elements 64 on @compute
    // adds, where only the parameter is persistent
    {exec.changes = [@b0.param],
     exec.touches = [#exec.touch<<@b0.param> 256 update>, #exec.touch<<@b0.grad> 256 read>,
                     #exec.touch<<@scalars> 64 read>]}
    ```
  }];
}

#endif // DSOPT_TRANSFORMS_SCHEDULE_PASSES
