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

def SplitParts : Pass<"split-parts", "::mlir::ModuleOp"> {
  let summary = "cut functions of blocks at collectives on values";
  let description = [{
    Expects runs of functions of blocks, some of which hold `dist.all_reduce`. Each of these becomes one
    function for what needs no collective's result, one for what needs that of a first, and so on; the collectives
    stand between their runs. Reads, constants and read views are made in each part that uses them; other values
    are handed on. Parts keep block, phase and stage.

    ```mlir
    func.func private @block0.F(%x: ...) -> tensor<8x64xf32> attributes {graph.block = 0 : i64, ...} {
      %p = graph.matmul %x, %w : ...
      %y = dist.all_reduce %p over [tp] : tensor<8x64xf32>
      %z = graph.kernel @k(%y) : ...
      return %z
    }
    %z = graph.run @block0.F(%x) : ...
    // becomes
    %p = graph.run @block0.F(%x) : ...
    %y = dist.all_reduce %p over [tp] : tensor<8x64xf32>
    %z = graph.run @block0.F.1(%y) : ...
    ```
  }];
  let dependentDialects = ["::dsopt::dist::DistDialect"];
}

def BlocksToSegments : Pass<"blocks-to-segments", "::mlir::ModuleOp"> {
  let summary = "turn the functions of blocks into segments over buffers";
  let description = [{
    Expects functions of tensors with `graph.block` and `graph.phase` that hold
    `graph.read`, `accumulate`, `constant`, `kernel`, views and routines
    (RoutineOpInterface). Each becomes a function of memrefs with `exec.segment`;
    the arguments are, in this order: inputs, results, parameters (`exec.parameter`),
    gradients (`exec.gradient`) and constants (`exec.constant`, a `memref.global` of
    the module; equal constants are one). `exec.access` says how an argument is used. Kernel functions and
    the `graph.run` operations that call the segments stay as they are.

    A result is computed in its buffer. A routine's result whose only use is an
    accumulation is computed in the gradient if the routine can, where the run's flag
    says whether it is stored or added. Other values lie in the segment's scratch, packed by
    their lifetimes (`exec.temp_bytes`), those of a page and more in the buffer of a result that is written
    only later; what only leaves the segment is computed last where that takes less scratch. `exec.flops` counts floating-point
    operations by CostedOpInterface; each call has its part of them.

    ```mlir
    func.func private @block0.W(%x: tensor<8x4xf32>, %dy: tensor<8x2xf32>)
        attributes {graph.block = 0 : i64, graph.phase = #graph.phase<W>} {
      %dw = graph.matmul %x, %dy {transpose_a} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
      graph.accumulate @w.grad.0, %dw : tensor<4x2xf32>
      return
    }
    // becomes
    func.func private @block0.W(%x: memref<8x4xf32> {exec.access = #exec.access<read>},
        %dy: memref<8x2xf32> {exec.access = #exec.access<read>},
        %g: memref<4x2xf32> {exec.access = #exec.access<update>, exec.gradient = @w.grad.0})
        attributes {exec.segment, exec.temp_bytes = 0 : i64, exec.flops = 136 : i64, ...} {
      exec.gemm %x, %dy -> %g {exec.flops = 136 : i64, into_gradient, transpose_a} : ...
      return
    }
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// KernelToLLVM
//===----------------------------------------------------------------------===//

def NestKernels : Pass<"nest-kernels", "::mlir::ModuleOp"> {
  let summary = "move kernels into a module of their own, under their target";
  let description = [{
    Expects segments, and a module with a target (attach-target). Functions with `graph.iterate` go
    into the nested module `@kernels`, which has the same target, and what calls them names them
    there. They stay there until they are machine code: what lowers them is the pipeline
    `lower-kernels` on that module.

    ```mlir
    func.func private @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {graph.iterate = #graph.iteration<rows>, ...}
    exec.launch @kernel0 range 8 grain 1 (%a) -> (%b) : memref<8x64xf32> -> memref<8x64xf32>
    // becomes
    module @kernels attributes {dsopt.target = #target} {
      func.func nested @kernel0(%x: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {graph.iterate = #graph.iteration<rows>, ...}
    }
    exec.launch @kernels::@kernel0 range 8 grain 1 (%a) -> (%b) : memref<8x64xf32> -> memref<8x64xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect"];
}

def GraphToLinalg : Pass<"graph-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "turn a kernel's operations into linalg on tensors";
  let description = [{
    In functions with `graph.iterate`, each operation becomes one
    `linalg.generic` by its LowerableOpInterface; splats become `arith.constant`.

    ```mlir
    %r = graph.add %x, %b : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
    // becomes
    %e = tensor.empty() : tensor<8x64xf32>
    %r = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i, j)], ...}
        ins(%x, %b : ...) outs(%e : ...) { ... arith.addf ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def KernelToLoops : Pass<"kernel-to-loops", "::mlir::func::FuncOp"> {
  let summary = "turn a kernel of linalg.generics into one loop over its range";
  let description = [{
    Expects a kernel function after graph-to-linalg. Its arguments become the
    range's begin and end and a flat buffer for each input and each output (an
    output that replaces an input has none of its own); bool takes a byte. There
    is one outer loop and no allocation but scratch on the stack, at most 256 KiB.

    Floating point: sums over a row may be reassociated, nothing else carries a flag.
    So what is computed again in another loop or kernel has the same bits, and what
    compares it decides alike. Equal ranges of rows, columns (cut at
    multiples of 64) and elements give equal bytes however a range is cut.

    ```mlir
    func.func private @kernel0(%x: tensor<8x64xf32>) -> tensor<8x1xf32>
        attributes {graph.iterate = #graph.iteration<rows>, graph.range = array<i64: 8>} { a sum over rows }
    // becomes
    func.func private @kernel0(%lo: index, %hi: index, %x: memref<512xf32>, %r: memref<8xf32>) {
      scf.for %i = %lo to %hi step %c1 {
        %s = scf.for %j = %c0 to %c64 step %c1 iter_args(%t = %zero) -> (f32) { ... }
        memref.store %s, %r[%i]
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

def ApproximateMath : Pass<"approximate-math", "::mlir::func::FuncOp"> {
  let summary = "replace exp, log, tanh and erf by polynomials, which vectorize";
  let description = [{
    In kernels. The polynomials carry no flags, so that an element's bytes are the
    same in a vector and alone. With `all` everything else, too, that LLVM has no instruction for: a device
    has no library to call.
  }];
  let options = [Option<"all", "all", "bool", "false", "also what a library has on processors">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def KernelToLLVM : Pass<"kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turn kernel functions of loops into functions of the LLVM dialect";
  let description = [{
    Expects a module of kernels after kernel-to-loops and convert-scf-to-cf. The
    body becomes an internal function of bare pointers that do not alias; the
    kernel's name goes to a function of the type `dsopt_kernel`
    (include/dsopt/Runtime/ABI.h) that loads the pointers and calls it. Where the module's target has no
    instruction that rounds to bf16, integers do, to the nearest and of two to the even one; bf16 is then i16.

    ```mlir
    llvm.func internal @kernel0.body(%lo: i64, %hi: i64, %x: !llvm.ptr {llvm.noalias}, %r: !llvm.ptr {llvm.noalias})
    llvm.func @kernel0(%lo: i64, %hi: i64, %args: !llvm.ptr)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// ProductToLoops
//===----------------------------------------------------------------------===//

def CompileProducts : Pass<"compile-products", "::mlir::ModuleOp"> {
  let summary = "give the products of segments kernels of their own";
  let description = [{
    Expects segments, and kernels in modules of their targets (nest-kernels). What multiplies matrices
    (ProductCallOpInterface) gets a kernel for each product that the target can be compiled for: a function
    without a body in `@kernels` that says in `exec.product` all that it is compiled for, one for all products
    of equal shape, strides and types. What has none stays the library's. The choice follows from the product
    and the target alone, and from the module's `exec.gemm_table` if it has one: for a product of a shape that is
    there the kernel is cut as `exec.blocking` says then, or it is left to the library, as are parts of such a
    product. Of the table what products have taken is kept. Programs for devices are left as they are.

    ```mlir
    exec.gemm %a, %b -> %c : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    // becomes
    module @kernels attributes {dsopt.target = #target} {
      func.func nested @product0(index, index, memref<32xf32>, memref<8xf32>, memref<16xf32>) attributes
          {exec.product = #exec.product<m = 8, n = 2, k = 4, operands = f32, result = f32, lda = 4, ldb = 2, ldc = 2>,
           graph.range = array<i64: 1>}
    }
    exec.gemm %a, %b -> %c by <@kernels::@product0 range 1> : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    ```
  }];
  let dependentDialects = ["::dsopt::exec::ExecDialect", "::mlir::func::FuncDialect"];
}

def ProductToLoops : Pass<"product-to-loops", "::mlir::func::FuncOp"> {
  let summary = "fill the kernel of a product with loops";
  let description = [{
    Expects a function in a module of kernels with a target. One with `exec.product` gets loops over matrices of
    the batch, panels of columns, runs of 1024 elements of the contraction, blocks of rows, and the elements of
    a run; the last loop carries a block's sums in vectors, eight rows by three vectors of AVX-512. The range
    counts blocks of rows of panels of columns of matrices. A panel of b is copied where several blocks of
    rows read it: by the first of them as it reads it, or, where b lies transposed, before. While a panel is
    computed, the next one's lines are asked for.

    An element of the result is a chain of fused multiplications and additions over each run, from 0; runs
    are added in order, the first to what is there or to the addend. So its bits do not depend on how
    blocks are chosen or the range is cut. In bf16 with AVX-512 BF16 a link of the chain is two neighbours, as
    VDPBF16PS adds them; on a processor with AMX it is what TDPBF16PS adds: 32 elements, those that are missing
    at the end zero. Where a processor has neither, or half of fp32's rate, and in f16, a and b are extended to
    fp32 as they are copied. A result in 16 bits is rounded once, when its sum is complete.

    Scratch is on the stack: a panel of b (192 KiB), where columns of a lie far apart or it is extended some rows
    of it (512 KiB), and sums of such rows where the result is in 16 bits.

    ```mlir
    func.func nested @product0(index, index, memref<32xf32>, memref<8xf32>, memref<16xf32>) attributes {exec.product = ...}
    // becomes
    func.func nested @product0(%lo: index, %hi: index, %a: memref<32xf32>, %b: memref<8xf32>, %c: memref<16xf32>) {
      scf.for %panel = %lo to %hi step %c1 {
        scf.for %block = ... {
          %sums:8 = scf.for %k = %c0 to %c4 step %c1 iter_args(...) -> (vector<16xf32>, ...) {
            %line = vector.maskedload %b[%atB], %mask, %zero : ...
            %x0 = memref.load %a[%at0] : memref<32xf32>
            %f0 = vector.broadcast %x0 : f32 to vector<16xf32>
            %s0 = vector.fma %f0, %line, %sum0 : vector<16xf32>
            ...
          }
          vector.maskedstore %c[%atC], %mask, %sums#0 : ...
    ```
  }];
  let dependentDialects = ["::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// KernelToNVVM
//===----------------------------------------------------------------------===//

def KernelToThreads : Pass<"kernel-to-threads", "::mlir::ModuleOp"> {
  let summary = "turn kernels of linalg.generics into what blocks of a device's threads do";
  let description = [{
    Expects a module of kernels after graph-to-linalg; on a device it takes kernel-to-loops' place. The
    arguments are the same: the range, and flat buffers. A grid of any size does a range: a row is a block's,
    of 32 columns a block's, an element a thread's, and a block goes on by as many as the grid does at once.
    How many threads a block has (a multiple of 32, at most 256) follows from the shape and stands in
    `gpu.known_block_size`.

    Totals of a row: each thread's own, then a butterfly in each warp, then the warps' in order. Sums of a
    column: rows in blocks of 64 to groups of threads in turn, the groups' totals in order. Orders follow from
    shapes alone. Nothing is kept in scratch. Fails where a reduction is more than one operation.

    ```mlir
    func.func private @kernel0(%lo: index, %hi: index, %x: memref<512xf32>, %r: memref<8xf32>)
        attributes {gpu.known_block_size = array<i32: 64, 1, 1>, ...} {
      %thread = gpu.thread_id x
      scf.for %row = %first to %hi step %grid {
        %own = scf.for %j = %thread to %c64 step %c64 iter_args(%t = %zero) -> (f32) { ... }
        %other, %valid = gpu.shuffle xor %own, %c16, %c32 : f32
        ...
      }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def KernelToNVVM : Pass<"kernel-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "turn kernels of threads into functions for NVIDIA's devices";
  let description = [{
    Expects a module of kernels after kernel-to-threads, approximate-math{all}, convert-scf-to-cf and
    convert-math-to-llvm. Fails where a library's function is left. Each becomes a function of the
    LLVM and NVVM dialects that a host can launch (`nvvm.kernel`), of two 64-bit numbers and bare pointers,
    with the threads of its blocks in `nvvm.reqntid` and the elements of the range that a block does at a time
    in `exec.per_block`: one row, 32 columns, one for each thread. What blocks share is in address space 3.
    Names stay: in PTX, which has no dots in names, they have dollars (deviceName). A module whose target is a
    processor is left as it is.

    ```mlir
    llvm.func @kernel0(%lo: i64, %hi: i64, %x: !llvm.ptr {llvm.noalias}, %r: !llvm.ptr {llvm.noalias})
        attributes {exec.per_block = 1 : i64, nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>}
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

//===----------------------------------------------------------------------===//
// ExecToLLVM
//===----------------------------------------------------------------------===//

def DescribeCalls : Pass<"describe-calls", "::mlir::ModuleOp"> {
  let summary = "note what each call of a segment computes";
  let description = [{
    Expects segments and kernels as operations. Leaves one dictionary for each
    different call in the module's `exec.calls` (kind, what, element type, bytes
    moved at least, flops; for each of its products how many there are, batch, m,
    n, k and whether its operands are transposed; the model's module that it is
    part of), the index of each call in every segment's `exec.calls`, and
    that of each update kernel, counted for its nominal 64 elements, in
    `exec.update_calls`. Changes nothing that is computed.

    ```mlir
    exec.gemm %x, %w -> %y : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    // adds
    {bytes = 224 : i64, flops = 128 : i64, kind = "product", place = "layers.0.up and 1 more",
     products = array<i64: 1, 1, 8, 2, 4, 0, 0>, type = f32, what = "8x2x4 NN"}
    ```
  }];
}

def SegmentsToLLVM : Pass<"segments-to-llvm", "::mlir::ModuleOp"> {
  let summary = "turn segments into functions that call the runtime";
  let description = [{
    Expects segments (functions with `exec.segment`) and kernels that are
    already functions of the LLVM dialect in modules of their own, of which the
    module around them gets declarations. Each segment becomes a function of
    the type `dsopt_segment` (include/dsopt/Runtime/ABI.h) that calls `dsopt_rt_*`
    and keeps the segment's attributes; each `memref.global` that is a constant
    becomes a global of the same name, aligned to 64 bytes. Programs stay.

    Where the module is for a device, each of its kernels becomes a constant of the kernel's name, a
    `dsopt_device_kernel`: the function's name in PTX, the pointers that it takes, a block's threads and
    elements. Segments launch these, and programs name them for updates.

    ```mlir
    exec.gemm %a, %b -> %c : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    // becomes, %rt being the segment's first argument
    llvm.mlir.global external constant @product.0(dense<[8, 2, 4, ...]> : tensor<26xi64>) // a dsopt_gemm
    llvm.call @dsopt_rt_gemm(%rt, %product, %pa, %pb, %pc, %zero)
    exec.launch @kernels::@kernel0 range 8 grain 1 (%a) -> (%c) : ...
    // becomes, on a device
    llvm.call @dsopt_rt_launch_device(%rt, %kernel0, %eight, %arguments)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // DSOPT_CONVERSION_PASSES
