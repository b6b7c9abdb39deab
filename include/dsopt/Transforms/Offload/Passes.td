//===- Passes.td - copies between memories ----------------------*- tablegen -*-===//

#ifndef DSOPT_TRANSFORMS_OFFLOAD_PASSES
#define DSOPT_TRANSFORMS_OFFLOAD_PASSES

include "mlir/Pass/PassBase.td"

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

    In a program that is `delayed` such an update begins with the step: its gradient is there, beside the
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

#endif // DSOPT_TRANSFORMS_OFFLOAD_PASSES
