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
