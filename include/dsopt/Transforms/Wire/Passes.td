//===- Passes.td - what travels ---------------------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_WIRE_PASSES
#define DSOPT_TRANSFORMS_WIRE_PASSES

include "mlir/Pass/PassBase.td"

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

#endif // DSOPT_TRANSFORMS_WIRE_PASSES
