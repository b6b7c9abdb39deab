//===- Passes.td - what code is compiled for --------------------*- tablegen -*-===//

#ifndef DSOPT_TARGET_PASSES
#define DSOPT_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def AttachTarget : Pass<"attach-target", "::mlir::ModuleOp"> {
  let summary = "say what the module is compiled for";
  let description = [{
    Resolves the options `target`, `arch` and `threads` to `dsopt.target` (Interfaces/Target.td), which has
    their place from here on: `native` is this machine's processor. For the target cuda, `arch` is one or
    several of sm_80, sm_89, sm_90 (the default), sm_90a and sm_100a, separated by commas. It stands before stage 3, whose
    kernels are the first choice that depends on it. A module that has a target keeps it; options
    that contradict it are an error.

    ```mlir
    module attributes {dsopt.options = {arch = "x86-64-v3", dp = 2 : i64, threads = 2 : i64}} { ... }
    // becomes
    #target = #dsopt.target<cpu, triple = "x86_64-pc-linux-gnu", arch = "x86-64-v3", threads = 2, vector_bits = 256,
        features = ["+avx2", "+bmi", "+fma", ...]>
    module attributes {dsopt.options = {dp = 2 : i64}, dsopt.target = #target} { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"",
           "cpu or cuda (default: the module's option, cpu)">,
    Option<"arch", "arch", "std::string", /*default=*/"",
           "native, x86-64-v3, a processor's name or devices' architectures (default: the module's option, native)">,
    Option<"threads", "threads", "int64_t", /*default=*/"0",
           "threads that routines have scratch for (default: the module's option, 1)">];
  let dependentDialects = ["::dsopt::OptionsDialect"];
}

def CopyHostKernels : Pass<"copy-host-kernels", "::mlir::ModuleOp"> {
  let summary = "give what a device's program runs on its host kernels of its own";
  let description = [{
    An update or a map on a `host` stream is done by the host's processor. Its kernel, which is the device's, is
    copied into the nested module `@host_kernels`, whose target is the baseline that the host's part of such a
    program is compiled for, and the action names the copy. What other streams run keeps the device's.

    ```mlir
    exec.update @kernels::@update.adamw of @b0 [...] elements 4096 on @host
    // becomes
    module @host_kernels attributes {dsopt.target = #host} {
      func.func nested @update.adamw.host(...) attributes {graph.iterate = #graph.iteration<flat>, ...}
    }
    exec.update @host_kernels::@update.adamw.host of @b0 [...] elements 4096 on @host
    ```
  }];
  let dependentDialects = ["::dsopt::OptionsDialect"];
}

def LowerHostKernels : Pass<"lower-host-kernels", "::mlir::ModuleOp"> {
  let summary = "turn the host's kernels of a device's program into functions of the LLVM dialect";
  let description = [{
    Runs the pipeline `lower-kernels-like-devices` on the nested modules whose target is a processor, before
    the others go through the device's passes: what a device has no instruction for is the same polynomial here.
  }];
}

#endif // DSOPT_TARGET_PASSES
