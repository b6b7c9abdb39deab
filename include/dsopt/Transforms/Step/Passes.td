//===- Passes.td - what ends a step -----------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_STEP_PASSES
#define DSOPT_TRANSFORMS_STEP_PASSES

include "mlir/Pass/PassBase.td"

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
    of a step has another one beside it, a `delayed` one, which runs from that step on. `finish-step`
    ends the two differently: this one updates with the gradients that the step before has left.

    ```mlir
    exec.program @position0 position 0 blocks [0, 2] { ... }
    // becomes
    exec.program @position0 position 0 blocks [0, 2] { ... }
    exec.program @position0.delayed delayed position 0 blocks [0, 2] { ... }
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def FreezeUpdates : Pass<"freeze-updates", "::mlir::ModuleOp"> {
  let summary = "write a program of a step behind the optimizer's freeze";
  let description = [{
    Input: programs whose gradients are reduced. Output: where `dsopt.options` has `freeze_step`, each program of
    a step has another one beside it, a `frozen` one, which runs from that applied step on. It reduces
    nothing: what ranks exchange in place of gradients is written by `compress-gradients`.

    With `local_step_clipper` (0/1 Adam) there are three of them instead: `compressed` steps,
    which exchange gradients as signs, before the freeze; `local` ones, which each rank makes by itself, and
    those in which ranks `join`, behind it.

    ```mlir
    exec.program @position0 position 0 blocks [0, 2] { ... }
    // becomes
    exec.program @position0 position 0 blocks [0, 2] { ... }
    exec.program @position0.frozen frozen position 0 blocks [0, 2] { ... }
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

    With `delayed_update` programs have a `pending` gradient of each bucket. Those that are `delayed`
    update with it, before the agreement also where gradients are clipped: how much was agreed on a step
    before. The new gradient takes its place behind.

    In programs behind a freeze norms are those of each rank's own gradients, whole; updates follow the
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

#endif // DSOPT_TRANSFORMS_STEP_PASSES
