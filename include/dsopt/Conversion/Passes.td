//===- Passes.td - from one dialect to the next -----------------*- tablegen -*-===//
//
// The conversions: blocks to segments, segments and kernels to the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_CONVERSION_PASSES
#define DSOPT_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// GraphToExec
//===----------------------------------------------------------------------===//

def BlocksToSegments : Pass<"blocks-to-segments", "::mlir::ModuleOp"> {
  let summary = "turn the functions of blocks into segments over buffers";
  let description = [{
    Expects functions of tensors with `graph.block` and `graph.phase` that hold
    `graph.read`, `accumulate`, `reshape`, `constant`, `matmul`, `gather_grad`,
    `kernel` and the `dist` collectives of their bucket. Each becomes a function
    of memrefs with `exec.segment`; the arguments are, in this order: inputs,
    results, parameters (`exec.parameter`), gradients (`exec.gradient`) and
    constants (`exec.constant`, a `memref.global` of the module; equal constants
    are one). `exec.access` says how an argument is used. Kernel functions and
    the `graph.run` operations that call the segments stay as they are.

    A result is computed in its buffer. A product or scatter whose only use is an
    accumulation is computed in the gradient, where the run's flag says whether
    it is stored or added. Other values lie in the segment's scratch, packed by
    their lifetimes (`exec.temp_bytes`). `exec.gathers` and `exec.reduces` keep
    what the `dist` operations said, `exec.flops` counts floating-point
    operations (two for each multiplication of a product, one for each element
    that a kernel writes).

    ```mlir
    func.func private @block0.W(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>)
        attributes {graph.block = 0 : i64, graph.phase = "W"} {
      %dw = graph.matmul %x, %dy {transpose_a} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
      graph.accumulate @w.grad.0, %dw : tensor<4x2xf32>
      dist.reduce @b0 use 0
      return
    }
    // becomes
    func.func private @block0.W(%x: memref<8x4xf32> {exec.access = "read"},
        %dy: memref<8x2xf32> {exec.access = "read"},
        %g: memref<4x2xf32> {exec.access = "update", exec.gradient = @w.grad.0})
        attributes {exec.segment, exec.temp_bytes = 0 : i64, exec.flops = 128 : i64,
                    exec.gathers = [], exec.reduces = [[@b0, 0]], ...} {
      exec.gemm %x, %dy -> %g {into_gradient, transpose_a} : ...
      return
    }
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// ExecToLLVM
//===----------------------------------------------------------------------===//

def SegmentsToLLVM : Pass<"segments-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turn segments into functions that call the runtime";
  let description = [{
    Expects segments (functions with `exec.segment`) and kernels that are
    already functions of the LLVM dialect. Each segment becomes a function of
    the type `dsopt_segment` (include/dsopt/Runtime/ABI.h) that calls `dsopt_rt_*`
    and keeps the segment's attributes; each `memref.global` that is a constant
    becomes a global of the same name, aligned to 64 bytes. Programs stay.

    ```mlir
    exec.gemm %a, %b -> %c : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    // becomes, %rt being the segment's first argument
    llvm.call @dsopt_rt_gemm_f32(%rt, %batch, %m, %n, %k, %no, %no, %pa, %pb, %pc, %zero)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // DSOPT_CONVERSION_PASSES
